import GatewayTestSupport
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import SluiceCore
import SluiceGateway
import SluiceIdentity
import SluiceNet
import SluicePorts
import SluiceValues
import Synchronization

/// Accounts and logins in memory, with the promises of the port.
final class MemoryDirectory: UserDirectory, APIKeyDirectory, PasswordResetDirectory {
    private struct OpenLogin {
        var login: Login
        var key: String?
        var generation: Int64 = 0
    }

    private struct Reset {
        var user: String
        var hash: [UInt8]
        var expires: Int64
    }

    private struct Key {
        var key: APIKey
        var hash: [UInt8]
    }

    private struct State {
        var keys: [Key] = []
        var accounts: [String: UserAccount] = [:]
        var logins: [String: OpenLogin] = [:]
        var resets: [String: Reset] = [:]

        func user(of reset: String, _ hash: [UInt8], _ now: Int64) -> String? {
            resets[reset].flatMap { $0.hash == hash && $0.expires > now ? $0.user : nil }
        }
    }

    private let state = Mutex(State())
    private let outage = Mutex<SluiceError?>(nil)

    /// Lets every check of a login and every search of an account fail with this error; nil ends it.
    func fail(_ error: SluiceError?) { outage.withLock { $0 = error } }

    private func requireService() throws { if let error = outage.withLock(\.self) { throw error } }

    func create(_ account: UserAccount) async throws {
        try state.withLock { state in
            let isTaken = state.accounts.values.contains { $0.id == account.id || ($0.email != nil && $0.email == account.email) }
            if isTaken { throw SluiceError(.nameInUse, "The name \(account.email ?? account.id) is in use.") }
            let identities = account.identities.array ?? []
            if state.accounts.values.contains(where: { other in identities.contains { other.identities.array?.contains($0) == true } }) {
                throw SluiceError(.identityInUse, "The identity belongs to another user.")
            }
            state.accounts[account.id] = account
        }
    }

    func find(id: String) async throws -> UserAccount? {
        try requireService()
        return state.withLock { $0.accounts[id] }
    }

    func find(email: String) async throws -> UserAccount? {
        try requireService()
        return state.withLock { $0.accounts.values.first { $0.email == email } }
    }

    private func find(identity: UserIdentityKey) async throws -> UserAccount? {
        try requireService()
        return state.withLock { $0.accounts.values.first { $0.identities.array?.contains(identity.json) == true } }
    }

    func setData(id: String, _ data: JSON) async throws {
        let (new, names) = (data.members ?? [], Set((data.members ?? []).map(\.key)))
        try change(id) { account in
            account.data = .object((account.data.members ?? []).filter { !names.contains($0.key) } + new)
        }
    }

    func link(_ link: IdentityLink, to id: String) async throws {
        let owner =
            if let password = link.password { try await find(email: password.email) } else { try await find(identity: link.identity) }
        if owner?.id == id { return }
        if link.password != nil, try await find(id: id)?.email != nil {
            throw SluiceError(.identityInUse, "The user has another e-mail address.")
        }
        if let owner {
            guard owner.isUnclaimed, link.password != nil else {
                throw SluiceError(.identityInUse, "The identity belongs to another user.")
            }
            try await delete(id: owner.id)
        }
        try change(id) { account in
            account.identities = .array((account.identities.array ?? []) + [link.identity.json])
            account.data = .object((account.data.members ?? []) + (link.data.members ?? []))
            account.email = link.password?.email ?? account.email
            account.passwordHash = link.password?.hash ?? account.passwordHash
            if account.provider == "anon-user" { account.provider = link.identity.provider }
        }
    }

    func unlink(_ identity: UserIdentityKey, from id: String) async throws {
        let identities = try await find(id: id)?.identities.array ?? []
        let others = identities.filter { $0 != identity.json }
        let isOpen = others.contains { $0["provider_type"]?.string != "anon-user" }
        guard isOpen, others.count < identities.count else { throw SluiceError(.badRequest, "The identity cannot be removed.") }
        try change(id) { $0.identities = .array(others) }
        try await endLogins(of: id)
    }

    func list(after id: String, limit: Int) async throws -> [UserAccount] {
        state.withLock { $0.accounts.values.filter { $0.id > id }.sorted { $0.id < $1.id }.prefix(limit).map(\.self) }
    }

