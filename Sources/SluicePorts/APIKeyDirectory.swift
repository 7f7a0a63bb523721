import SluiceCore

/// An API key without its secret, which only the answer to its creation contains.
package struct APIKey: Hashable, Sendable {
    /// The id: 24 hexadecimal digits.
    package var id: String
    /// The id of the account that the key logs in.
    package var user: String
    package var name: String
    package var isDisabled: Bool
    /// `true` for a key that an operator created for a program. Such a key has an account of its own.
    package var isServer: Bool

    package init(id: String, user: String, name: String, isDisabled: Bool, isServer: Bool) {
        self.id = id
        self.user = user
        self.name = name
        self.isDisabled = isDisabled
        self.isServer = isServer
    }
}

/// The store of API keys. It holds only their hashes.
package protocol APIKeyDirectory: Sendable {
    /// Adds a key.
    ///
    /// - Parameter most: The maximum number of keys per user; for a server key, per app.
    /// - Throws: `nameInUse` if the user has a key of this name; `limitsExceeded`.
    func add(_ key: APIKey, hash: [UInt8], most: Int) async throws
    func find(keyHash: [UInt8]) async throws -> APIKey?
    /// Returns a user's keys by id; the server keys if `user` is nil.
    func keys(of user: String?) async throws -> [APIKey]
    /// Enables or disables a key.
    ///
    /// - Throws: `apiKeyNotFound`, also for a key of another user. `delete` throws the same.
    func setDisabled(key id: String, of user: String?, _ isDisabled: Bool) async throws
    func delete(key id: String, of user: String?) async throws
}
