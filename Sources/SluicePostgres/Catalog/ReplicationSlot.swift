package import SluiceCore

/// What PostgreSQL says of a replication slot.
package struct SlotState: Hashable, Sendable {
    package var name: String
    /// Whether somebody reads it now, and the server process that serves them.
    package var isActive: Bool
    package var activeProcess: Int?
    /// From here on the server keeps the log for this slot.
    package var restart: LSN?
    /// Everything before this has been confirmed.
    package var confirmed: LSN?
    /// Bytes of log between the confirmed place and the server's end.
    package var bytesBehind: Int64
    /// Bytes of log that the server keeps because of this slot.
    package var bytesKept: Int64
    /// Bytes that may still be written before the slot can be lost (`max_slot_wal_keep_size`); nil when there is no such bound.
    package var bytesLeft: Int64?
    /// `reserved`, `extended`, `unreserved` or `lost`.
    package var status: String

    /// Whether the slot can never be read again.
    package var isLost: Bool { status == "lost" || restart == nil }
}

/// The replication slot: the server's memory of how far the app's changes have been taken.
package enum ReplicationSlot {
    /// Nil when there is no slot of this name.
    package static func state(_ connection: PostgresConnection, name: String) async throws -> SlotState? {
        let result = try await connection.query(
            """
            SELECT active, active_pid, restart_lsn, confirmed_flush_lsn,
                COALESCE(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::bigint,
                COALESCE(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint,
                safe_wal_size, COALESCE(wal_status, 'lost')
            FROM pg_replication_slots WHERE slot_name = $1
            """, [.text(name)])
        if result.isEmpty { return nil }
        return SlotState(
            name: name, isActive: result.bool(0, 0) ?? false, activeProcess: result.int(0, 1).map { Int($0) },
            restart: result[0, 2].flatMap { LSN($0) }, confirmed: result[0, 3].flatMap { LSN($0) },
            bytesBehind: result.int(0, 4) ?? 0, bytesKept: result.int(0, 5) ?? 0, bytesLeft: result.int(0, 6),
            status: result[0, 7] ?? "lost")
    }

    /// Makes the slot if there is none.
    ///
    /// The server waits for the transactions that are running to end, hence the generous limit.
    /// - Returns: its state, and whether it was made now.
    /// - Throws: `slotLost` when there is one that can no longer be read: drop it, make a new one, and let clients
    ///   resynchronise. `postgresSetting` when all of the server's slots are taken.
    package static func ensure(
        _ connection: PostgresConnection, name: String, within limit: Duration = .seconds(60)
    ) async throws -> (state: SlotState, isNew: Bool) {
        if let state = try await state(connection, name: name) {
            if state.isLost {
                throw PostgresFailure(.slotLost, "The slot “\(name)” can no longer be read: its status is \(state.status).")
            }
            return (state, false)
        }
        do {
            try await connection.query("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", [.text(name)], within: limit)
        } catch let failure as PostgresFailure where failure.sqlState == "53400" {
            throw PostgresFailure(
                .postgresSetting, "All replication slots are taken, so “\(name)” could not be made: max_replication_slots is too low.",
                fix: "Drop a slot that nobody uses (pg_replication_slots), or raise max_replication_slots and restart PostgreSQL.",
                sqlState: failure.sqlState)
        } catch let failure as PostgresFailure where failure.sqlState == "42710" {
            // Another gateway made it at the same moment.
        }
        guard let state = try await state(connection, name: name) else {
            throw PostgresFailure(.slotLost, "The slot “\(name)” was dropped while it was being made.")
        }
        return (state, true)
    }

    /// Drops the slot if it is there. - Throws: `slotBusy` while somebody reads it.
    package static func drop(_ connection: PostgresConnection, name: String) async throws {
        do {
            try await connection.query(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", [.text(name)])
        } catch let failure as PostgresFailure where failure.sqlState == "55006" {
            throw PostgresFailure(.slotBusy, "The slot “\(name)” cannot be dropped: somebody reads it.", sqlState: failure.sqlState)
        }
    }
}
