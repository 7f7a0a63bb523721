import IdentityTestSupport
import Logging
import SluiceCore
import SluiceIdentity
import SluicePorts
import SluiceValues
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct `A function with a service` {
    private static let ada = UserContext(
        id: "u1", data: ["email": "ada@example.com"], customData: ["team": "red"], identities: [["id": "x", "provider_type": "anon-user"]])

    @Test func `receives the call, the user and a signature of both`() async throws {
        let http = ScriptedHTTP { _ in Self.answer(["result": ["$numberLong": "3"]]) }
        let functions = Self.functions(http) { _ in }
        let result = try await functions.call(FunctionCall("sum", arguments: [1, ["$numberInt": "2"]], caller: .user(Self.ada)))
        #expect(result == ["$numberLong": "3"])
        let request = try #require(http.requests.first)
        #expect(request.method == .post && request.url == "https://hooks.example/sum")
        #expect(request.milliseconds == WebhookTarget.defaultMilliseconds && !request.allowsPrivateAddresses)
        let body = try JSON.parse(request.body)
        #expect(body["function"] == "sum" && body["arguments"] == [1, ["$numberInt": "2"]] && body["app"] == "shop")
        #expect(body["user"] == Self.ada.json && body["run_as"] == "u1")
        let id = try #require(body["request_id"]?.string)
        #expect(id.utf8.count == 32)
        let headers = Dictionary(uniqueKeysWithValues: request.headers.map { ($0.name, $0.value) })
        #expect(headers[WebhookMessage.requestHeader] == id)
        #expect(headers["Content-Type"] == "application/json")
        let signature = WebhookMessage.signature(of: request.body, key: Array("k1".utf8), seconds: 1_700_000_000)
        #expect(headers[WebhookMessage.signatureHeader] == signature)
    }

    /// From another implementation: `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret`.
    @Test func `can verify the signature by other means`() {
        let signature = WebhookMessage.signature(of: Array(#"{"a":1}"#.utf8), key: Array("secret".utf8), seconds: 1_700_000_000)
        #expect(signature == "t=1700000000,v1=49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686")
    }

    @Test func `acts for the user that its file names`() async throws {
        let http = ScriptedHTTP { _ in Self.answer(["result": .null]) }
        for (identity, caller, expected): (AppFunction.Identity, FunctionCall.Caller, JSON) in [
            (.caller, .user(Self.ada), "u1"), (.system, .user(Self.ada), "system"), (.user(id: "u2"), .user(Self.ada), "u2"),
            (.caller, .system, "system"),
        ] {
            let functions = Self.functions(http) { $0.identity = identity }
            #expect(try await functions.call(FunctionCall("sum", arguments: [], caller: caller)) == .null)
            let body = try JSON.parse(try #require(http.requests.last).body)
            #expect(body["run_as"] == expected)
            #expect((body["user"] == .null) == (caller == .system))
        }
    }

    @Test func `that is private, and one that does not exist, give a user the same error`() async throws {
        let functions = Self.functions(ScriptedHTTP { _ in Self.answer(["result": 1]) }) { $0.isPrivate = true }
        let hidden = await Self.failure(functions, "sum", .user(Self.ada))
        let absent = await Self.failure(functions, "sum ", .user(Self.ada))
        #expect(hidden?.code == .functionNotFound && absent?.code == .functionNotFound)
        #expect(hidden?.message.replacing("'sum'", with: "'sum '") == absent?.message)
        #expect(hidden?.fix == absent?.fix)
        #expect(try await functions.call(FunctionCall("sum", arguments: [], caller: .system)) == 1)
        #expect(await Self.failure(functions, "sum ", .system)?.code == .functionNotFound)
        let long = await Self.failure(functions, String(repeating: "x", count: 5_000), .user(Self.ada))
        #expect(try #require(long).message.utf8.count < 200)
    }

    @Test func `is called only by users who meet its condition`() async throws {
        let http = ScriptedHTTP { _ in Self.answer(["result": 1]) }
        let condition = try Condition([
            "%%user.custom_data.team": "%%values.team", "%%environment.tag": "qa", "%%user.data.email": ["$exists": true],
        ])
        let functions = Self.functions(http) { $0.condition = condition }
        #expect(await Self.failure(functions, "sum", .user(Self.ada)) == nil)
        var other = Self.ada
        other.customData = ["team": "blue"]
        #expect(await Self.failure(functions, "sum", .user(other))?.code == .functionRefused)
        #expect(await Self.failure(functions, "sum", .system) == nil)
        #expect(http.requests.count == 2)
    }

    @Test func `gives its own error, or its status by its class`() async {
        let cases: [(Int, String, ErrorCode, String)] = [
            (200, #"{"error": {"message": "no stock", "code": "E1"}}"#, .functionFailed, "no stock"),
            (200, #"{"error": "no stock"}"#, .functionFailed, "no stock"), (200, "{}", .functionFailed, "without 'result'"),
            (200, "<html>", .functionFailed, "JSON"), (200, "[1]", .functionFailed, "without 'result'"),
            (404, #"{"result": 1}"#, .functionFailed, "404"), (302, "", .functionFailed, "302"), (401, "", .functionFailed, "401"),
            (429, "", .functionUnavailable, "429"), (500, "", .functionUnavailable, "500"), (503, "", .functionUnavailable, "503"),
        ]
        for (status, body, code, text) in cases {
            let functions = Self.functions(ScriptedHTTP { _ in OutboundAnswer(status: status, body: Array(body.utf8)) }) { _ in }
            let error = await Self.failure(functions, "sum", .user(Self.ada))
            #expect(error?.code == code && error?.message.contains(text) == true, "\(status) \(body): \(String(describing: error))")
        }
        let long = String(repeating: "é", count: 9_000)
        let functions = Self.functions(ScriptedHTTP { _ in Self.answer(["error": ["message": .string(long)]]) }) { _ in }
        #expect(await Self.failure(functions, "sum", .user(Self.ada))?.message.unicodeScalars.count == 2_000)
    }

    @Test func `keeps its host and the reason of an outage from clients`() async throws {
        for (code, expected) in [
            (ErrorCode.outboundFailed, ErrorCode.functionUnavailable), (.outboundAddressRefused, .functionUnavailable),
            (.outboundTimeout, .functionTimeout),
        ] {
            let http = ScriptedHTTP { _ throws(SluiceError) in throw SluiceError(code, "Refused by 10.0.0.1.", value: "10.0.0.1") }
            let error = try #require(await Self.failure(Self.functions(http) { _ in }, "sum", .user(Self.ada)))
            #expect(error.code == expected)
            #expect(!ClientError(error).message.contains("10.0.0.1") && !ClientError(error).fix.contains("10.0.0.1"))
            #expect(error.operatorText.contains("10.0.0.1"))
        }
    }

    @Test func `is attempted again only if it is idempotent, under one id and with new signatures`() async throws {
        for isIdempotent in [false, true] {
            let http = ScriptedHTTP { _ in OutboundAnswer(status: 503) }
            let functions = Self.functions(http) { $0.webhook?.isIdempotent = isIdempotent }
            #expect(await Self.failure(functions, "sum", .user(Self.ada))?.code == .functionUnavailable)
            #expect(http.requests.count == (isIdempotent ? 1 + WebhookRunner.backOff.count : 1))
            #expect(Set(http.requests.map(\.body)).count == 1)
        }
        // An error of the function itself is its answer.
        let http = ScriptedHTTP { _ in Self.answer(["error": "no"]) }
        let functions = Self.functions(http) { $0.webhook?.isIdempotent = true }
        #expect(await Self.failure(functions, "sum", .user(Self.ada))?.code == .functionFailed)
        #expect(http.requests.count == 1)
    }

    @Test func `has its time for all attempts together`() async throws {
        let environment = ManualEnvironment()
        let http = ScriptedHTTP { _ in
            environment.advance(seconds: 4)
            return OutboundAnswer(status: 503)
        }
        let functions = Self.functions(http, environment: environment) { $0.webhook?.isIdempotent = true }
        #expect(await Self.failure(functions, "sum", .user(Self.ada))?.code == .functionUnavailable)
        // Attempts at 0, 4 and 8 seconds. The third ends after the time.
        #expect(http.requests.map(\.milliseconds) == [10_000, 6_000, 2_000])
    }

    @Test func `that does not answer is left alone for a while, and its callers fail at once`() async throws {
        let environment = ManualEnvironment()
        let http = ScriptedHTTP { _ in OutboundAnswer(status: 503) }
        let functions = Self.functions(http, environment: environment) { _ in }
        for _ in 0..<CircuitBreaker.failures { _ = await Self.failure(functions, "sum", .user(Self.ada)) }
        #expect(await Self.failure(functions, "sum", .user(Self.ada))?.code == .functionUnavailable)
        #expect(http.requests.count == CircuitBreaker.failures)
        http.replace { _ in Self.answer(["result": 1]) }
        environment.advance(seconds: 2)
        #expect(await Self.failure(functions, "sum", .user(Self.ada)) == nil)
        #expect(await Self.failure(functions, "sum", .user(Self.ada)) == nil)
        // Errors of the function itself are answers of the service.
        http.replace { _ in Self.answer(["error": "no"]) }
        for _ in 0..<CircuitBreaker.failures * 2 {
            #expect(await Self.failure(functions, "sum", .user(Self.ada))?.code == .functionFailed)
        }
    }

    @Test(arguments: [500, 501, 429, 408]) func `that answers one user with a failure answers the others`(status: Int) async {
        let http = ScriptedHTTP { _ in OutboundAnswer(status: status) }
        let functions = Self.functions(http) { _ in }
        for _ in 0..<CircuitBreaker.failures * 2 { _ = await Self.failure(functions, "sum", .user(Self.ada)) }
        http.replace { _ in Self.answer(["result": 1]) }
        #expect(await Self.failure(functions, "sum", .user(Self.ada)) == nil)
    }

    @Test(arguments: [(ErrorCode.outboundTooLarge, ErrorCode.functionFailed), (.tooManyRequests, .tooManyRequests)])
    func `is not left alone for a limit of the gateway`(cause: ErrorCode, code: ErrorCode) async {
        let http = ScriptedHTTP { _ throws(SluiceError) in throw SluiceError(cause, "No.", value: "hooks.example") }
        let functions = Self.functions(http) { _ in }
        for _ in 0..<CircuitBreaker.failures * 2 {
            let error = await Self.failure(functions, "sum", .user(Self.ada))
            #expect(error?.code == code && error.map { ClientError($0).message.contains("hooks.example") } == false)
        }
        http.replace { _ in Self.answer(["result": 1]) }
        #expect(await Self.failure(functions, "sum", .user(Self.ada)) == nil)
    }

    @Test func `is not left alone because clients give up`() async {
        let http = ScriptedHTTP { _ throws(SluiceError) in throw SluiceError(.outboundFailed, "Cancelled.") }
        let functions = Self.functions(http) { _ in }
        for _ in 0..<CircuitBreaker.failures * 2 {
            await withTaskGroup(of: Void.self) { group in
                group.cancelAll()
                group.addTask { _ = await Self.failure(functions, "sum", .user(Self.ada)) }
            }
        }
        http.replace { _ in Self.answer(["result": 1]) }
        #expect(await Self.failure(functions, "sum", .user(Self.ada)) == nil)
    }

    @Test func `runs a bounded number of calls of a user`() async throws {
        let (calls, came) = AsyncStream.makeStream(of: CheckedContinuation<Void, Never>.self, bufferingPolicy: .bufferingOldest(100))
        let http = ScriptedHTTP { _ in
            await withCheckedContinuation { _ = came.yield($0) }
            return Self.answer(["result": 1])
        }
        let functions = Self.functions(http) { _ in }
        await withTaskGroup(of: SluiceError?.self) { group in
            for _ in 0..<CallsInFlight.perUser { group.addTask { await Self.failure(functions, "sum", .user(Self.ada)) } }
            var running: [CheckedContinuation<Void, Never>] = []
            for await call in calls {
                running.append(call)
                if running.count == CallsInFlight.perUser { break }
            }
            let refused = await Self.failure(functions, "sum", .user(Self.ada))
            #expect(refused?.code == .tooManyRequests)
            for call in running { call.resume() }
            for await error in group { #expect(error == nil) }
        }
        http.replace { _ in Self.answer(["result": 1]) }
        #expect(await Self.failure(functions, "sum", .user(Self.ada)) == nil)
    }

    @Test func `counts its calls with their errors`() async {
        let counted = Mutex<[ErrorCode?]>([])
        let http = ScriptedHTTP { _ in Self.answer(["result": 1]) }
        let functions = FunctionDispatcher(
            [Self.function { _ in }], of: .init(id: "shop"), keys: ["hook": Array("k1".utf8)],
            ports: .init(http: http, environment: ManualEnvironment(), logger: Logger(label: "test")) { function, _, error in
                #expect(function == "sum")
                counted.withLock { $0.append(error?.code) }
            })
        _ = await Self.failure(functions, "sum", .user(Self.ada))
        http.replace { _ in OutboundAnswer(status: 500) }
        _ = await Self.failure(functions, "sum", .user(Self.ada))
        // An unknown name is chosen by clients and no label of a metric.
        _ = await Self.failure(functions, "other", .user(Self.ada))
        #expect(counted.withLock(\.self) == [nil, .functionUnavailable])
    }

    @Test func `that has none is not called`() async {
        let functions = Self.functions(ScriptedHTTP { _ in Self.answer(["result": 1]) }) { $0.target = nil }
        #expect(!functions.canCall("sum") && !functions.canCall("other"))
        #expect(await Self.failure(functions, "sum", .user(Self.ada))?.code == .functionUnavailable)
    }

    // MARK: Helpers

    private static func function(_ change: (inout AppFunction) -> Void) -> AppFunction {
        var function = AppFunction("sum", target: .webhook(WebhookTarget(url: "https://hooks.example/sum", secret: "hook")))
        change(&function)
        return function
    }

    private static func functions(
        _ http: ScriptedHTTP, environment: ManualEnvironment = ManualEnvironment(), _ change: (inout AppFunction) -> Void
    ) -> FunctionDispatcher {
        FunctionDispatcher(
            [function(change)], of: .init(id: "shop", values: ["team": "red"], environmentTag: "qa"), keys: ["hook": Array("k1".utf8)],
            ports: .init(http: http, environment: environment, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
    }

    private static func answer(_ json: JSON) -> OutboundAnswer { OutboundAnswer(status: 200, body: json.utf8) }

    private static func failure(_ functions: FunctionDispatcher, _ name: String, _ caller: FunctionCall.Caller) async -> SluiceError? {
        do throws(SluiceError) {
            _ = try await functions.call(FunctionCall(name, arguments: [], caller: caller))
            return nil
        } catch {
            return error
        }
    }
}

extension AppFunction {
    /// The service of the function, for changes of it.
    fileprivate var webhook: WebhookTarget? {
        get { if case .webhook(let target) = target { target } else { nil } }
        set { target = newValue.map { .webhook($0) } }
    }
}
