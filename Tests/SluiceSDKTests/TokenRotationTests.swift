import Foundation
import SluiceCore
import SluiceSync
import SluiceValues
import Synchronization
import Testing

@testable import SluiceSDK

/// A gateway takes each refresh token until the next one is used. A token that was used before then ends the login.
@Suite struct `The refresh token of a user` {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static func token(_ generation: Int, login: String = "l1") -> String {
        let claims = Data(#"{"sid":"\#(login)","generation":\#(generation)}"#.utf8).base64EncodedString()
        return "h.\(claims.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")).s"
    }

    /// A server that issues the next generation of each refresh token that it receives.
    private func server() throws -> CannedServer {
        try CannedServer { request in
            if request.line.hasPrefix("DELETE") { return .init(status: 204, body: "") }
            if request.line.hasPrefix("POST /api/client/v2.0/auth/session?rotate=true ") {
                let sent = request.headers["authorization"]?.dropFirst("Bearer ".count)
                let claims = sent.flatMap { AccessTokenClaims.read(String($0)) }
                let next = Int(claims?["generation"]?.int ?? -1) + 1
                return .init(status: 201, body: #"{"access_token":"h.e30.renewed","refresh_token":"\#(Self.token(next))"}"#)
            }
            return .init(
                status: 200, body: #"{"access_token":"h.e30.first","refresh_token":"\#(Self.token(0))","user_id":"ann","device_id":"d"}"#)
        }
    }

    private func app(_ server: CannedServer) -> App {
        App(id: "shop", configuration: AppConfiguration(baseURL: server.url, storageDirectory: folder.url))
    }

    /// The generations of the refresh tokens that the server received.
    private func sent(_ server: CannedServer) -> [Int64?] {
        server.requests.filter { $0.line.contains("auth/session") }.map { request in
            let token = request.headers["authorization"]?.dropFirst("Bearer ".count)
            return token.flatMap { AccessTokenClaims.read(String($0)) }?["generation"]?.int
        }
    }

    private var storedFile: URL { folder.url.appendingPathComponent("shop/users.json") }

    private func stored() throws -> String? {
        let json = try JSON.parse(Array(try Data(contentsOf: storedFile)))
        return json["users"]?.array?.first?["refresh_token"]?.string
    }

    @Test func `is replaced at each renewal, and stored before it is used`() async throws {
        let server = try server()
        let user = try await app(server).login(credentials: .anonymous)
        for generation in 1...3 {
            try await user.refreshCustomData()
            #expect(user.refreshToken == Self.token(generation))
            #expect(try stored() == user.refreshToken)
        }
        #expect(sent(server) == [0, 1, 2])
        try await user.logOutEverywhere()
        #expect(server.requests.last?.line == "DELETE /api/client/v2.0/auth/session?everywhere=true HTTP/1.1")
        #expect(sent(server).last == 3 && !user.isLoggedIn)
        await #expect(throws: AppError.self) { try await user.logOutEverywhere() }
    }

    @Test func `is not replaced by one that cannot be stored`() async throws {
        let server = try server()
        let user = try await app(server).login(credentials: .anonymous)
        // A folder in the place of the new file.
        let blocker = URL(fileURLWithPath: "\(storedFile.path).new")
        try FileManager.default.createDirectory(at: blocker, withIntermediateDirectories: true)
        try await user.refreshCustomData()
        #expect(user.refreshToken == Self.token(0))
        try FileManager.default.removeItem(at: blocker)
        try await user.refreshCustomData()
        #expect(sent(server) == [0, 0] && user.refreshToken == Self.token(1))
        #expect(try stored() == Self.token(1))
    }

    @Test func `is the newest one that another process of the app has stored`() async throws {
        let server = try server()
        let app = app(server)
        let user = try await app.login(credentials: .anonymous)
        func store(_ token: String) throws {
            let text = try String(contentsOf: storedFile, encoding: .utf8)
            let now = try #require(try stored())
            try text.replacing(now, with: token).write(to: storedFile, atomically: true, encoding: .utf8)
        }
        try store(Self.token(5))
        // Another user's login does not bring the old token back.
        app.save()
        #expect(try stored() == Self.token(5) && user.refreshToken == Self.token(5))
        try await user.refreshCustomData()
        #expect(sent(server) == [5] && user.refreshToken == Self.token(6))
        // Those of another login, and older ones, are not taken.
        for other in [Self.token(4), Self.token(9, login: "l2")] {
            try store(other)
            try await user.refreshCustomData()
        }
        #expect(sent(server) == [5, 6, 7])
    }
}
