import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceValues
import SluiceWire
import SwiftProtobuf
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(5))) struct `The client port of a development gateway` {
    private static let local = [
        nil, "http://localhost:3000", "http://127.0.0.1:8090", "https://[::1]", "http://app.localhost", "http://LOCALHOST",
    ]
    private static let foreign = [
        "null", "https://evil.example", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "http://192.0.2.7",
        "http://evil@localhost",
        "file://", "", "http://gateway",
    ]

    @Test func `is asked by this machine's names, and by pages of this machine`() {
        let site = DevelopmentSite(host: "dev.example.com")
        for host in ["127.0.0.1:8090", "localhost", "[::1]:8090", "dev.example.com:8090", "DEV.example.com", nil] {
            for origin in Self.local + ["http://dev.example.com:1"] { #expect(site.problem(host: host, origin: origin) == nil) }
            for origin in Self.foreign { #expect(site.problem(host: host, origin: origin)?.code == .crossSiteRequest, "\(origin)") }
        }
        for host in ["evil.example", "localhost.evil.example:8090", "127.0.0.1.evil.example"] {
            #expect(site.problem(host: host, origin: nil)?.code == .crossSiteRequest, "\(host)")
        }
    }

    @Test func `on all addresses is asked by pages of each of them, and by no other`() {
        let site = DevelopmentSite(host: "0.0.0.0", names: ["192.168.1.7", "2001:DB8::7"])
        for origin in Self.local + ["http://192.168.1.7:8090", "http://[2001:db8::7]:1"] {
            #expect(site.problem(host: "192.168.1.7:8090", origin: origin) == nil, "\(origin ?? "")")
        }
        for origin in Self.foreign + ["http://192.168.1.8:8090", "http://[2001:db8::8]"] {
            #expect(site.problem(host: "192.168.1.7:8090", origin: origin)?.code == .crossSiteRequest, "\(origin)")
        }
        #expect(site.problem(host: "evil.example", origin: nil)?.code == .crossSiteRequest)
    }

    private static func status(_ gateway: RunningGateway, _ fields: [String: String]) async throws -> (Int, JSON) {
        let url = try #require(URL(string: gateway.url + "/api/client/v2.0/app/shop/auth/providers/anon-user/login"))
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = Data("{}".utf8)
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        let (data, response) = try await URLSession.shared.data(for: request)
        return ((response as? HTTPURLResponse)?.statusCode ?? 0, (try? JSON.parse(Array(data))) ?? .null)
    }

    @Test func `refuses other sites by HTTP and WebSocket, which a gateway with rules does not`() async throws {
        for isDevelopment in [true, false] {
            try await RunningGateway.with(isDevelopment: isDevelopment) { gateway in
                #expect(try await Self.status(gateway, [:]).0 == 200)
                #expect(try await Self.status(gateway, ["Origin": "http://localhost:3000"]).0 == 200)
                for fields in [["Origin": "https://evil.example"], ["Host": "evil.example"], ["Origin": "null"]] {
                    let (code, json) = try await Self.status(gateway, fields)
                    #expect(code == (isDevelopment ? 403 : 200), "\(fields)")
                    if isDevelopment { #expect(json["code"]?.int == Int64(ErrorCode.crossSiteRequest.rawValue), "\(json.text)") }
                }
                _ = try await RawSocket.webSocket(gateway.url, host: "localhost", "Origin: http://localhost\r\n")
                for (host, headers) in [("localhost", "Origin: https://evil.example\r\n"), ("evil.example", "")] {
                    guard isDevelopment else {
                        _ = try await RawSocket.webSocket(gateway.url, host: host, headers)
                        continue
                    }
                    let refusal = await #expect(throws: RawSocket.Failure.self) {
                        _ = try await RawSocket.webSocket(gateway.url, host: host, headers)
                    }
                    #expect(refusal?.what.hasPrefix("HTTP/1.1 403 ") == true, "\(refusal?.what ?? "")")
                }
            }
        }
    }

    @Test func `takes no class or property whose name is not on the allow-list, and runs nothing of it`() async throws {
        let key = Property(id: 1, name: "_id", type: .string)
        let hostile = "a\"\u{301} text); DROP TABLE tags; --"
        try await RunningGateway.with(isDevelopment: true) { gateway in
            for schema in [
                Schema([ObjectType(name: hostile, properties: [key])]),
                Schema([ObjectType(name: "Fine", properties: [key, Property(id: 2, name: hostile, type: .string)])]),
                Schema([ObjectType(name: "Order", properties: [key, Property(id: 2, name: hostile, type: .string)])]),
            ] {
                let (session, token) = (try await gateway.session(token: ""), try await gateway.anonymousToken())
                try await session.send(
                    .hello(
                        .with {
                            $0.protocol = WireProtocol.version
                            $0.accessToken = token
                            $0.schema = schema.messages
                        }))
                let error = try await session.failure()
                #expect(error.code == .invalidName && session.error?.action == .applicationBug, "\(error)")
            }
            #expect(try await gateway.count("SELECT count(*) FROM tags") == 0)
            #expect(try await gateway.count("SELECT count(*) FROM information_schema.tables WHERE table_name = 'Fine'") == 0)
        }
    }
}
