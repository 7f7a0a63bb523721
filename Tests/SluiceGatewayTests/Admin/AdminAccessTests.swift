import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluicePostgres
import SluiceValues
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif
#if canImport(Glibc)
    import Glibc
#endif

/// A gateway whose admin port has two tokens.
enum GuardedGateway {
    static let change = "change-" + String(repeating: "c", count: 40)
    static let read = "read-" + String(repeating: "r", count: 40)

    static func configuration(
        _ conninfo: String, host: String = "127.0.0.1", tokens: AdminTokens? = nil, socket: String? = nil
    ) throws -> GatewayConfiguration {
        var configuration = GatewayConfiguration(
            app: try ShopApp.configuration(files: [:]), postgres: conninfo, kafka: nil,
            network: .init(port: 0, adminHost: host, adminPort: 0))
        configuration.admin = .init(
            tokens: try tokens ?? AdminTokens.parse("change ops \(change)\nread eyes \(read)", of: "test"), socket: socket)
        return configuration
    }

    static func with(
        host: String = "127.0.0.1", tokens: AdminTokens? = nil, socket: String? = nil,
        _ body: @escaping @Sendable (RunningGateway) async throws -> Void
    ) async throws {
        try await RunningGateway.deploy { deployment in
            try await RunningGateway.run(
                try configuration(deployment.conninfo, host: host, tokens: tokens, socket: socket), body)
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct `The access to the admin port` {
    /// Every route of the admin API, and the role that it needs.
    private static let routes: [(method: String, path: String)] = [
        ("GET", "/metrics"), ("GET", "/admin/v1/users"), ("GET", "/admin/v1/users/USER"), ("GET", "/admin/v1/plugins"),
        ("GET", "/admin/v1/quarantine"), ("GET", "/admin/v1/ingest/rejected"), ("GET", "/admin/v1/audit"),
        ("GET", "/admin/v1/api_keys"), ("GET", "/admin/v1/why?user=USER&type=Order&id=1"),
        ("GET", "/admin/v1/explain?user=USER&type=Tag&query=TRUEPREDICATE"),
        ("POST", "/admin/v1/users"), ("PUT", "/admin/v1/users/USER/custom_data"), ("PUT", "/admin/v1/users/USER/disable"),
        ("PUT", "/admin/v1/users/USER/enable"), ("PUT", "/admin/v1/users/USER/logout"), ("DELETE", "/admin/v1/users/USER"),
        ("POST", "/admin/v1/api_keys"), ("POST", "/admin/v1/users/USER/api_keys"), ("DELETE", "/admin/v1/api_keys/x"),
        ("PUT", "/admin/v1/api_keys/x/disable"), ("POST", "/admin/v1/quarantine/release"), ("POST", "/admin/v1/ingest/replay"),
    ]

    @Test(arguments: ["0.0.0.0", "::", "10.1.2.3", "gateway", "128.0.0.1"])
    func `is not given at an address of the network without a token`(host: String) async throws {
        var configuration = try GuardedGateway.configuration("host=127.0.0.1 port=1", host: host, tokens: AdminTokens())
        let error = await #expect(throws: SluiceError.self) { try await RunningGateway.run(configuration) { _ in } }
        #expect(error?.code == .adminTokenMissing && error?.message.contains(host) == true)
        for loopback in ["127.0.0.1", "127.3.2.1", "::1", "localhost"] {
            configuration.network.adminHost = loopback
            try configuration.requireAdminToken()
        }
    }

    @Test func `needs a token on every route, and the role change for every change`() async throws {
        try await GuardedGateway.with(host: "0.0.0.0") { gateway in
            let made = try await gateway.request(
                "POST", "/admin/v1/users", #"{"email":"ann@example.com","password":"password"}"#, admin: true,
                token: GuardedGateway.change)
            let user = try #require(made.json["id"]?.string, "\(made)")
            let before = try await gateway.texts("SELECT row_to_json(u)::text FROM sluice.user_account u")
            for (method, pattern) in Self.routes {
                let path = pattern.replacing("USER", with: user)
                for token in [nil, "", "x", String(GuardedGateway.change.dropLast()), GuardedGateway.change + "c"] {
                    let answer = try await gateway.request(method, path, "{}", admin: true, token: token)
                    #expect(answer.status == 401 && answer.code == Int(ErrorCode.adminUnauthorized.rawValue), "\(method) \(path)")
                }
                let answer = try await gateway.request(method, path, "{}", admin: true, token: GuardedGateway.read)
                if method == "GET" {
                    #expect(answer.status == 200, "\(method) \(path): \(answer)")
                } else {
                    #expect(answer.status == 403 && answer.code == Int(ErrorCode.adminForbidden.rawValue), "\(method) \(path)")
                }
            }
            #expect(try await gateway.texts("SELECT row_to_json(u)::text FROM sluice.user_account u") == before)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.admin_audit") == 1)
            #expect(try await gateway.request("GET", "/health", admin: true).status == 200)
            #expect(try await gateway.request("GET", "/ready", admin: true).status == 200)
            let disabled = try await gateway.request(
                "PUT", "/admin/v1/users/\(user)/disable", admin: true, token: GuardedGateway.change)
            #expect(disabled.status == 204)
        }
    }

    @Test func `is open on the loopback without tokens, and closed there with them`() async throws {
        try await GuardedGateway.with(tokens: AdminTokens()) { gateway in
            let list = try await gateway.request("GET", "/admin/v1/users", admin: true)
            let change = try await gateway.request("POST", "/admin/v1/quarantine/release", admin: true)
            #expect(list.status == 200 && change.status == 200)
            #expect(try await gateway.texts("SELECT actor FROM sluice.admin_audit") == ["loopback"])
        }
        try await GuardedGateway.with { gateway in
            #expect(try await gateway.request("GET", "/admin/v1/users", admin: true).status == 401)
            let refused = #"sluice_admin_refused_total{code="admin-unauthorized"} 1"#
            var request = URLRequest(url: try #require(URL(string: gateway.adminURL + "/metrics")))
            request.setValue("Bearer \(GuardedGateway.read)", forHTTPHeaderField: "Authorization")
            let (data, _) = try await URLSession.shared.data(for: request)
            #expect(String(decoding: data, as: UTF8.self).contains(refused))
        }
    }

    @Test func `is given to a Unix socket by its file's mode alone`() async throws {
        let path = "/tmp/sluice-\(UInt32.random(in: .min ... .max)).sock"
        // What a gateway that was killed leaves.
        #expect(Self.leaveSocket(at: path))
        try await GuardedGateway.with(socket: path) { gateway in
            var status = stat()
            #expect(lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK && status.st_mode & 0o777 == 0o600)
            let answer = try Self.ask(path, "POST /admin/v1/quarantine/release HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.hasSuffix(#"{"released":0,"left":0}"#), "\(answer)")
            #expect(try await gateway.texts("SELECT actor FROM sluice.admin_audit") == ["unix socket"])
            #expect(try await gateway.request("POST", "/admin/v1/quarantine/release", admin: true).status == 401)
            let second = try GuardedGateway.configuration(gateway.conninfo, socket: path)
            let error = await #expect(throws: SluiceError.self) { try await RunningGateway.run(second) { _ in } }
            #expect(error?.code == .portInUse)
            #expect(try Self.ask(path, "GET /health HTTP/1.1\r\nHost: localhost\r\n").hasPrefix("HTTP/1.1 200 "))
        }
        #expect(access(path, F_OK) != 0, "the socket is left")
    }

    private static func leaveSocket(at path: String) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }

    private static func ask(_ path: String, _ head: String) throws -> String {
        let socket = try #require(UnixSocket.connect(path))
        defer { close(socket) }
        let request = Array("\(head)Connection: close\r\n\r\n".utf8)
        try #require(write(socket, request, request.count) == request.count)
        var answer: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4_096)
        while case let count = Glibc.read(socket, &piece, piece.count), count > 0 { answer += piece.prefix(count) }
        return String(decoding: answer, as: UTF8.self)
    }
}