    func setCustomData(id: String, _ data: JSON) async throws { try change(id) { $0.customData = data } }

    func setDisabled(id: String, _ isDisabled: Bool) async throws {
        try change(id) { $0.isDisabled = isDisabled }
        if isDisabled { try await endLogins(of: id) }
    }

    func setPassword(id: String, _ hash: String) async throws {
        try change(id) { $0.passwordHash = hash }
        try await endLogins(of: id)
    }

    func delete(id: String) async throws {
        try change(id) { _ in }
        state.withLock { state in
            state.accounts[id] = nil
            state.logins = state.logins.filter { $0.value.login.user != id }
        }
    }

    func addReset(_ id: String, hash: [UInt8], user: String, expires: Int64) {
        state.withLock { $0.resets[id] = Reset(user: user, hash: hash, expires: expires) }
    }

    func add(_ token: LinkToken, email: String) async throws -> String? {
        guard let account = try await find(email: email), !account.isDisabled else { return nil }
        addReset(token.id, hash: token.hash, user: account.id, expires: token.expires)
        return account.id
    }

    func remove(resetToken id: String) async throws { state.withLock { $0.resets[id] = nil } }

    func user(resetToken id: String, hash: [UInt8], now: Int64) async throws -> String? {
        try requireService()
        return state.withLock { $0.user(of: id, hash, now) }
    }

    func setPassword(_ password: String, resetToken id: String, hash: [UInt8], now: Int64) async throws -> Bool {
        guard let user = state.withLock({ $0.user(of: id, hash, now) }) else { return false }
        try change(user) { $0.passwordHash = password }
        state.withLock { state in state.resets = state.resets.filter { $0.value.user != user } }
        try await endLogins(of: user)
        return true
    }

    func find(id: String, login: String) async throws -> (account: UserAccount, isLoggedIn: Bool)? {
        try requireService()
        return state.withLock { state in state.accounts[id].map { ($0, state.logins[login]?.login.user == id) } }
    }

    func add(_ login: Login, _ proof: Login.Proof) async throws -> Bool {
        state.withLock { state in
            guard let account = state.accounts[login.user], !account.isDisabled else { return false }
            var open = OpenLogin(login: login)
            switch proof {
            case .password(let hash): if account.passwordHash != hash { return false }
            case .apiKey(let id):
                if !state.keys.contains(where: { $0.key.id == id && !$0.key.isDisabled }) { return false }
                open.key = id
            case .identity(let identity): if account.identities.array?.contains(identity.json) != true { return false }
            case .none: break
            }
            state.accounts[login.user]?.isUnclaimed = false
            state.logins[login.id] = open
            return true
        }
    }

    func add(_ login: String, of identity: UserIdentityKey, expires: Int64) async throws -> UserAccount? {
        guard let account = try await find(identity: identity), !account.isDisabled else { return try await find(identity: identity) }
        return try await add(Login(id: login, user: account.id, expires: expires), .identity(identity)) ? account : nil
    }

    func take(login id: String, generation: Int64, now: Int64) async throws -> UserAccount {
        try requireService()
        return try state.withLock { state in
            guard let open = state.logins[id], open.login.expires > now, let account = state.accounts[open.login.user] else {
                throw SluiceError(.invalidSession, "The login has ended.")
            }
            if account.isDisabled { throw SluiceError(.userDisabled, "User \(account.id) is disabled.") }
            guard generation >= open.generation else {
                state.logins[id] = nil
                throw SluiceError(.invalidSession, "The refresh token was replaced by a newer one.")
            }
            state.logins[id]?.generation = generation
            return account
        }
    }

    func end(login: String) async throws { state.withLock { $0.logins[login] = nil } }

    func endLogins(of user: String) async throws {
        state.withLock { state in state.logins = state.logins.filter { $0.value.login.user != user } }
    }

    func add(_ key: APIKey, hash: [UInt8], most: Int) async throws {
        try state.withLock { state in
            let others = state.keys.map(\.key).filter { key.isServer ? $0.isServer : !$0.isServer && $0.user == key.user }
            if others.count >= most { throw SluiceError(.limitsExceeded, "There are \(others.count) API keys, and \(most) at most.") }
            if others.contains(where: { $0.name == key.name }) {
                throw SluiceError(.nameInUse, "An API key named '\(key.name)' already exists.")
            }
            state.keys.append(Key(key: key, hash: hash))
        }
    }

