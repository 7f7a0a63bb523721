import SluiceCore
package import SluicePorts

/// A key of an app, as the database has it.
package struct StoredSigningKey: Hashable, Sendable {
    /// The id, which tokens name; empty for the first key of a name.
    package var id: String
    package var key: [UInt8]
    /// The time of its creation, in milliseconds since 1970.
    package var created: Int64
}

/// The app's signing keys (`sluice.signing_key`). A name has several keys after a rotation. The newest one signs.
///
/// With a sealer, keys are encrypted in the database. Keys that a sealer did not encrypt yet are encrypted when they are read.
package struct SigningKeyStore: Sendable {
    private let pool: PostgresPool
    /// The first encrypts. The others decrypt keys of before.
    private let sealers: [any Sealer]

    package init(pool: PostgresPool, sealers: [any Sealer] = []) {
        self.pool = pool
        self.sealers = sealers
    }

    /// Returns the newest key of a name; stores the proposed one if there is none. All gateways of an app receive the same key.
    ///
    /// - Throws: `configMissing` or `configInvalid` if keys are encrypted, and no sealer decrypts them.
    package func signingKey(_ name: String, proposed: [UInt8]) async throws -> [UInt8] {
        try await pool.transact { session in
            // Of two gateways the first insertion wins, and both read its key.
            let (key, isSealed) = sealed(proposed, name, "")
            try session.execute(
                """
                INSERT INTO sluice.signing_key (name, key, sealed) SELECT $1, $2, $3
                WHERE NOT EXISTS (SELECT FROM sluice.signing_key WHERE name = $1) ON CONFLICT DO NOTHING
                """, [.text(name), .bytes(key), .bool(isSealed)])
            return try keys(name, session).last?.key ?? proposed
        }
    }

    /// Returns the newest key of a name; nil if no gateway has stored one, or if the companion schema is missing.
    package func signingKey(_ name: String) async throws -> StoredSigningKey? {
        try await pool.transact { session in
            guard try session.query("SELECT to_regclass('sluice.signing_key') IS NOT NULL").bool(0, 0) == true else { return nil }
            return try keys(name, session).last
        }
    }

    /// Returns the keys of a name, the oldest first.
    package func keys(_ name: String) async throws -> [StoredSigningKey] { try await pool.transact { try keys(name, $0) } }

    /// Adds a key, which signs from then on.
    package func add(_ name: String, id: String, key: [UInt8]) async throws {
        let (key, isSealed) = sealed(key, name, id)
        _ = try await pool.perform { session in
            try session.execute(
                "INSERT INTO sluice.signing_key (name, id, key, sealed, created_at) VALUES ($1, $2, $3, $4, clock_timestamp())",
                [.text(name), .text(id), .bytes(key), .bool(isSealed)])
        }
    }

    /// Removes a key, unless it is the newest one.
    ///
    /// - Returns: `false` if there is no such older key.
    package func remove(_ name: String, id: String) async throws -> Bool {
        try await pool.perform { session in
            try session.execute(
                """
                DELETE FROM sluice.signing_key k WHERE name = $1 AND id = $2
                    AND EXISTS (SELECT FROM sluice.signing_key n WHERE n.name = $1 AND (n.created_at, n.id) > (k.created_at, k.id))
                """, [.text(name), .text(id)]) == 1
        }
    }

    // MARK: Encryption

    private func keys(_ name: String, _ session: PostgresSession) throws -> [StoredSigningKey] {
        let rows = try session.query(
            """
            SELECT id, key, sealed, (extract(epoch FROM created_at) * 1000)::bigint FROM sluice.signing_key WHERE name = $1
            ORDER BY created_at, id
            """, [.text(name)])
        return try (0..<rows.count).map { row in
            let (id, stored) = (rows[row, 0] ?? "", rows.bytes(row, 1) ?? [])
            let key = try opened(stored, isSealed: rows.bool(row, 2) ?? false, name, id, session)
            return StoredSigningKey(id: id, key: key, created: rows.int(row, 3) ?? 0)
        }
    }

    private func opened(_ stored: [UInt8], isSealed: Bool, _ name: String, _ id: String, _ session: PostgresSession) throws -> [UInt8] {
        guard isSealed else {
            if !sealers.isEmpty { try seal(stored, name, id, session) }
            return stored
        }
        guard !sealers.isEmpty else {
            throw SluiceError(
                .configMissing, "The keys in sluice.signing_key are encrypted, and the gateway has no key to decrypt them.",
                fix: "Set SLUICE_KEY_ENCRYPTION or SLUICE_KEY_ENCRYPTION_FILE as before.")
        }
        for (index, sealer) in sealers.enumerated() {
            guard let key = sealer.open(stored, context: Self.context(name, id)) else { continue }
            if index > 0 { try seal(key, name, id, session) }
            return key
        }
        throw SluiceError(
            .configInvalid, "The keys in sluice.signing_key are encrypted with another key.",
            fix: "Set SLUICE_KEY_ENCRYPTION_PREVIOUS to the key of before.")
    }

    private func seal(_ key: [UInt8], _ name: String, _ id: String, _ session: PostgresSession) throws {
        let (stored, isSealed) = sealed(key, name, id)
        try session.execute(
            "UPDATE sluice.signing_key SET key = $3, sealed = $4 WHERE name = $1 AND id = $2",
            [.text(name), .text(id), .bytes(stored), .bool(isSealed)])
    }

    private func sealed(_ key: [UInt8], _ name: String, _ id: String) -> (key: [UInt8], isSealed: Bool) {
        // A sealer that cannot seal returns nothing, and the key would be lost.
        guard let sealed = sealers.first?.seal(key, context: Self.context(name, id)), !sealed.isEmpty else { return (key, false) }
        return (sealed, true)
    }

    /// A sealed key is of use in its own row alone.
    private static func context(_ name: String, _ id: String) -> [UInt8] { Array("sluice.signing_key \(name) \(id)".utf8) }
}
