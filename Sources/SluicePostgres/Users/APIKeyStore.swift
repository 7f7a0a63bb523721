import SluiceCore
package import SluicePorts

/// API keys (`sluice.api_key`).
package struct APIKeyStore: APIKeyDirectory {
    private let pool: PostgresPool
    private static let columns = "id, user_id, name, disabled, is_server"

    package init(pool: PostgresPool) { self.pool = pool }

    /// Adds a key.
    ///
    /// - Parameter most: The maximum number of keys of the user, or of server keys of the app.
    /// - Throws: `limitsExceeded` at the maximum, `nameInUse` if a key with this name exists.
    package func add(_ key: APIKey, hash: [UInt8], most: Int) async throws {
        try await pool.change(.apiKey(key.id), inTransaction: true) { session in
            let scope = key.isServer ? "is_server" : "NOT is_server AND user_id = $1"
            // The advisory lock serializes additions, so that the count still holds at the commit.
            _ = try session.query(
                "SELECT pg_advisory_xact_lock(hashtextextended('sluice.api_key ' || $1::text, 0))", [.text(key.isServer ? "" : key.user)])
            let count =
                try session.query(
                    "SELECT count(*) FROM sluice.api_key WHERE \(scope)", key.isServer ? [] : [.text(key.user)]
                ).int(0, 0) ?? 0
            guard count < most else {
                throw SluiceError(.limitsExceeded, "\(count) API keys exist; the limit is \(most).", fix: "Delete one that is not used.")
            }
            let added = try session.execute(
                """
                INSERT INTO sluice.api_key (\(Self.columns), hash) VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT DO NOTHING
                """,
                [.text(key.id), .text(key.user), .text(key.name), .bool(key.isDisabled), .bool(key.isServer), .bytes(hash)])
            if added == 0 { throw SluiceError(.nameInUse, "An API key named '\(key.name)' already exists.") }
        }
    }

    /// Returns the key whose secret has this hash, or nil.
    package func find(keyHash hash: [UInt8]) async throws -> APIKey? {
        try await records("hash = $1", [.bytes(hash)]).first
    }

    /// Returns the keys of a user, or the server keys if `user` is nil. Ordered by id.
    package func keys(of user: String?) async throws -> [APIKey] {
        if let user { return try await records("NOT is_server AND user_id = $1", [.text(user)]) }
        return try await records("is_server", [])
    }

    /// Disables or enables a key.
    ///
    /// - Parameter user: The owner of the key; nil for a server key.
    /// - Throws: `apiKeyNotFound` if the owner has no such key.
    package func setDisabled(key id: String, of user: String?, _ isDisabled: Bool) async throws {
        try await change("UPDATE sluice.api_key SET disabled = \(isDisabled)", id, user)
    }

    /// Deletes a key. Parameters and errors are those of `setDisabled`.
    package func delete(key id: String, of user: String?) async throws { try await change("DELETE FROM sluice.api_key", id, user) }

    private func change(_ statement: String, _ id: String, _ user: String?) async throws {
        let scope = user == nil ? "is_server" : "NOT is_server AND user_id = $2"
        try await pool.change(.apiKey(id)) { session in
            let count = try session.execute("\(statement) WHERE id = $1 AND \(scope)", [.text(id)] + (user.map { [.text($0)] } ?? []))
            if count == 0 { throw SluiceError(.apiKeyNotFound, "API key \(id) does not exist.") }
        }
    }

    private func records(_ condition: String, _ parameters: [PostgresParameter]) async throws -> [APIKey] {
        try await pool.perform { session in
            let result = try session.query(
                "SELECT \(Self.columns) FROM sluice.api_key WHERE \(condition) ORDER BY id", parameters, cached: true)
            return (0..<result.count).map { row in
                APIKey(
                    id: result[row, 0] ?? "", user: result[row, 1] ?? "", name: result[row, 2] ?? "",
                    isDisabled: result.bool(row, 3) ?? true, isServer: result.bool(row, 4) ?? false)
            }
        }
    }
}
