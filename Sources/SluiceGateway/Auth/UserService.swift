import Crypto
package import SluiceCore

/// Registers users, logs them in and out, and changes them: everything of authentication but HTTP.
package struct UserService: Sendable {
    /// What happened to a user whose sessions may have to notice.
    package enum Change: Hashable, Sendable {
        /// Sessions are re-evaluated (AUTH-23).
        case customData
        /// Sessions end at once (AUTH-5), as with the following.
        case disabled, deleted, sessionsRevoked
    }

    package struct Login: Hashable, Sendable {
        package var accessToken: String
        package var refreshToken: String
        package var userID: String
    }

    package struct Settings: Sendable {
        /// Providers that may be used.
        package var providers: Set<String>
        /// Seconds; anonymous users' tokens last five years, as they have no other way back in.
        package var refreshTokenLifetime: Int64
        /// `true` if clients on the loopback have no limits of logins: in development, where all are there.
        package var exemptsLoopback: Bool

        package init(providers: Set<String>, refreshTokenLifetime: Int64 = 60 * 86_400, exemptsLoopback: Bool = false) {
            self.providers = providers
            self.refreshTokenLifetime = refreshTokenLifetime
            self.exemptsLoopback = exemptsLoopback
        }
    }

    package let directory: any UserDirectory
    package let tokens: AccessTokens
    private let settings: Settings
    private let passwords: PasswordHasher
    private let environment: any Environment
    private let changed: @Sendable (_ user: String, Change) async -> Void
    let throttle: LoginThrottle

    static let anonymousLifetime: Int64 = 5 * 365 * 86_400
    /// One custom data document, bytes: it travels in every access token (AUTH-20).
    package static let customDataBytes = 16 << 10

    package init(
        directory: any UserDirectory, tokens: AccessTokens, settings: Settings, passwords: PasswordHasher = PasswordHasher(),
        environment: any Environment = SystemEnvironment(),
        changed: @escaping @Sendable (_ user: String, Change) async -> Void = { _, _ in }
    ) {
        self.directory = directory
        self.tokens = tokens
        self.settings = settings
        self.passwords = passwords
        self.environment = environment
        self.changed = changed
        throttle = LoginThrottle(exemptsLoopback: settings.exemptsLoopback, environment: environment)
    }

    /// - Throws: `providerDisabled`.
    func require(provider: String) throws(SluiceError) {
        guard settings.providers.contains(provider) else {
            throw SluiceError(.providerDisabled, "Logging in by '\(provider)' is not enabled for this app.")
        }
    }

    // MARK: Logging in

    package func loginAnonymously(from address: String) async throws -> Login {
        try require(provider: "anon-user")
        try throttle.countAnonymous(from: address)
        let account = Self.account(provider: "anon-user", email: nil, id: newID())
        try await directory.create(account)
        return try await login(account, lifetime: max(Self.anonymousLifetime, settings.refreshTokenLifetime))
    }

    /// - Throws: `invalidPassword` alike for a wrong password and an unknown e-mail, in the same time; `invalidEmail`; `userDisabled`;
    ///   `TooManyAttempts`; `tooManyRequests` when too many passwords wait to be checked.
    package func login(email: String, password: String, from address: String) async throws -> Login {
        try require(provider: "local-userpass")
        // No account has a longer name, and none is remembered.
        let isPossible = email.utf8.count <= Limits.emailBytes
        let email = isPossible ? try EmailAddress(email).text : ""
        let attempt = try throttle.begin(account: email, from: address)
        var outcome = LoginThrottle.Outcome.undecided
        defer { throttle.end(attempt, outcome) }
        let found = isPossible ? try await directory.find(email: email) : nil
        guard try await passwords.verify(password, hash: found?.passwordHash, of: attempt.line), let account = found else {
            outcome = .failed
            throw Self.wrongPassword
        }
        outcome = .succeeded
        guard !account.isDisabled else { throw SluiceError(.userDisabled, "User \(account.id) is disabled.") }
        return try await login(account, lifetime: settings.refreshTokenLifetime)
    }

    private static var wrongPassword: SluiceError { SluiceError(.invalidPassword, "invalid username/password") }

    /// A login of an account that something else than its password has proved.
    func login(_ account: UserAccount) async throws -> Login { try await login(account, lifetime: settings.refreshTokenLifetime) }

    private func login(_ account: UserAccount, lifetime: Int64) async throws -> Login {
        let refresh = try await tokens.refresh(for: account.id, lifetime: lifetime)
        try await directory.addRefreshToken(hash: AccessTokens.hash(refresh.text), user: account.id, expires: refresh.expires)
        return Login(accessToken: try await tokens.access(for: account), refreshToken: refresh.text, userID: account.id)
    }

    /// A new access token.
    /// - Throws: `invalidSession`, `userDisabled`.
    package func refresh(_ refreshToken: String) async throws -> String {
        let account = try await account(refreshToken: refreshToken)
        return try await tokens.access(for: account)
    }

    /// Makes a refresh token void; access tokens last until their time is over (AUTH-13).
    package func logout(_ refreshToken: String) async throws {
        _ = try await tokens.user(refresh: refreshToken)
        try await directory.revoke(refreshToken: AccessTokens.hash(refreshToken))
    }

    /// The account of a refresh token, as it is now.
    /// - Throws: `invalidSession`, `userDisabled`.
    func account(refreshToken: String) async throws -> UserAccount {
        let named = try await tokens.user(refresh: refreshToken)
        let id = try await directory.user(refreshToken: AccessTokens.hash(refreshToken), now: environment.wallMilliseconds())
        guard id == named, let account = try await directory.find(id: id) else {
            throw SluiceError(.invalidSession, "The refresh token is unknown, expired or revoked.")
        }
        return account
    }

    /// The account of an access token, as it is now.
    /// - Throws: `badAuthentication`, `tokenExpired`, `userDisabled`.
    package func account(accessToken: String) async throws -> UserAccount {
        let verified = try await tokens.verify(accessToken)
        guard let account = try await directory.find(id: verified.user.id) else {
            throw SluiceError(.badAuthentication, "User \(verified.user.id) does not exist any more.")
        }
        guard !account.isDisabled else { throw SluiceError(.userDisabled, "User \(account.id) is disabled.") }
        return account
    }

    // MARK: Registering

    /// - Throws: `invalidEmail`, `badRequest` naming what is wrong, `nameInUse`, `TooManyAttempts`.
    @discardableResult
    package func register(email: String, password: String, from address: String) async throws -> UserAccount {
        try require(provider: "local-userpass")
        try throttle.countRegistration(from: address)
        return try await create(email: email, password: password, line: ClientNetwork(address).name)
    }

    /// Creates an account.
    /// - Parameter line: the line in which the password waits for its hash; operators share one.
    package func create(
        email: String, password: String, customData: JSON = .object([]), line: String = ""
    ) async throws -> UserAccount {
        let email = try EmailAddress(email).text
        guard PasswordHasher.lengths.contains(password.count) else {
            throw SluiceError(.badRequest, "password must be between 6 and 128 characters", fix: "Choose another password.")
        }
        try Self.check(customData)
        // Before the costly hash; the directory has the last word.
        if try await directory.find(email: email) != nil { throw SluiceError(.nameInUse, "name already in use: \(email)") }
        var account = Self.account(provider: "local-userpass", email: email, id: newID())
        account.passwordHash = try await passwords.hash(password, of: line)
        account.customData = customData
        try await directory.create(account)
        return account
    }

    /// Creates the account of a server key (AUTH 17.2).
    func createServer(name: String, customData: JSON) async throws -> UserAccount {
        try Self.check(customData)
        var account = Self.account(provider: APIKeys.provider, email: nil, id: newID())
        account.data = ["name": .string(name), "type": "server"]
        account.customData = customData
        try await directory.create(account)
        return account
    }

    private static func account(provider: String, email: String?, id: String) -> UserAccount {
        UserAccount(
            id: id, email: email, provider: provider, identities: [["id": .string(email ?? id), "provider_type": .string(provider)]],
            data: email.map { ["email": .string($0)] } ?? .object([]))
    }

    /// An ObjectId: the time, then random bytes.
    func newID() -> String {
        let seconds = UInt32(truncatingIfNeeded: environment.wallMilliseconds() / 1_000)
        let random = SymmetricKey(size: .bits128).withUnsafeBytes { Array($0.prefix(8)) }
        return Hex.encode(withUnsafeBytes(of: seconds.bigEndian, Array.init) + random)
    }

    // MARK: Changing

    /// - Throws: `userNotFound`, `badRequest` when it is no object or too large.
    package func setCustomData(_ data: JSON, of id: String) async throws {
        try Self.check(data)
        let before = try await directory.find(id: id)?.customData
        try await directory.setCustomData(id: id, data)
        // What is equal decides nothing anew: the user's sessions go on (PERM-3).
        if before?.isSame(as: data) != true { await changed(id, .customData) }
    }

    package func setDisabled(_ isDisabled: Bool, of id: String) async throws {
        try await directory.setDisabled(id: id, isDisabled)
        if isDisabled { await changed(id, .disabled) }
    }

    package func revokeSessions(of id: String) async throws {
        guard try await directory.find(id: id) != nil else { throw SluiceError(.userNotFound, "There is no user \(id).") }
        try await directory.revokeRefreshTokens(user: id)
        await changed(id, .sessionsRevoked)
    }

    package func delete(_ id: String) async throws {
        try await directory.delete(id: id)
        await changed(id, .deleted)
    }

    private static func check(_ customData: JSON) throws(SluiceError) {
        guard customData.members != nil else { throw SluiceError(.badRequest, "Custom data must be an object.") }
        let count = customData.utf8.count
        guard count <= customDataBytes else {
            throw SluiceError(
                .badRequest, "The custom data have \(count) bytes, over the limit of \(customDataBytes).",
                fix: "Keep them small: they travel in every token.")
        }
    }
}

extension JSON {
    /// Equality that does not look at the order of keys, which the database does not keep.
    fileprivate func isSame(as other: JSON) -> Bool {
        switch (self, other) {
        case (.object(let left), .object(let right)):
            left.count == right.count && left.allSatisfy { member in other[member.key].map { member.value.isSame(as: $0) } == true }
        case (.array(let left), .array(let right)): left.count == right.count && zip(left, right).allSatisfy { $0.isSame(as: $1) }
        default: self == other
        }
    }
}
