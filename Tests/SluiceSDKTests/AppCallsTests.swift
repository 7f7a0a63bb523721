import Foundation
import SluiceCore
import SluiceSync
import SluiceValues
import Synchronization
import Testing

@testable import SluiceSDK

/// What an app asks of its users and its server beside logging in.
@Suite(.timeLimit(.minutes(1))) struct AppCallsTests {
    let folder: TemporaryFolder
    /// One whose tokens say nothing.
    let server: CannedServer

    init() throws {
        folder = try TemporaryFolder()
        server = try AppCallsTests.server()
    }

    private static func token(_ claims: String) -> String {
        let text = Data(claims.utf8).base64EncodedString()
        return "h.\(text.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")).s"
    }

    /// Logs everybody in whose tokens have these claims.
    private static func server(_ claims: String = "{}") throws -> CannedServer {
        let token = AppCallsTests.token(claims)
        return try CannedServer { request in
            if request.line.contains("/auth/session") { return .init(status: 201, body: #"{"access_token":"\#(token)"}"#) }
            let user = request.line.contains("anon-user") ? "anon" : "ann"
            return .init(
                status: 200, body: #"{"access_token":"\#(token)","refresh_token":"refresh","user_id":"\#(user)","device_id":"d"}"#)
        }
    }

    private func app(_ url: String, timeout: UInt? = nil) -> App {
        App(id: "shop", configuration: AppConfiguration(baseURL: url, defaultRequestTimeoutMS: timeout, storageDirectory: folder.url))
    }

    private let ann = Credentials.emailPassword(email: "ann@example.com", password: "secret")

    // MARK: Profiles

    @Test func `a user is known by what the server's token says, also after a log-out and the end of the program`() async throws {
        let claims = #"""
            {"identities":[{"id":"ann@example.com","provider_type":"local-userpass"},{"id":"7"}],
             "data":{"email":"ann@example.com","name":"Ann","picture_url":"http://p","first_name":"A","last_name":"B","gender":"f",
                     "birthday":"1","min_age":"2","max_age":"3","level":4}}
            """#
        let server = try AppCallsTests.server(claims)
        let user = try await app(server.url).login(credentials: ann)
        try await user.logOut()
        for user in [user, try #require(app(server.url, timeout: 5_000).allUsers["ann"])] {
            #expect(user.identities == [UserIdentity(providerType: "local-userpass", identifier: "ann@example.com")])
            let profile = user.profile
            #expect(profile.email == "ann@example.com" && profile.name == "Ann" && profile.pictureURL == "http://p")
            #expect(profile.firstName == "A" && profile.lastName == "B" && profile.gender == "f")
            #expect(profile.birthday == "1" && profile.minAge == "2" && profile.maxAge == "3")
            #expect(profile.metadata["level"]??.asInt() == 4)
        }
    }

    @Test func `where the token says nothing a user is known by what they logged in with`() async throws {
        let app = app(server.url)
        let user = try await app.login(credentials: ann)
        #expect(user.identities == [UserIdentity(providerType: "local-userpass", identifier: "ann@example.com")])
        #expect(user.profile.email == "ann@example.com" && user.profile.name == nil)
        let nobody = try await app.login(credentials: .anonymous)
        #expect(nobody.identities == [UserIdentity(providerType: "anon-user", identifier: "anon")])
        #expect(nobody.profile.email == nil && nobody.profile.metadata.isEmpty)
        // Stored by an earlier version.
        #expect(try folder.user().identities == [UserIdentity(providerType: "anon-user", identifier: "u1")])
    }

    // MARK: News

    /// Collects from any thread.
    private final class Heard: Sendable {
        private let all = Mutex<[String]>([])
        func add(_ text: String) { all.withLock { $0.append(text) } }
        /// Gives what there is, once.
        func take() -> [String] {
            all.withLock { all in
                defer { all = [] }
                return all
            }
        }
    }

    @Test func `an app and a user tell of logins, switches, new tokens, log-outs and removals`() async throws {
        let app = app(server.url)
        let heard = Heard()
        let news = app.subscribe { heard.add("app \($0.currentUser?.id ?? "nobody")") }
        let ann = try await app.login(credentials: self.ann)
        #expect(heard.take() == ["app ann"])
        let own = ann.subscribe { heard.add("\($0.id) \($0.state)") }
        let nobody = try await app.login(credentials: .anonymous)
        #expect(heard.take() == ["app anon"])
        app.switch(to: ann)
        #expect(heard.take() == ["app ann"])
        try await ann.refreshCustomData()
        #expect(heard.take() == ["ann loggedIn"])
        try await ann.logOut()
        #expect(heard.take() == ["ann loggedOut", "app anon"])
        _ = try await app.login(credentials: self.ann)
        #expect(heard.take() == ["ann loggedIn", "app ann"])
        own.unsubscribe()
        try await ann.remove()
        #expect(heard.take().last == "app anon")
        withExtendedLifetime(news) {}
        withExtendedLifetime(nobody) {}
    }

    @Test func `news end with their token`() async throws {
        let app = app(server.url)
        let heard = Heard()
        do {
            let token = app.subscribe { _ in heard.add("app") }
            withExtendedLifetime(token) {}
        }
        _ = try await app.login(credentials: ann)
        #expect(heard.take().isEmpty)
    }

    // MARK: Where requests go, and how

    private final class OwnTransport: NetworkTransport {
        /// Nil: it never calls back.
        private let answer: NetworkResponse?
        private let sent = Mutex<[NetworkRequest]>([])
        var requests: [NetworkRequest] { sent.withLock { $0 } }

        init(_ answer: NetworkResponse?) { self.answer = answer }

        func sendRequest(toServer request: NetworkRequest, completion: @escaping @Sendable (NetworkResponse) -> Void) {
            sent.withLock { $0.append(request) }
            // Only the first counts.
            if let answer { for _ in 1...2 { completion(answer) } }
        }
    }

    private func app(_ transport: OwnTransport, milliseconds: UInt = 7_000) -> App {
        App(
            id: "shop",
            configuration: AppConfiguration(
                baseURL: "http://nowhere.invalid/", transport: transport, defaultRequestTimeoutMS: milliseconds,
                storageDirectory: folder.url))
    }

    @Test func `an app with pins sends no login to a server without such a key`() async throws {
        let server = try CannedServer { _ in .init(status: 500, body: "{}") }
        var pinned = AppConfiguration(baseURL: server.url, storageDirectory: folder.url)
        pinned.serverKeyPins = [String(repeating: "A", count: 43) + "="]
        let refused = await #expect(throws: AppError.self) { try await App(id: "pinned", configuration: pinned).login(credentials: ann) }
        #expect(refused.map { "\($0)".contains("has no TLS") } == true, "\(String(describing: refused))")
        #expect(server.requests.isEmpty)
    }

    @Test func `requests go by the transport that the app gives`() async throws {
        let transport = OwnTransport(
            NetworkResponse(
                httpStatusCode: 200, body: #"{"access_token":"a.b.c","refresh_token":"r","user_id":"ann","device_id":"d"}"#))
        let app = app(transport)
        let user = try await app.login(credentials: ann)
        #expect(user.id == "ann" && app.configuration.transport === transport && self.app(transport) == app)
        let login = try #require(transport.requests.first)
        #expect(login.method == .post && login.url == "http://nowhere.invalid/api/client/v2.0/app/shop/auth/providers/local-userpass/login")
        #expect(login.timeout == 7 && login.headers == ["Content-Type": "application/json"] && login.body.contains("ann@example.com"))
        try await user.logOut()
        let logOut = try #require(transport.requests.last)
        #expect(logOut.method == .delete && logOut.headers == ["Authorization": "Bearer r"] && logOut.body.isEmpty)
    }

    @Test(arguments: [
        (NetworkResponse(httpStatusCode: 0, body: "no network"), AppError.Code.httpRequestFailed, "no network"),
        (NetworkResponse(httpStatusCode: 401, body: #"{"error":"no","error_code":"InvalidPassword"}"#), .invalidPassword, "no"),
    ])
    func `an answer of that transport that is none, or a refusal, is an error`(
        answer: NetworkResponse, code: AppError.Code, text: String
    ) async throws {
        let app = app(OwnTransport(answer))
        let error = await #expect(throws: AppError.self) { try await app.login(credentials: ann) }
        #expect(error?.code == code && error?.message.contains(text) == true)
    }

    @Test func `a transport that never answers is waited for as long as the request says`() async throws {
        let app = app(OwnTransport(nil), milliseconds: 50)
        let error = await #expect(throws: AppError.self) { try await app.login(credentials: ann) }
        #expect(error?.code == .httpRequestFailed && error?.message.contains("no answer within 0.05 s") == true)
    }

    @Test func `tokens go in the header that the app names`() async throws {
        let app = app(server.url)
        app.syncManager.authorizationHeaderName = "X-App-Token"
        let user = try await app.login(credentials: ann)
        try await user.refreshCustomData()
        let headers = try #require(server.requests.last?.headers)
        #expect(headers["x-app-token"] == "Bearer refresh" && headers["authorization"] == nil)
        app.syncManager.authorizationHeaderName = nil
        try await user.refreshCustomData()
        #expect(server.requests.last?.headers["authorization"] == "Bearer refresh")
    }

    @Test func `an app goes to another server when it is found there`() async throws {
        let (first, second) = (server, try AppCallsTests.server())
        let app = app(first.url)
        let user = try await app.login(credentials: ann)
        try await app.updateBaseUrl(to: second.url + "/")
        #expect(second.requests.map(\.line) == ["GET /api/client/v2.0/app/shop/location HTTP/1.1"])
        #expect(app.baseURL == second.url + "/" && app.engineConfiguration(reset: .recover).url == second.url)
        try await user.refreshCustomData()
        #expect(second.requests.count == 2 && first.requests.count == 1)
        let failure: (any Error)? = await withCheckedContinuation { done in
            app.updateBaseUrl(to: "http://127.0.0.1:9") { done.resume(returning: $0) }
        }
        #expect((failure as? AppError)?.code == .httpRequestFailed && app.baseURL == second.url + "/")
    }

    @Test func `timeouts are what was set, RealmSwift's or this library's where nothing was, and a copy in the configuration`() {
        let options = SyncTimeoutOptions()
        #expect(options.connectTimeout == 120_000 && options.connectionLingerTime == 30_000 && options.fastReconnectLimit == 60_000)
        #expect(options.pingKeepalivePeriod == 30_000 && options.pongKeepaliveTimeout == 30_000)
        (options.connectTimeout, options.pingKeepalivePeriod, options.pongKeepaliveTimeout) = (1_000, 2_000, 3_000)
        (options.connectionLingerTime, options.fastReconnectLimit) = (4_000, 5_000)
        #expect(options.connectionLingerTime == 4_000 && options.fastReconnectLimit == 5_000)
        let app = App(
            id: "timed",
            configuration: AppConfiguration(baseURL: "http://127.0.0.1:9", syncTimeouts: options, storageDirectory: folder.url))
        options.connectTimeout = 9_000
        let timing = app.engineConfiguration(reset: .recover).timing
        #expect(timing.connect == 1_000 && timing.transport == 1_000 && timing.ping == 2_000 && timing.silence == 5_000)
        app.syncManager.timeoutOptions?.connectTimeout = 0
        #expect(app.engineConfiguration(reset: .recover).timing.connect == 120_000)
        app.syncManager.timeoutOptions = SyncTimeoutOptions(pingKeepalivePeriod: .max, pongKeepaliveTimeout: .max)
        #expect(app.engineConfiguration(reset: .recover).timing.silence == 2_000_000_000_000)
        app.syncManager.timeoutOptions = nil
        #expect(app.engineConfiguration(reset: .recover).timing.ping == 30_000)
    }

    // MARK: What the server does not take

    /// Ends with the error that says what to do instead, and sends nothing.
    private func expectRefusal(_ instead: String, _ call: () async throws -> Void) async {
        let error = await #expect(throws: AppError.self) { try await call() }
        #expect(error?.code == .notCallable && error?.message.contains("is not offered by the server. ") == true)
        #expect(error?.message.contains(instead) == true, "\(error?.message ?? "")")
    }

    @Test func `calls that the server does not take end with an error that says what to do`() async throws {
        let app = app(server.url)
        let user = try await app.login(credentials: ann)
        let push = app.pushClient(serviceName: "gcm")
        await expectRefusal("service of the app's own") { try await push.registerDevice(token: "t", user: user) }
        await expectRefusal("service of the app's own") { try await push.deregisterDevice(user: user) }
        #expect(server.requests.count == 1)
    }

    @Test func `a collection of MongoDB sends to sync`() async throws {
        let user = try folder.user()
        let tasks = user.mongoClient("mongodb-atlas").database(named: "shop").collection(withName: "tasks")
        await expectRefusal("subscription") { _ = try await tasks.insertOne(["a": 1]) }
        await expectRefusal("subscription") { _ = try await tasks.insertMany([["a": 1]]) }
        await expectRefusal("shop.tasks") { _ = try await tasks.find(filter: [:]) }
        await expectRefusal("subscription") { _ = try await tasks.findOneDocument(filter: [:], options: FindOptions(1)) }
        await expectRefusal("subscription") { _ = try await tasks.aggregate(pipeline: []) }
        await expectRefusal("subscription") { _ = try await tasks.count(filter: [:]) }
        await expectRefusal("subscription") { _ = try await tasks.deleteOneDocument(filter: [:]) }
        await expectRefusal("subscription") { _ = try await tasks.deleteManyDocuments(filter: [:]) }
        await expectRefusal("subscription") { _ = try await tasks.updateOneDocument(filter: [:], update: [:]) }
        await expectRefusal("subscription") { _ = try await tasks.updateManyDocuments(filter: [:], update: [:], upsert: true) }
        let found: Result<[Document], any Error> = await withCheckedContinuation { done in
            tasks.find(filter: [:]) { done.resume(returning: $0) }
        }
        #expect(throws: AppError.self) { try found.get() }
    }

    @Test func `code without async is called back with that error`() async throws {
        let app = app(server.url)
        let user = try await app.login(credentials: ann)
        typealias Completion = @Sendable ((any Error)?) -> Void
        let calls: [@Sendable (@escaping Completion) -> Void] = [
            { app.pushClient(serviceName: "gcm").registerDevice(token: "t", user: user, completion: $0) },
            { app.pushClient(serviceName: "gcm").deregisterDevice(user: user, completion: $0) },
        ]
        for call in calls {
            let error: (any Error)? = await withCheckedContinuation { done in call { done.resume(returning: $0) } }
            #expect((error as? AppError)?.code == .notCallable)
        }
    }

    // MARK: Values of documents

    @Test func `regular expressions, timestamps and the least and greatest key go into documents and come back`() throws {
        let expression = try NSRegularExpression(pattern: "^a", options: [.caseInsensitive, .anchorsMatchLines])
        let date = Date(timeIntervalSince1970: 7)
        let values: [(AnyBSON, JSON)] = [
            (.regex(expression), ["$regularExpression": ["pattern": "^a", "options": "im"]]),
            (.timestamp(date), ["$timestamp": ["t": 7, "i": 0]]), (.minKey, ["$minKey": 1]), (.maxKey, ["$maxKey": 1]),
        ]
        for (value, json) in values { #expect(value.json == json && AnyBSON(json) == value) }
        #expect(AnyBSON(["$timestamp": ["t": 7, "i": 3]] as JSON).timestampValue == date)
        #expect(AnyBSON(expression).regexValue == expression && AnyBSON(expression).value() == expression)
        #expect(AnyBSON(MinKey()) == .minKey && AnyBSON(MaxKey()).value() == MaxKey() && AnyBSON(NSNull()) == .null)
        #expect(AnyBSON.minKey.value() == nil as MaxKey? && AnyBSON.null.value() == NSNull() && AnyBSON.minKey.regexValue == nil)
        #expect(AnyBSON.timestamp(Date(timeIntervalSince1970: -1)).json == ["$timestamp": ["t": 0, "i": 0]])
        let broken: [JSON] = [
            ["$regularExpression": ["pattern": "(", "options": ""]], ["$timestamp": ["t": "x", "i": 0]], ["$timestamp": 7],
        ]
        for json in broken { #expect(AnyBSON(json).documentValue?.count == 1) }
    }
}
