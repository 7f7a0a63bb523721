/// The app's signing keys (`sluice.signing_key`).
package struct SigningKeyStore: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Returns the signing key of a name; stores the proposed one if there is none. All gateways of an app receive the same key.
    package func signingKey(_ name: String, proposed: [UInt8]) async throws -> [UInt8] {
        try await pool.transact { session in
            // Of two gateways the first insertion wins, and both read its key.
            try session.execute(
                "INSERT INTO sluice.signing_key (name, key) VALUES ($1, $2) ON CONFLICT DO NOTHING", [.text(name), .bytes(proposed)])
            return try session.query("SELECT key FROM sluice.signing_key WHERE name = $1", [.text(name)]).bytes(0, 0) ?? proposed
        }
    }

    /// Returns the signing key of a name; nil if no gateway has stored one, or if the companion schema is missing.
    package func signingKey(_ name: String) async throws -> [UInt8]? {
        try await pool.perform { session in
            guard try session.query("SELECT to_regclass('sluice.signing_key') IS NOT NULL").bool(0, 0) == true else { return nil }
            return try session.query("SELECT key FROM sluice.signing_key WHERE name = $1", [.text(name)]).bytes(0, 0)
        }
    }
}
