package import SluiceCore
import SluiceIdentity
package import SluicePorts
package import SluiceValues

/// Registers users, logs them in and out, and changes them. It is authentication without HTTP.
package struct UserService: Sendable {
    /// A change of a user that affects open sessions.
    package enum Change: Hashable, Sendable {
        /// Sessions evaluate their rules again, as rules may read custom data.
        case customData
        /// Sessions end at once.
        case disabled, deleted, loggedOut
    }

    /// The answer to a login.
    package struct Tokens: Hashable, Sendable {
        package var accessToken: String
        package var refreshToken: String
        package var userID: String
    }

    package struct Settings: Sendable {
        /// The names of the enabled providers.
        package var providers: Set<String>
        /// The lifetime of refresh tokens, in seconds. Anonymous users get five years or more, as they cannot log in again.
        package var refreshTokenLifetime: Int64
        /// `true` to exempt loopback clients from login limits, in development.
        package var exemptsLoopback: Bool
        /// The passwords that are accepted when one is set.
        package var passwords = PasswordPolicy()

        package init(providers: Set<String>, refreshTokenLifetime: Int64 = 60 * 86_400, exemptsLoopback: Bool = false) {
            self.providers = providers
            self.refreshTokenLifetime = refreshTokenLifetime
            self.exemptsLoopback = exemptsLoopback
        }
    }

    package let directory: any UserDirectory
    /// The users who cannot log in yet.
    private let pending: any PendingUserDirectory
    package let tokens: AccessTokens
    let settings: Settings
    let passwords: PasswordHasher
    /// The function for new users; nil for none.
    private let creation: UserCreation?
    let environment: any Environment
    let changed: @Sendable (_ user: String, Change) async -> Void
    let throttle: LoginThrottle

    static let anonymousLifetime: Int64 = 5 * 365 * 86_400
    /// The largest custom data document, in bytes. Every access token contains it.
    package static let customDataBytes = 16 << 10

    package init(
        directory: any UserDirectory, pending: any PendingUserDirectory, tokens: AccessTokens, settings: Settings,
        passwords: PasswordHasher = PasswordHasher(), creation: UserCreation? = nil, environment: any Environment = SystemEnvironment(),
        changed: @escaping @Sendable (_ user: String, Change) async -> Void = { _, _ in }
    ) {
        self.directory = directory
        self.pending = pending
        self.tokens = tokens
        self.settings = settings
        self.passwords = passwords
        self.creation = creation
        self.environment = environment
        self.changed = changed
        throttle = LoginThrottle(exemptsLoopback: settings.exemptsLoopback, environment: environment)
    }

    /// `true` to exempt loopback clients from limits.
    var exemptsLoopback: Bool { settings.exemptsLoopback }

    /// - Throws: `providerDisabled`.
    func require(provider: String) throws(SluiceError) {
        guard settings.providers.contains(provider) else {
            throw SluiceError(.providerDisabled, "Logging in by '\(provider)' is not enabled for this app.")
        }
    }

    // MARK: Logging in

    package func loginAnonymously(from address: String) async throws -> Tokens {
        try require(provider: "anon-user")
        try throttle.countAnonymous(from: address)
        let account = try await add(Self.account(provider: "anon-user", email: nil, id: newID()))
        return try await login(account, .none, lifetime: max(Self.anonymousLifetime, settings.refreshTokenLifetime))
    }

    /// Logs in with e-mail and password.
    ///
    /// - Throws: `invalidPassword` for a wrong password and for an unknown e-mail, in the same time. `userNotConfirmed` for the password of
    ///   a pending user. Also `invalidEmail`, `userDisabled`, `TooManyAttempts`, and `tooManyRequests` if too many passwords wait for
    ///   verification.
    package func login(email: String, password: String, from address: String) async throws -> Tokens {
        let (account, hash) = try await verify(email: email, password: password, from: address)
        return try await login(account, .password(hash: hash))
    }

    /// Returns the account of an e-mail and a password, with the hash of the password.
    func verify(email: String, password: String, from address: String) async throws -> (account: UserAccount, hash: String) {
        try require(provider: "local-userpass")
        // No account has a longer name. The limits count it under the empty name and store nothing of it.
        let isPossible = email.utf8.count <= Limits.emailBytes
        let email = isPossible ? try EmailAddress(email).text : ""
        let attempt = try throttle.begin(account: email, from: address)
        var outcome = LoginThrottle.Outcome.undecided
        defer { throttle.end(attempt, outcome) }
        let found = isPossible ? try await directory.find(email: email) : nil
        let waiting = isPossible && found == nil ? try await pending.find(pendingEmail: email) : nil
        let stored = found?.passwordHash ?? waiting?.passwordHash
        guard try await passwords.verify(password, hash: stored, of: attempt.line), let hash = stored else {
            outcome = .failed
            throw Self.wrongPassword
        }
        guard let account = found else { throw SluiceError(.userNotConfirmed, "confirmation required") }
        // The password was correct, so the attempt is no guess, even if the user is disabled.
        outcome = .succeeded
        guard !account.isDisabled else { throw SluiceError(.userDisabled, "User \(account.id) is disabled.") }
        return (account, hash)
    }

    static var wrongPassword: SluiceError { SluiceError(.invalidPassword, "invalid username/password") }

    /// Logs in an account whose proof the caller has checked.
    ///
    /// - Throws: `invalidSession` if the proof does not hold any more, such as a password that was changed meanwhile.
    func login(_ account: UserAccount, _ proof: Login.Proof, lifetime: Int64? = nil) async throws -> Tokens {
        let login = tokens.login(of: account.id, lifetime: lifetime ?? settings.refreshTokenLifetime)
        guard try await directory.add(login, proof) else {
            throw SluiceError(.invalidSession, "The account of user \(account.id) changed during the login.", fix: "Log in again.")
        }
        return issue(login, of: account)
    }

    func issue(_ login: Login, of account: UserAccount) -> Tokens {
        Tokens(
            accessToken: tokens.access(for: account, login: login.id),
            refreshToken: tokens.text(of: .init(login: login, generation: 0)), userID: account.id)
    }

    /// Returns a new access token, and the next refresh token if the client rotates them.
    ///
    /// The old refresh token stays valid until the next one is used, so that a lost answer ends no login. Its use afterwards does.
    /// - Throws: `invalidSession`, `userDisabled`.
    package func refresh(_ refreshToken: String, rotating: Bool = false) async throws -> (access: String, refresh: String?) {
        var refresh = try await tokens.refresh(refreshToken)
        let account = try await account(of: refresh)
        refresh.generation += 1
        return (tokens.access(for: account, login: refresh.login.id), rotating ? tokens.text(of: refresh) : nil)
    }

    /// Ends the login of a refresh token, and its sessions.
    ///
    /// - Parameter everywhere: `true` for all logins of the user.
    /// - Throws: `invalidSession`; a token of a login that has ended is accepted unless `everywhere`.
    package func logOut(_ refreshToken: String, everywhere: Bool = false) async throws {
        let refresh = try await tokens.refresh(refreshToken)
        if everywhere { return try await logOut(user: try await account(of: refresh).id) }
        try await directory.end(login: refresh.login.id)
        await changed(refresh.login.user, .loggedOut)
    }

    /// Ends all logins of a user, and the sessions.
    package func logOut(user id: String) async throws {
        guard try await directory.find(id: id) != nil else { throw SluiceError(.userNotFound, "User \(id) does not exist.") }
        try await directory.endLogins(of: id)
        await changed(id, .loggedOut)
    }

    /// Returns the current account of a refresh token.
    ///
    /// - Throws: `invalidSession`, `userDisabled`.
    func account(refreshToken: String) async throws -> UserAccount { try await account(of: try await tokens.refresh(refreshToken)) }

    private func account(of refresh: AccessTokens.Refresh) async throws -> UserAccount {
        let account = try await directory.take(
            login: refresh.login.id, generation: refresh.generation, now: environment.wallMilliseconds())
        guard account.id == refresh.login.user else { throw SluiceError(.invalidSession, "The login belongs to another user.") }
        return account
    }

    /// Returns the current account of an access token.
    ///
    /// - Throws: `badAuthentication`, `tokenExpired`, `userDisabled`, `invalidSession`.
    package func account(accessToken: String) async throws -> UserAccount { try await session(accessToken: accessToken).account }

    /// Returns the current account of an access token, and the id of its login.
    func session(accessToken: String) async throws -> (account: UserAccount, login: String) {
        let verified = try await tokens.verify(accessToken)
        return (try await directory.account(id: verified.user.id, login: verified.login), verified.login)
    }

    /// Returns an account that exists and is enabled.
    ///
    /// - Throws: `badAuthentication`, `userDisabled`.
    static func usable(_ account: UserAccount?, _ id: String) throws(SluiceError) -> UserAccount {
        guard let account else { throw SluiceError(.badAuthentication, "User \(id) no longer exists.") }
        guard !account.isDisabled else { throw SluiceError(.userDisabled, "User \(id) is disabled.") }
        return account
    }

    // MARK: Registering

    /// Registers a user with e-mail and password.
    ///
    /// - Throws: `providerDisabled`; `invalidEmail`; `badRequest` with the problem; `nameInUse`; `TooManyAttempts`.
    @discardableResult
    package func register(email: String, password: String, from address: String) async throws -> UserAccount {
        try require(provider: "local-userpass")
        try throttle.countRegistration(from: address)
        return try await create(email: email, password: password, line: ClientNetwork(address).name, isUnclaimed: true)
    }

    /// Creates an account.
    ///
    /// - Parameters:
    ///   - line: The queue line for the password hash. Operators share one.
    ///   - isUnclaimed: `true` if the user registers, and may then link the e-mail to another account of theirs.
    /// - Throws: `invalidEmail`, `badRequest`, `nameInUse`, `tooManyRequests`.
    package func create(
        email: String, password: String, customData: JSON = .object([]), line: String = "", isUnclaimed: Bool = false
    ) async throws -> UserAccount {
        let email = try EmailAddress(email).text
        try settings.passwords.check(password)
        try Self.check(customData)
        // Saves the costly hash in the usual case. `create` decides, as another registration may be faster.
        if try await directory.find(email: email) != nil { throw SluiceError(.nameInUse, "name already in use: \(email)") }
        var account = Self.account(provider: "local-userpass", email: email, id: newID())
        account.passwordHash = try await passwords.hash(password, of: line)
        account.customData = customData
        account.isUnclaimed = isUnclaimed
        return try await add(account)
    }

    /// Calls the app's function for new users, if it has one.
    ///
    /// - Throws: The errors of the function. The account must not be created then.
    func permit(_ account: UserAccount) async throws(SluiceError) { try await creation?.permit(account) }

    /// Adds an account, once the app's function for new users has permitted it.
    ///
    /// - Returns: The account as it is stored. If a table of the app has a row for the user, it has its custom data.
    /// - Throws: `nameInUse`, `identityInUse`, and the errors of the function.
    func add(_ account: UserAccount) async throws -> UserAccount {
        try await permit(account)
        try await directory.create(account)
        return try await directory.find(id: account.id) ?? account
    }

    /// Returns the hash of a new password.
    ///
    /// - Throws: `badRequest` if the app does not accept it, `tooManyRequests`.
    func hash(newPassword password: String, line: String) async throws(SluiceError) -> String {
        try settings.passwords.check(password)
        return try await passwords.hash(password, of: line)
    }

    /// Creates the account of a server key.
    func createServer(name: String, customData: JSON) async throws -> UserAccount {
        try Self.check(customData)
        var account = Self.account(provider: APIKeys.provider, email: nil, id: newID())
        account.data = ["name": .string(name), "type": "server"]
        account.customData = customData
        return try await add(account)
    }

    static func account(provider: String, email: String?, id: String) -> UserAccount {
        UserAccount(
            id: id, email: email, provider: provider, identities: [["id": .string(email ?? id), "provider_type": .string(provider)]],
            data: email.map { ["email": .string($0)] } ?? .object([]))
    }

    /// Returns an ObjectId: the time, then random bytes.
    func newID() -> String {
        let seconds = UInt32(truncatingIfNeeded: environment.wallMilliseconds() / 1_000)
        return Hex.encode(withUnsafeBytes(of: seconds.bigEndian, Array.init)) + Hex.random(bytes: 8)
    }

    // MARK: Changing

    /// Replaces the custom data and notifies sessions if they differ.
    ///
    /// - Throws: `userNotFound`; `badRequest` if the data is no object or too large.
    package func setCustomData(_ data: JSON, of id: String) async throws {
        try Self.check(data)
        let before = try await directory.find(id: id)?.customData
        try await directory.setCustomData(id: id, data)
        // Equal data cannot change any rule's result, so the sessions continue.
        if before?.isSame(as: data) != true { await changed(id, .customData) }
    }

    package func setDisabled(_ isDisabled: Bool, of id: String) async throws {
        try await directory.setDisabled(id: id, isDisabled)
        if isDisabled { await changed(id, .disabled) }
    }

    /// Ends the open sessions of a user whose logins the directory has ended.
    func loginsEnded(of id: String) async { await changed(id, .loggedOut) }

    package func delete(_ id: String) async throws {
        try await directory.delete(id: id)
        await changed(id, .deleted)
    }

    private static func check(_ customData: JSON) throws(SluiceError) {
        guard customData.members != nil else { throw SluiceError(.badRequest, "Custom data must be a JSON object.") }
        let count = customData.utf8.count
        guard count <= customDataBytes else {
            throw SluiceError(
                .badRequest, "The custom data has \(count) bytes, over the limit of \(customDataBytes).",
                fix: "Reduce it: every token contains it.")
        }
    }
}

extension JSON {
    /// Returns `true` if both values are equal, regardless of the order of keys, which the database does not keep.
    func isSame(as other: JSON) -> Bool {
        switch (self, other) {
        case (.object(let left), .object(let right)):
            left.count == right.count && left.allSatisfy { member in other[member.key].map { member.value.isSame(as: $0) } == true }
        case (.array(let left), .array(let right)): left.count == right.count && zip(left, right).allSatisfy { $0.isSame(as: $1) }
        default: self == other
        }
    }
}

extension UserDirectory {
    /// Returns the account of a login.
    ///
    /// - Throws: `badAuthentication` for a deleted user, `userDisabled`, `invalidSession` if the login has ended.
    func account(id: String, login: String) async throws -> UserAccount {
        let found = try await find(id: id, login: login)
        let account = try UserService.usable(found?.account, id)
        guard found?.isLoggedIn == true else { throw SluiceError(.invalidSession, "The login of user \(id) has ended.") }
        return account
    }
}