    func find(keyHash hash: [UInt8]) async throws -> APIKey? { state.withLock { $0.keys.first { $0.hash == hash }?.key } }
    func keys(of user: String?) async throws -> [APIKey] {
        state.withLock { $0.keys.map(\.key).filter { user == nil ? $0.isServer : !$0.isServer && $0.user == user } }
    }

    func setDisabled(key id: String, of user: String?, _ isDisabled: Bool) async throws {
        guard try await keys(of: user).contains(where: { $0.id == id }) else {
            throw SluiceError(.apiKeyNotFound, "API key \(id) does not exist.")
        }
        state.withLock { state in
            for index in state.keys.indices where state.keys[index].key.id == id { state.keys[index].key.isDisabled = isDisabled }
            if isDisabled { state.logins = state.logins.filter { $0.value.key != id } }
        }
    }

    func delete(key id: String, of user: String?) async throws {
        guard try await keys(of: user).contains(where: { $0.id == id }) else {
            throw SluiceError(.apiKeyNotFound, "API key \(id) does not exist.")
        }
        state.withLock { state in
            state.keys.removeAll { $0.key.id == id }
            state.logins = state.logins.filter { $0.value.key != id }
        }
    }

    private func change(_ id: String, _ body: (inout UserAccount) -> Void) throws {
        try state.withLock { state in
            guard var account = state.accounts[id] else { throw SluiceError(.userNotFound, "User \(id) does not exist.") }
            body(&account)
            state.accounts[id] = account
        }
    }
}

/// A clock that stands until it is moved.
final class StillEnvironment: SluiceCore.Environment {
    private let milliseconds = Mutex<Int64>(1_700_000_000_000)

    func advance(seconds: Int64) { milliseconds.withLock { $0 += seconds * 1_000 } }
    func wallMilliseconds() -> Int64 { milliseconds.withLock(\.self) }
    func monotonicNanoseconds() -> UInt64 { UInt64(wallMilliseconds()) * 1_000_000 }
    func random() -> UInt64 { 4 }
    func sleep(nanoseconds: UInt64) async throws {}
}

/// Everything of authentication, without a socket.
struct AuthFixture {
    /// What an app does with mails and functions.
    struct Accounts {
        var login = PasswordLogin()
        var hasMail = false
        var functions: any AppFunctions = NoFunctions()
        var passwords = PasswordPolicy()
        /// The function for new users.
        var creation: String?
    }

    let directory = MemoryDirectory()
    let pending: MemoryPendingUsers
    let mailer = MemoryMailer()
    let accounts: EmailAccounts
    let environment = StillEnvironment()
    let users: UserService
    let changes = Shared<[String]>([])
    private let responder: any HTTPResponder<TestContext>

    static let key = [UInt8](repeating: 7, count: 32)
    static let cost = RunningGateway.passwordCost

    let metrics = Metrics()

    init(
        providers: Set<String> = ["anon-user", "local-userpass", "api-key"], issuers: [String: TokenLogins.Provider] = [:],
        publicURL: String? = nil, exemptsLoopback: Bool = false, functions: any AppFunctions = NoFunctions(),
        _ app: Accounts = Accounts()
    ) async throws {
        let tokenLogins = TokenLogins(issuers)
        let providers = providers.union(issuers.keys)
        let tokens = try await AccessTokens(appID: "shop", key: Self.key, environment: environment)
        pending = MemoryPendingUsers(directory)
        var settings = UserService.Settings(providers: providers, exemptsLoopback: exemptsLoopback)
        settings.passwords = app.passwords
        users = UserService(
            directory: directory, pending: pending, tokens: tokens, settings: settings,
            passwords: PasswordHasher(cost: Self.cost), creation: UserCreation(app.creation, of: app.functions),
            environment: environment, changed: { [changes] user, change in changes.append("\(user) \(change)") })
        let router = Router(context: TestContext.self)
        router.add(middleware: ErrorMiddleware())
        accounts = EmailAccounts(
            app.login, users: users, pending: pending, resets: directory, mail: app.hasMail ? mailer.mail : nil, functions: app.functions)
        let keys = APIKeys(directory: directory, users: users)
        AuthRoutes(
            users: users, keys: keys, accounts: accounts,
            identities: IdentityLogins(users: users, tokens: tokenLogins, logger: Logger(label: "auth")),
            functions: functions,
            settings: .init(appID: "shop", publicOrigin: try publicURL.map { try ServerOrigin(url: $0) }),
            metrics: metrics
        ).add(to: router)
        APIKeyRoutes(keys: keys, users: users).add(to: router)
        APIKeyRoutes(keys: keys, users: users).addAdmin(to: router.group("admin"))
        AdminUserRoutes(users: users).add(to: router.group("admin"))
        AdminAccountRoutes(accounts: accounts).add(to: router.group("admin"))
        AccountPages(accounts: accounts, appID: "shop", app: "The Shop").add(to: router)
        responder = router.buildResponder()
    }

