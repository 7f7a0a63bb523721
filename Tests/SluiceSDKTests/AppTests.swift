import Foundation
import SluiceCore
import SluiceValues
import Synchronization
import Testing

@testable import SluiceSDK

@Suite struct AppTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A token whose claims hold custom data.
    private static func token(_ name: String) -> String {
        let claims = Data(#"{"user_data":{"store":{"$oid":"0123456789abcdef01234567"},"name":"\#(name)","level":3}}"#.utf8)
        let text = claims.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        return "h.\(text).s"
    }

    private func server() throws -> CannedServer {
        try CannedServer { request in
            if request.line.contains("/register") { return .init(status: 201, body: "") }
            if request.line.hasPrefix("POST /api/client/v2.0/auth/session") {
                return request.headers["authorization"] == "Bearer refresh"
                    ? .init(status: 201, body: #"{"access_token":"\#(AppTests.token("renewed"))"}"#)
                    : .init(status: 401, body: #"{"error":"invalid session","error_code":"InvalidSession"}"#)
            }
            if request.line.hasPrefix("DELETE") { return .init(status: 204, body: "") }
            if request.body.contains("wrong") {
                return .init(status: 401, body: #"{"error":"invalid username/password","error_code":"InvalidPassword"}"#)
            }
            let user = request.line.contains("anon-user") ? "anon" : "someone"
            return .init(
                status: 200,
                body: #"{"access_token":"\#(AppTests.token("first"))","refresh_token":"refresh","user_id":"\#(user)","device_id":"d"}"#)
        }
    }

    private func app(_ server: CannedServer) -> App {
        App(id: "shop", configuration: AppConfiguration(baseURL: server.url, storageDirectory: folder.url))
    }

    @Test func `registering and logging in use App Services' paths and shapes`() async throws {
        let server = try server()
        let app = app(server)
        try await app.emailPasswordAuth.registerUser(email: "a@b.c", password: "secret")
        let user = try await app.login(credentials: .emailPassword(email: "a@b.c", password: "secret"))
        #expect(user.id == "someone" && user.isLoggedIn && app.currentUser == user)
        #expect(user.customData["name"] == AnyBSON.string("first"))
        #expect(user.customData["store"] == AnyBSON.objectId(ObjectId("0123456789abcdef01234567")))
        #expect(
            server.requests.map(\.line) == [
                "POST /api/client/v2.0/app/shop/auth/providers/local-userpass/register HTTP/1.1",
                "POST /api/client/v2.0/app/shop/auth/providers/local-userpass/login HTTP/1.1",
            ])
        #expect(server.requests.first?.body == #"{"email":"a@b.c","password":"secret"}"#)
        #expect(server.requests.last?.body.contains(#""username":"a@b.c","password":"secret""#) == true)
    }

    @Test func `addresses are confirmed and passwords reset with the paths and bodies of App Services`() async throws {
        let server = try server()
        let auth = app(server).emailPasswordAuth
        typealias Completion = @Sendable ((any Error)?) -> Void
        let calls: [(path: String, body: String, call: () async throws -> Void, completing: (@escaping Completion) -> Void)] = [
            (
                "confirm", #"{"token":"t","tokenId":"i"}"#, { try await auth.confirmUser("t", tokenId: "i") },
                { auth.confirmUser("t", tokenId: "i", completion: $0) }
            ),
            (
                "confirm/send", #"{"email":"a@b.c"}"#, { try await auth.resendConfirmationEmail("a@b.c") },
                { auth.resendConfirmationEmail("a@b.c", completion: $0) }
            ),
            (
                "confirm/call", #"{"email":"a@b.c"}"#, { try await auth.retryCustomConfirmation("a@b.c") },
                { auth.retryCustomConfirmation("a@b.c", completion: $0) }
            ),
            (
                "reset/send", #"{"email":"a@b.c"}"#, { try await auth.sendResetPasswordEmail("a@b.c") },
                { auth.sendResetPasswordEmail("a@b.c", completion: $0) }
            ),
            (
                "reset/call", #"{"email":"a@b.c","password":"p","arguments":["x",1]}"#,
                { try await auth.callResetPasswordFunction(email: "a@b.c", password: "p", args: ["x", 1]) },
                { auth.callResetPasswordFunction(email: "a@b.c", password: "p", args: ["x", 1], $0) }
            ),
        ]
        for (path, body, call, completing) in calls {
            let before = server.requests.count
            try await call()
            let error: (any Error)? = await withCheckedContinuation { done in completing { done.resume(returning: $0) } }
            #expect(error == nil, "\(path)")
            let sent = server.requests[before...]
            let line = "POST /api/client/v2.0/app/shop/auth/providers/local-userpass/\(path) HTTP/1.1"
            #expect(sent.map(\.line) == [line, line] && sent.allSatisfy { $0.body == body }, "\(sent.map(\.body))")
        }
    }

    @Test func `a link sets a password`() async throws {
        let server = try server()
        let auth = app(server).emailPasswordAuth
        try await auth.resetPassword(to: "secret", token: "t", tokenId: "i")
        let error: (any Error)? = await withCheckedContinuation { done in
            auth.resetPassword(to: "wrong", token: "t", tokenId: "i") { done.resume(returning: $0) }
        }
        #expect((error as? AppError)?.code == .invalidPassword)
        let line = "POST /api/client/v2.0/app/shop/auth/providers/local-userpass/reset HTTP/1.1"
        #expect(server.requests.map(\.line) == [line, line])
        #expect(server.requests.first?.body == #"{"token":"t","tokenId":"i","password":"secret"}"#)
    }

    @Test(.timeLimit(.minutes(1))) func `what is stored last is how the users are, whoever stores at the same time`() async throws {
        let server = try server()
        let app = app(server)
        let users = [
            try await app.login(credentials: .emailPassword(email: "a@b.c", password: "secret")),
            try await app.login(credentials: .anonymous),
        ]
        let meeting = Meeting()
        let stale = try await withThrowingTaskGroup(of: [Int].self) { group in
            for user in users {
                group.addTask {
                    try await onThread {
                        (0..<500).filter { round in
                            meeting.meet(3 * round + 1)
                            app.switch(to: user)
                            meeting.meet(3 * round + 2)
                            let stored = app.shared.storedUsers
                            let isStale = stored.current != app.currentUser?.id || stored.users.count != 2
                            meeting.meet(3 * round + 3)
                            return isStale
                        }
                    }
                }
            }
            return try await group.reduce([], +)
        }
        #expect(stale.isEmpty)
    }

    @Test func `a wrong password is an error by name`() async throws {
        let server = try server()
        let error = await #expect(throws: AppError.self) {
            try await app(server).login(credentials: .emailPassword(email: "a@b.c", password: "wrong"))
        }
        #expect(error?.code == .invalidPassword && error?.httpStatusCode == 401)
        let info = (error as NSError?)?.userInfo
        #expect(info?["HTTP Status Code"] as? Int == 401 && (info?["Error Name"] as? String)?.isEmpty == false)
    }

    @Test func `each way to log in has the path and the fields that App Services gave it`() async throws {
        let server = try CannedServer { _ in .init(status: 401, body: #"{"error":"not enabled","error_code":"AuthProviderNotFound"}"#) }
        let app = app(server)
        let ways: [Credentials] = [
            .jwt(token: "t"), .function(payload: ["name": "x", "age": 3]), .userAPIKey("k"), .serverAPIKey("s"), .anonymous,
            .facebook(accessToken: "f"), .google(serverAuthCode: "c"), .googleId(token: "g"), .apple(idToken: "a"),
        ]
        for way in ways {
            let error = await #expect(throws: AppError.self) { try await app.login(credentials: way) }
            #expect(error?.code == .authProviderNotFound && error?.httpStatusCode == 401)
        }
        let provider = server.requests.map { String($0.line.split(separator: "/")[8]) }
        #expect(
            provider == ["custom-token", "custom-function", "api-key", "api-key", "anon-user"]
                + ["facebook", "google", "google", "apple"].map { "oauth2-\($0)" })
        for (request, fields) in zip(
            server.requests,
            [
                [#""token":"t""#], [#""name":"x""#, #""age":"#], [#""key":"k""#], [#""key":"s""#], [], [#""accessToken":"f""#],
                [#""authCode":"c""#], [#""id_token":"g""#],
                [#""id_token":"a""#],
            ])
        {
            for field in fields { #expect(request.body.contains(field), "\(request.body)") }
        }
        #expect(app.currentUser == nil && app.allUsers.isEmpty)
    }

    /// The gateway's routes for API keys, with one key.
    private static func keys(_ request: CannedServer.Request) -> CannedServer.Answer {
        let id = "0123456789abcdef01234567"
        func key(_ more: String = "") -> String { #"{"_id":"\#(id)","name":"sensor","disabled":false\#(more)}"# }
        guard request.headers["authorization"] == "Bearer refresh" else {
            return .init(status: 401, body: #"{"error_code":"InvalidSession"}"#)
        }
        let call = request.line.replacing(" HTTP/1.1", with: "").replacing("/api/client/v2.0/auth/api_keys", with: "keys")
        switch call {
        case "POST keys": return .init(status: 201, body: key(#","key":"secret""#))
        case "GET keys": return .init(status: 200, body: "[\(key())]")
        case "GET keys/\(id)": return .init(status: 200, body: key())
        case "PUT keys/\(id)/enable", "PUT keys/\(id)/disable", "DELETE keys/\(id)": return .init(status: 204, body: "")
        default: return .init(status: 404, body: #"{"error":"no such key","error_code":"APIKeyNotFound"}"#)
        }
    }

    @Test func `a user makes, lists, disables and deletes API keys`() async throws {
        let logins = try server()
        let user = try await app(logins).login(credentials: .anonymous)
        let server = try CannedServer { AppTests.keys($0) }
        let app = App(id: "keys", configuration: AppConfiguration(baseURL: server.url, storageDirectory: folder.url))
        let own = User(app: app, session: user.session).apiKeysAuth
        let made = try await own.createAPIKey(named: "sensor")
        #expect(made.name == "sensor" && made.key == "secret" && !made.disabled)
        #expect(server.requests.last?.body == #"{"name":"sensor"}"#)
        #expect(try await own.fetchAPIKeys().map(\.objectId) == [made.objectId])
        #expect(try await own.fetchAPIKey(made.objectId).key == nil)
        try await own.disableAPIKey(made.objectId)
        try await own.enableAPIKey(made.objectId)
        try await own.deleteAPIKey(made.objectId)
        let error = await #expect(throws: AppError.self) { try await own.deleteAPIKey(ObjectId.generate()) }
        #expect(error?.httpStatusCode == 404)
        let listed = await withCheckedContinuation { done in own.fetchAPIKeys { keys, _ in done.resume(returning: keys?.count) } }
        let refused = await withCheckedContinuation { done in
            own.enableAPIKey(ObjectId.generate()) { done.resume(returning: ($0 as? AppError)?.httpStatusCode) }
        }
        #expect(listed == 1 && refused == 404)
        try await user.logOut()
        let over = await #expect(throws: AppError.self) { try await user.apiKeysAuth.fetchAPIKeys() }
        #expect(over?.code == .invalidSession)
    }

    @Test func `what a configuration takes and has no use for changes nothing`() async throws {
        let server = try server()
        var configuration = AppConfiguration(
            baseURL: "http://127.0.0.1:9", transport: nil, localAppName: "a", localAppVersion: "1", defaultRequestTimeoutMS: 5_000)
        configuration.baseURL = server.url
        let app = App(id: "named", configuration: configuration)
        try await app.emailPasswordAuth.registerUser(email: "a@b.c", password: "secret")
        #expect(app.baseURL == server.url && app.configuration.defaultRequestTimeoutMS == 5_000)
    }

    @Test func `a token is renewed with the refresh token`() async throws {
        let server = try server()
        let user = try await app(server).login(credentials: .anonymous)
        #expect(try await user.refreshCustomData()["name"] == AnyBSON.string("renewed"))
        try await user.logOut()
        #expect(!user.isLoggedIn && user.accessToken == nil)
        #expect(server.requests.last?.line.hasPrefix("DELETE /api/client/v2.0/auth/session") == true)
        let error = await #expect(throws: AppError.self) { try await user.refreshCustomData() }
        #expect(error?.code == .invalidSession)
    }

    @Test func `code without async is called back`() async throws {
        let server = try server()
        let user = try await app(server).login(credentials: .anonymous)
        let name = await withCheckedContinuation { done in
            user.refreshCustomData { done.resume(returning: (try? $0.get())?["name"] as? String) }
        }
        #expect(name == "renewed")
        let deleted: (any Error)? = await withCheckedContinuation { done in user.delete { done.resume(returning: $0) } }
        #expect(deleted == nil && user.state == .removed)
        let again: (any Error)? = await withCheckedContinuation { done in user.delete { done.resume(returning: $0) } }
        #expect((again as? AppError)?.code == .invalidSession)
        for end in [User.logOut(completion:), User.remove(completion:)] {
            let user = try await app(server).login(credentials: .anonymous)
            let error: (any Error)? = await withCheckedContinuation { done in end(user)({ done.resume(returning: $0) }) }
            #expect(error == nil && !user.isLoggedIn)
        }
    }

    @Test func `values of documents are written as literals and read by their types`() {
        let document: Document = ["a": 1, "b": [true, 1.5, nil], "c": ["d": "x"], "e": nil]
        #expect(document["a"]??.asInt() == 1 && document["a"]??.asInt32() == 1 && document["a"]??.asDouble() == 1)
        #expect(document["b"]??.arrayValue == [.bool(true), .double(1.5), nil] && document["c"]??.documentValue?["d"]??.stringValue == "x")
        #expect(document["e"] == .some(nil) && AnyBSON.null.isNull && AnyBSON.double(0.1).asDecimal128()?.stringValue == "0.1")
        #expect(AnyBSON.int64(1 << 40).asInt32() == nil && AnyBSON.int32(3).asInt64() == 3 && AnyBSON.string("1").asDouble() == nil)
        #expect(AnyBSON.decimal128(2).asDecimal128() == 2 && AnyBSON.int32(3).int32Value == 3 && AnyBSON.int32(3).int64Value == nil)
        #expect(AnyBSON.datetime(Date(timeIntervalSince1970: 1)).dateValue == Date(timeIntervalSince1970: 1))
        #expect(AnyBSON(3).value() == 3 && AnyBSON("x").value() == "x" && AnyBSON("x").value() == nil as Int?)
        #expect(AnyBSON.binary(Data([1])).binaryValue == Data([1]) && AnyBSON.uuid(UUID()).uuidValue != nil)
    }

    @Test func `values of documents come as extended JSON, and are sent as such`() throws {
        let tag = "01234567-89ab-cdef-0123-456789abcdef"
        let json: JSON = [
            "id": ["$oid": "0123456789abcdef01234567"], "tag": ["$uuid": .string(tag)],
            "photo": ["$binary": ["base64": "AP8=", "subType": "00"]],
            "day": ["$date": "2026-03-01T12:30:00.250Z"], "then": ["$date": ["$numberLong": "-1500"]], "pay": ["$numberDecimal": "12.50"],
            "long": ["$numberLong": "9007199254740993"], "none": ["$numberDouble": "NaN"], "other": ["$key": "x"],
            "ids": [["$oid": "0123456789abcdef01234567"]],
        ]
        let document = try #require(AnyBSON(json).documentValue)
        #expect(
            document["id"]??.objectIdValue?.stringValue == "0123456789abcdef01234567"
                && document["ids"]??.arrayValue == [document["id"] ?? nil])
        #expect(document["tag"]??.uuidValue == UUID(uuidString: tag) && document["photo"]??.binaryValue == Data([0, 255]))
        #expect(document["day"]??.dateValue == Date(timeIntervalSince1970: 1_772_368_200.25))
        #expect(document["then"]??.dateValue == Date(timeIntervalSince1970: -1.5))
        #expect(document["pay"]??.decimal128Value?.stringValue == "12.50" && document["long"]??.int64Value == 9_007_199_254_740_993)
        #expect(document["none"]??.doubleValue?.isNaN == true && document["other"]??.documentValue == ["$key": "x"])
        #expect(AnyBSON(AnyBSON.document(document.filter { $0.key != "none" }).json).documentValue == document.filter { $0.key != "none" })
        for number in [Double.infinity, -.infinity] { #expect(AnyBSON(AnyBSON.double(number).json) == .double(number)) }
        #expect(AnyBSON(AnyBSON.double(.nan).json).doubleValue?.isNaN == true)
        let day = Date(timeIntervalSince1970: 1.001)
        #expect(AnyBSON.datetime(day).json == ["$date": ["$numberLong": "1001"]])
        #expect(AnyBSON.datetime(Date(timeIntervalSince1970: .infinity)).json == ["$date": ["$numberLong": .string("\(Int64.max)")]])
    }

    @Test func `an anonymous user is used again`() async throws {
        let server = try server()
        let app = app(server)
        let first = try await app.login(credentials: .anonymous)
        let second = try await app.login(credentials: .anonymous)
        #expect(first == second && server.requests.count == 1)
    }

    @Test func `of several users one is current`() async throws {
        let server = try server()
        let app = app(server)
        let first = try await app.login(credentials: .anonymous)
        let second = try await app.login(credentials: .emailPassword(email: "a@b.c", password: "secret"))
        #expect(app.allUsers == ["anon": first, "someone": second] && app.currentUser == second)
        #expect(app.switch(to: first) == first && app.currentUser == first)
        try await first.logOut()
        #expect(app.currentUser == second && second.isLoggedIn)
    }

    @Test(arguments: ["", #"{"users":["#, "[]", #"{"users":[{"id":"lost"}],"current":"lost"}"#])
    func `a file of users that cannot be read is kept aside before another is written`(content: String) async throws {
        let shop = folder.url.appendingPathComponent("shop")
        let (file, aside) = (shop.appendingPathComponent("users.json"), shop.appendingPathComponent("users.json.unreadable"))
        func text(_ file: URL) throws -> String { try String(contentsOf: file, encoding: .utf8) }
        try FileManager.default.createDirectory(at: shop, withIntermediateDirectories: true)
        try content.write(to: file, atomically: true, encoding: .utf8)
        let server = try server()
        let app = app(server)
        #expect(try app.allUsers.isEmpty && text(file) == content)
        #expect(StoredUsers.read(CredentialFile(folder: shop), "shop").problem?.contains(file.path) == true)
        let user = try await app.login(credentials: .anonymous)
        #expect(try text(aside) == content)
        #expect(
            StoredUsers.read(CredentialFile(folder: shop), "shop").users.map(\.id) == ["anon"]
                && StoredUsers.read(CredentialFile(folder: shop), "shop").problem == nil)
        // Later lists replace the readable file, and the other stays.
        app.switch(to: user)
        #expect(try text(aside) == content)
    }

    @Test func `what cannot be read of a file of users leaves the others logged in, and is logged`() async throws {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            Logger.setLogLevel(.error)
            let folder = try TemporaryFolder()
            let shop = folder.url.appendingPathComponent("shop")
            try FileManager.default.createDirectory(at: shop, withIntermediateDirectories: true)
            let users = #"{"users":[{"id":"ann","provider":"anon-user"},{"id":"lost"}],"current":"ann"}"#
            try users.write(to: shop.appendingPathComponent("users.json"), atomically: true, encoding: .utf8)
            let app = App(id: "shop", configuration: AppConfiguration(baseURL: "http://127.0.0.1:9", storageDirectory: folder.url))
            #expect(app.currentUser?.id == "ann" && app.allUsers.count == 1)
        }
        #expect(message(result).contains("Realm.App error: Users stored in /") && message(result).contains("have no id or provider"))
    }

    @Test func `a file of users that is not there is no error, and one that cannot be opened is`() throws {
        let storage = CredentialFile(folder: folder.url)
        #expect(StoredUsers.read(storage, "shop").problem == nil)
        // Opening a folder as a file fails for every user, root included.
        let file = folder.url.appendingPathComponent("users.json")
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: true)
        let stored = StoredUsers.read(storage, "shop")
        #expect(stored.users.isEmpty && stored.problem?.contains("users.json.unreadable") == true)
        #expect(stored.write(storage, "shop", replacingUnreadable: true) == nil)
        #expect(StoredUsers.read(storage, "shop").problem == nil)
    }

    /// A keychain in memory.
    private final class Keychain: CredentialStorage {
        struct Failure: Error, LocalizedError {
            var errorDescription: String? { "The keychain is locked." }
        }

        private let contents = Mutex<[String: Data]>([:])
        let isLocked = Mutex(false)

        func content(ofApp appId: String) throws -> Data? {
            if isLocked.withLock(\.self) { throw Failure() }
            return contents.withLock { $0[appId] }
        }

        func store(_ content: Data, ofApp appId: String) throws {
            if isLocked.withLock(\.self) { throw Failure() }
            contents.withLock { $0[appId] = content }
        }
    }

    @Test func `users are in the storage of the app's choice, and in no file`() async throws {
        let (server, keychain) = (try server(), Keychain())
        let configuration = { (name: String) in
            var configuration = AppConfiguration(baseURL: server.url, storageDirectory: self.folder.url.appendingPathComponent(name))
            configuration.credentialStorage = keychain
            return configuration
        }
        #expect(configuration("a") == configuration("a"))
        let app = App(id: "shop", configuration: configuration("a"))
        let user = try await app.login(credentials: .emailPassword(email: "a@b.c", password: "secret"))
        let text = try #require(try keychain.content(ofApp: "shop").map { String(decoding: $0, as: UTF8.self) })
        #expect(text.contains(#""current":"\#(user.id)""#))
        #expect(!FileManager.default.fileExists(atPath: app.storage.appendingPathComponent("users.json").path))
        // As another run of the app, which starts without the server.
        let next = App(id: "shop", configuration: configuration("b"))
        #expect(next.currentUser?.id == user.id && next.currentUser?.isLoggedIn == true)
        #expect(App(id: "other", configuration: configuration("a")).currentUser == nil)
    }

    @Test func `a storage that fails is reported, and the users stay logged in for this run`() async throws {
        let (server, keychain) = (try server(), Keychain())
        var configuration = AppConfiguration(baseURL: server.url, storageDirectory: folder.url)
        configuration.credentialStorage = keychain
        let app = App(id: "shop", configuration: configuration)
        let errors = Mutex<[String]>([])
        app.syncManager.errorHandler = { error, _ in errors.withLock { $0.append(error.localizedDescription) } }
        keychain.isLocked.withLock { $0 = true }
        let user = try await app.login(credentials: .anonymous)
        #expect(app.currentUser == user)
        #expect(errors.withLock { $0.first }?.contains("The keychain is locked.") == true, "\(errors.withLock(\.self))")
        keychain.isLocked.withLock { $0 = false }
        app.switch(to: user)
        #expect(try keychain.content(ofApp: "shop") != nil)
    }

    @Test func `users survive the end of the program in a file of their own`() async throws {
        let server = try server()
        _ = try await app(server).login(credentials: .emailPassword(email: "a@b.c", password: "secret"))
        let file = folder.url.appendingPathComponent("shop/users.json")
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        // Another timeout makes another App, which reads what the first wrote.
        let later = App(
            id: "shop",
            configuration: AppConfiguration(baseURL: server.url, defaultRequestTimeoutMS: 5_000, storageDirectory: folder.url))
        #expect(later.currentUser?.id == "someone" && later.currentUser?.isLoggedIn == true)
    }
}
