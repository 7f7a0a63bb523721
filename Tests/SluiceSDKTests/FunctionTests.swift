import Foundation
import SluiceCore
import SluiceValues
import Synchronization
import Testing

@testable import SluiceSDK

/// Calls of the app's functions.
@Suite(.timeLimit(.minutes(1))) struct FunctionTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A server that logs in, and answers calls with a status and a text.
    private func server(_ answers: (Int, String)...) throws -> CannedServer {
        let left = Mutex(answers)
        return try CannedServer { request in
            if request.line.contains("/auth/session") { return .init(status: 201, body: #"{"access_token":"newer"}"#) }
            if request.line.contains("functions/call") {
                let (status, body) = left.withLock { $0.isEmpty ? (500, "") : $0.removeFirst() }
                return .init(status: status, body: body)
            }
            return .init(status: 200, body: #"{"access_token":"first","refresh_token":"refresh","user_id":"ann","device_id":"d"}"#)
        }
    }

    private func login(_ server: CannedServer) async throws -> User {
        let app = App(id: "shop", configuration: AppConfiguration(baseURL: server.url, storageDirectory: folder.url))
        return try await app.login(credentials: .anonymous)
    }

    @Test func `a call sends its arguments with the types of their numbers, and reads the result`() async throws {
        let server = try server((200, #"{"sum":{"$numberInt":"3"},"many":[1,{"$numberLong":"2"},{"$numberDouble":"0.5"}]}"#))
        let user = try await login(server)
        let id = try ObjectId(string: "0123456789abcdef01234567")
        let result = try await user.functions.sum(1, .int32(2), .double(.infinity), ["a": [.objectId(id), nil]], "text", true)
        #expect(result == ["sum": .int32(3), "many": [.int64(1), .int64(2), .double(0.5)]])
        let request = try #require(server.requests.last)
        #expect(request.line == "POST /api/client/v2.0/app/shop/functions/call HTTP/1.1")
        #expect(request.headers["authorization"] == "Bearer first")
        #expect(
            try JSON.parse(request.body) == [
                "name": "sum",
                "arguments": [
                    ["$numberLong": "1"], ["$numberInt": "2"], ["$numberDouble": "Infinity"],
                    ["a": [["$oid": "0123456789abcdef01234567"], .null]], "text", true,
                ],
            ])
    }

    @Test func `a call with an expired token is sent again with a new one`() async throws {
        let server = try server((401, #"{"error":"expired","error_code":"AuthError"}"#), (200, "7"))
        let user = try await login(server)
        #expect(try await user.functions.seven([]) == .int64(7))
        let calls = server.requests.filter { $0.line.contains("functions/call") }
        #expect(calls.map { $0.headers["authorization"] } == ["Bearer first", "Bearer newer"])
        #expect(user.accessToken == "newer")
    }

    @Test(arguments: [
        (400, "FunctionExecutionError", AppError.Code.functionExecutionError), (404, "FunctionNotFound", .functionNotFound),
        (504, "ExecutionTimeLimitExceeded", .executionTimeLimitExceeded), (403, "NoMatchingRuleFound", .unknown),
        (429, "TooManyRequests", .unknown),
    ])
    func `an error of a call has its code and the function's text, and is not repeated`(
        status: Int, name: String, code: AppError.Code
    ) async throws {
        let server = try server((status, #"{"error":"no stock","error_code":"\#(name)"}"#))
        let user = try await login(server)
        let error = await #expect(throws: AppError.self) { try await user.functions.order("x") }
        #expect(error?.code == code && error?.message == "no stock" && error?.httpStatusCode == status)
        #expect(server.requests.filter { $0.line.contains("functions/call") }.count == 1)
    }

    @Test func `code without async is called back with the result or the error`() async throws {
        let server = try server((200, #""done""#), (400, "{}"), (200, "null"), (404, #"{"error":"none","error_code":"FunctionNotFound"}"#))
        let functions = try await login(server).functions
        let first: (AnyBSON?, (any Error)?) = await withCheckedContinuation { done in
            functions.run([]) { done.resume(returning: ($0, $1)) }
        }
        #expect(first.0 == "done" && first.1 == nil)
        let second: (AnyBSON?, (any Error)?) = await withCheckedContinuation { done in
            functions.run([]) { done.resume(returning: ($0, $1)) }
        }
        #expect(second.0 == nil && (second.1 as? AppError)?.code == .badRequest)
        let third: Result<AnyBSON, any Error> = await withCheckedContinuation { done in
            functions.run([]) { (result: Result<AnyBSON, any Error>) in done.resume(returning: result) }
        }
        #expect(try third.get() == .null)
        let fourth: Result<AnyBSON, any Error> = await withCheckedContinuation { done in
            functions.run([]) { (result: Result<AnyBSON, any Error>) in done.resume(returning: result) }
        }
        #expect(throws: AppError.self) { try fourth.get() }
    }

    @Test func `a user who is logged out calls nothing`() async throws {
        let server = try server((200, "1"))
        let user = try await login(server)
        try await user.logOut()
        let error = await #expect(throws: AppError.self) { try await user.functions.one([]) }
        #expect(error?.code == .invalidSession)
        #expect(!server.requests.contains { $0.line.contains("functions/call") })
    }
}