    func call(
        _ method: HTTPRequest.Method, _ path: String, _ body: JSON? = nil, token: String? = nil, from address: String = "10.0.0.1",
        host: String? = "gateway:9090", forwarded: ForwardedOrigin = .none
    ) async throws -> (status: Int, json: JSON, headers: HTTPFields) {
        try await call(method, path, text: body?.text ?? "", token: token, from: address, host: host, forwarded: forwarded)
    }

    func call(
        _ method: HTTPRequest.Method, _ path: String, text body: String, token: String? = nil, from address: String = "10.0.0.1",
        host: String? = "gateway:9090", forwarded: ForwardedOrigin = .none
    ) async throws -> (status: Int, json: JSON, headers: HTTPFields) {
        let answer = try await text(method, path, body, token: token, from: address, host: host, forwarded: forwarded)
        return (answer.status, answer.text.isEmpty ? .null : try JSON.parse(answer.text), answer.headers)
    }

    /// An answer that may be a page.
    func text(
        _ method: HTTPRequest.Method, _ path: String, _ body: String = "", token: String? = nil, from address: String = "10.0.0.1",
        host: String? = "gateway:9090", forwarded: ForwardedOrigin = .none
    ) async throws -> (status: Int, text: String, headers: HTTPFields) {
        var head = HTTPRequest(method: method, scheme: "http", authority: host, path: path)
        if let token { head.headerFields[.authorization] = "Bearer \(token)" }
        let request = Request(head: head, body: RequestBody(buffer: ByteBuffer(string: body)))
        let context = TestContext(source: .init(address: address, forwarded: forwarded))
        let response = try await responder.respond(to: request, context: context)
        let collector = Collector()
        try await response.body.write(collector)
        return (response.status.code, collector.text, response.headers)
    }

    /// Logs in by e-mail; nil when it is refused.
    func login(_ email: String, _ password: String, from address: String = "10.0.0.1") async throws -> (status: Int, json: JSON) {
        let answer = try await call(
            .post, "/api/client/v2.0/app/shop/auth/providers/local-userpass/login",
            ["username": .string(email), "password": .string(password)], from: address)
        return (answer.status, answer.json)
    }
}

/// A shared list.
final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    init(_ value: Value) { self.value = Mutex(value) }
    var current: Value { value.withLock(\.self) }
    func append<Element>(_ element: Element) where Value == [Element] { value.withLock { $0.append(element) } }
}

struct TestContext: ForwardedContext {
    struct Source: RequestContextSource {
        var address: String
        var forwarded: ForwardedOrigin
        var logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    }

    var coreContext: CoreRequestContextStorage
    let remoteAddress: SocketAddress?
    let forwardedOrigin: ForwardedOrigin

    init(source: Source) {
        coreContext = .init(source: source)
        remoteAddress = try? SocketAddress(ipAddress: source.address, port: 1)
        forwardedOrigin = source.forwarded
    }
}

private final class Collector: ResponseBodyWriter, Sendable {
    private let buffer = Mutex(ByteBuffer())
    var text: String { buffer.withLock { String(buffer: $0) } }
    func write(_ bytes: ByteBuffer) async throws {
        _ = buffer.withLock { $0.writeImmutableBuffer(bytes) }
    }
    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
