package import SluiceCore

/// The state of a replication slot, as PostgreSQL reports it.
package struct SlotState: Hashable, Sendable {
    package var name: String
    /// `true` if a client reads the slot now.
    package var isActive: Bool
    /// The position from which the server keeps the WAL for this slot.
    package var restart: LSN?
    /// The position before which everything has been confirmed.
    package var confirmed: LSN?
    /// The bytes of WAL that the server keeps because of this slot.
    package var bytesKept: Int64
    /// The bytes that may still be written before the slot can be lost (`max_slot_wal_keep_size`); nil without such a limit.
    package var bytesLeft: Int64?
    /// The status: `reserved`, `extended`, `unreserved` or `lost`.
    package var status: String

    package init(
        name: String, isActive: Bool, restart: LSN?, confirmed: LSN?, bytesKept: Int64, bytesLeft: Int64?, status: String
    ) {
        self.name = name
        self.isActive = isActive
        self.restart = restart
        self.confirmed = confirmed
        self.bytesKept = bytesKept
        self.bytesLeft = bytesLeft
        self.status = status
    }

    /// `true` if the slot can never be read again.
    package var isLost: Bool { status == "lost" || restart == nil }
}

/// The replication slot, which records in the server how far the app's changes have been read.
package enum ReplicationSlot {
    /// Returns the state of the slot; nil if it does not exist.
    package static func state(_ connection: PostgresConnection, name: String) async throws -> SlotState? {
        let result = try await connection.query(
            """
            SELECT active, restart_lsn, confirmed_flush_lsn,
                COALESCE(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint,
                safe_wal_size, COALESCE(wal_status, 'lost')
            FROM pg_replication_slots WHERE slot_name = $1
            """, [.text(name)])
        if result.isEmpty { return nil }
        return SlotState(
            name: name, isActive: result.bool(0, 0) ?? false, restart: result[0, 1].flatMap { LSN($0) },
            confirmed: result[0, 2].flatMap { LSN($0) }, bytesKept: result.int(0, 3) ?? 0, bytesLeft: result.int(0, 4),
            status: result[0, 5] ?? "lost")
    }

    /// Creates the slot if it does not exist.
    ///
    /// The server waits until the running transactions have ended, hence the long limit.
    /// - Returns: The state of the slot, and `true` if it is new.
    /// - Throws: `slotLost` if the slot can no longer be read. The operator must drop it, create a new one and let clients
    ///   resynchronize. The error is `postgresSetting` if all slots of the server are in use.
    package static func ensure(
        _ connection: PostgresConnection, name: String, within limit: Duration = .seconds(60)
    ) async throws -> (state: SlotState, isNew: Bool) {
        if let state = try await state(connection, name: name) {
            if state.isLost {
                throw PostgresError(.slotLost, "The slot “\(name)” can no longer be read: its status is \(state.status).")
            }
            return (state, false)
        }
        do {
            try await connection.query("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", [.text(name)], within: limit)
        } catch let failure as PostgresError where failure.sqlState == "53400" {
            throw PostgresError(
                .postgresSetting, "All replication slots are in use, so “\(name)” could not be created: max_replication_slots is too low.",
                fix: "Drop an unused slot (pg_replication_slots), or raise max_replication_slots and restart PostgreSQL.",
                sqlState: failure.sqlState)
        } catch let failure as PostgresError where failure.sqlState == "42710" {
            // duplicate_object: another gateway has created it at the same time.
        }
        guard let state = try await state(connection, name: name) else {
            throw PostgresError(.slotLost, "The slot “\(name)” was dropped during its creation.")
        }
        return (state, true)
    }

    /// Drops the slot if it exists.
    ///
    /// - Throws: `slotBusy` while a client reads it.
    package static func drop(_ connection: PostgresConnection, name: String) async throws {
        do {
            try await connection.query(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", [.text(name)])
        } catch let failure as PostgresError where failure.sqlState == "55006" {
            throw PostgresError(.slotBusy, "The slot “\(name)” cannot be dropped: a process reads it.", sqlState: failure.sqlState)
        }
    }
}
