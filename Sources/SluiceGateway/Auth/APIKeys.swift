import Crypto
package import SluiceCore

/// An API key as its owner sees it: never with its secret, except in the answer to its creation.
package struct APIKey: Hashable, Sendable {
    /// 24 hexadecimal digits.
    package var id: String
    /// The account that it logs in.
    package var user: String
    package var name: String
    package var isDisabled: Bool
    /// Made by an operator, for a program; its account is its own.
    package var isServer: Bool

    package init(id: String, user: String, name: String, isDisabled: Bool, isServer: Bool) {
        self.id = id
        self.user = user
        self.name = name
        self.isDisabled = isDisabled
        self.isServer = isServer
    }
}

/// Where API keys are kept. Only hashes of them are.
package protocol APIKeyDirectory: Sendable {
    /// - Parameter most: keys that the user may have; of a server key, those of the app.
    /// - Throws: `nameInUse` when the user has one of this name, `limitsExceeded`.
    func add(_ key: APIKey, hash: [UInt8], most: Int) async throws
    func find(keyHash: [UInt8]) async throws -> APIKey?
    /// A user's keys by id; without a user the server keys.
    func keys(of user: String?) async throws -> [APIKey]
    /// - Throws: `apiKeyNotFound`, also for a key of another user. As `delete`.
    func setDisabled(key id: String, of user: String?, _ isDisabled: Bool) async throws
    func delete(key id: String, of user: String?) async throws
}

/// Creates API keys and logs in by them (AUTH 17.2). They never expire; what they log in is their user, or for a server key an
/// account of its own.
package struct APIKeys: Sendable {
    /// Keys of one user, and server keys of the app.
    package static let (ofUser, ofServer) = (20, 100)
    /// The provider's name.
    package static let provider = "api-key"
    /// Bytes of a key's name.
    static let nameBytes = 64

    private let directory: any APIKeyDirectory
    private let users: UserService

    package init(directory: any APIKeyDirectory, users: UserService) {
        self.directory = directory
        self.users = users
    }

    /// A new key of a user.
    /// - Returns: the key, and its secret, which is shown this once.
    /// - Throws: `providerDisabled`, `badRequest` for a name that is no use, `nameInUse`, `limitsExceeded`.
    package func create(name: String, for user: String) async throws -> (key: APIKey, secret: String) {
        try await create(name, user: user, isServer: false)
    }

    /// A new server key, with an account whose custom data the rules can look at.
    package func createServerKey(name: String, customData: JSON) async throws -> (key: APIKey, secret: String) {
        try users.require(provider: Self.provider)
        try Self.check(name)
        let account = try await users.createServer(name: name, customData: customData)
        do {
            return try await create(name, user: account.id, isServer: true)
        } catch {
            try? await users.delete(account.id)
            throw error
        }
    }

    private func create(_ name: String, user: String, isServer: Bool) async throws -> (key: APIKey, secret: String) {
        try users.require(provider: Self.provider)
        try Self.check(name)
        let secret = SymmetricKey(size: .bits256).withUnsafeBytes { Base64.encode(Array($0)) }
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        let key = APIKey(id: users.newID(), user: user, name: name, isDisabled: false, isServer: isServer)
        try await directory.add(key, hash: Self.hash(secret), most: isServer ? Self.ofServer : Self.ofUser)
        return (key, secret)
    }

    private static func check(_ name: String) throws(SluiceError) {
        let isFine = name.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0 & 0xDF) || $0 == 0x2D || $0 == 0x5F }
        guard (1...nameBytes).contains(name.utf8.count), isFine else {
            throw SluiceError(
                .badRequest, "The name '\(name.prefix(80))' of an API key is not usable.",
                fix: "Use 1 to \(nameBytes) letters, digits, hyphens and underscores of ASCII.")
        }
    }

    /// A login by a key, as by any other credentials.
    package func logIn(_ secret: String, from address: String) async throws -> UserService.Login {
        try users.throttle.requireKeyAttempt(from: address)
        do {
            return try await users.login(try await account(of: secret))
        } catch let error as SluiceError where error.code == .badAuthentication {
            users.throttle.keyFailed(from: address)
            throw error
        }
    }

    /// The account of a key, as it is now.
    /// - Throws: `badAuthentication` for a key that is unknown or disabled, `userDisabled`, `providerDisabled`.
    package func account(of secret: String) async throws -> UserAccount {
        try users.require(provider: Self.provider)
        guard let key = try await directory.find(keyHash: Self.hash(secret)), !key.isDisabled,
            let account = try await users.directory.find(id: key.user)
        else { throw SluiceError(.badAuthentication, "The API key is unknown or disabled.", fix: "Create a key, or enable this one.") }
        guard !account.isDisabled else { throw SluiceError(.userDisabled, "User \(account.id) is disabled.") }
        return account
    }

    /// - Parameter user: nil for server keys, here and below.
    package func list(of user: String?) async throws -> [APIKey] { try await directory.keys(of: user) }

    package func find(_ id: String, of user: String?) async throws -> APIKey {
        guard let key = try await directory.keys(of: user).first(where: { $0.id == id }) else {
            throw SluiceError(.apiKeyNotFound, "There is no API key \(id).")
        }
        return key
    }

    package func setDisabled(_ isDisabled: Bool, _ id: String, of user: String?) async throws {
        try await directory.setDisabled(key: id, of: user, isDisabled)
    }

    /// Deletes a key; a server key's account goes with it, and its sessions end.
    package func delete(_ id: String, of user: String?) async throws {
        let key = try await find(id, of: user)
        try await directory.delete(key: id, of: user)
        if key.isServer { try await users.delete(key.user) }
    }

    /// As long as the key itself, which is random: nothing slower is needed.
    private static func hash(_ secret: String) -> [UInt8] { Array(SHA256.hash(data: Array(secret.utf8))) }
}
