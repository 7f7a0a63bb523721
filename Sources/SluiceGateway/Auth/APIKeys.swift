import Crypto
import SluiceCore
package import SluicePorts
package import SluiceValues

/// Creates API keys and logs in with them. Keys do not expire. A key logs in its user; a server key logs in an account of its own.
package struct APIKeys: Sendable {
    /// The maximum numbers of keys per user and of server keys per app.
    package static let (ofUser, ofServer) = (20, 100)
    /// The name of the provider.
    package static let provider = "api-key"
    /// The longest name of a key, in bytes.
    static let nameBytes = 64

    private let directory: any APIKeyDirectory
    private let users: UserService

    package init(directory: any APIKeyDirectory, users: UserService) {
        self.directory = directory
        self.users = users
    }

    /// Creates a key for a user.
    ///
    /// - Returns: The key and its secret, which cannot be read again.
    /// - Throws: `providerDisabled`; `badRequest` for an invalid name; `nameInUse`; `limitsExceeded`.
    package func create(name: String, for user: String) async throws -> (key: APIKey, secret: String) {
        try await create(name, user: user, isServer: false)
    }

    /// Creates a server key and its account. Rules can read the account's custom data.
    package func createServerKey(name: String, customData: JSON) async throws -> (key: APIKey, secret: String) {
        try users.require(provider: Self.provider)
        try Self.check(name)
        let account = try await users.createServer(name: name, customData: customData)
        do {
            return try await create(name, user: account.id, isServer: true)
        } catch {
            // Without its key the account cannot be used.
            try? await users.delete(account.id)
            throw error
        }
    }

    private func create(_ name: String, user: String, isServer: Bool) async throws -> (key: APIKey, secret: String) {
        try users.require(provider: Self.provider)
        try Self.check(name)
        let secret = Self.newSecret()
        let key = APIKey(id: users.newID(), user: user, name: name, isDisabled: false, isServer: isServer)
        try await directory.add(key, hash: Self.hash(secret), most: isServer ? Self.ofServer : Self.ofUser)
        return (key, secret)
    }

    /// Returns a random secret of 256 bits, in the alphabet of URLs.
    package static func newSecret() -> String {
        SymmetricKey(size: .bits256).withUnsafeBytes { Base64.encode(Array($0)) }
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    private static func check(_ name: String) throws(SluiceError) {
        let isFine = name.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0 & 0xDF) || $0 == 0x2D || $0 == 0x5F }
        guard (1...nameBytes).contains(name.utf8.count), isFine else {
            throw SluiceError(
                .badRequest, "The name '\(name.prefix(80))' of an API key is not usable.",
                fix: "Use 1 to \(nameBytes) letters, digits, hyphens and underscores of ASCII.")
        }
    }

    /// Logs in with a key. Wrong keys count against the limit of the address.
    package func logIn(_ secret: String, from address: String) async throws -> UserService.Tokens {
        try users.throttle.requireAttempt(.keys, from: address)
        do {
            let (key, account) = try await find(secret)
            return try await users.login(account, .apiKey(id: key.id))
        } catch let error as SluiceError where error.code == .badAuthentication {
            users.throttle.failed(.keys, from: address)
            throw error
        }
    }

    /// Returns the current account of a key.
    ///
    /// - Throws: `badAuthentication` for an unknown or disabled key; `userDisabled`; `providerDisabled`.
    package func account(of secret: String) async throws -> UserAccount { try await find(secret).account }

    private func find(_ secret: String) async throws -> (key: APIKey, account: UserAccount) {
        try users.require(provider: Self.provider)
        guard let key = try await directory.find(keyHash: Self.hash(secret)), !key.isDisabled,
            let account = try await users.directory.find(id: key.user)
        else { throw SluiceError(.badAuthentication, "The API key is unknown or disabled.", fix: "Create a key, or enable this one.") }
        return (key, try UserService.usable(account, account.id))
    }

    /// - Parameter user: The user; nil for server keys. The same holds for the functions below.
    package func list(of user: String?) async throws -> [APIKey] { try await directory.keys(of: user) }

    package func find(_ id: String, of user: String?) async throws -> APIKey {
        guard let key = try await directory.keys(of: user).first(where: { $0.id == id }) else {
            throw SluiceError(.apiKeyNotFound, "API key \(id) does not exist.")
        }
        return key
    }

    package func setDisabled(_ isDisabled: Bool, _ id: String, of user: String?) async throws {
        let key = try await find(id, of: user)
        try await directory.setDisabled(key: id, of: user, isDisabled)
        if isDisabled { await users.loginsEnded(of: key.user) }
    }

    /// Deletes a key. The sessions of its logins end. With a server key the account is deleted.
    package func delete(_ id: String, of user: String?) async throws {
        let key = try await find(id, of: user)
        try await directory.delete(key: id, of: user)
        if key.isServer { try await users.delete(key.user) } else { await users.loginsEnded(of: key.user) }
    }

    /// A plain SHA-256 suffices: the secret is random and as long as the hash.
    package static func hash(_ secret: String) -> [UInt8] { Array(SHA256.hash(data: Array(secret.utf8))) }
}
