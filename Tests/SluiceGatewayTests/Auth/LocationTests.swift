import Foundation
import FoundationNetworking
import GatewayTestSupport
import HTTPTypes
import SluiceCore
import SluiceGateway
import SluiceNet
import SluiceValues
import Testing

@Suite struct `The location of the gateway` {
    private static let path = "/api/client/v2.0/app/shop/location"

    private static func host(_ text: String) throws -> HostAndPort { try #require(HostAndPort(text)) }

    @Test func `has the texts that clients need, and no route of sync`() async throws {
        let answer = try await AuthFixture().call(.get, Self.path)
        #expect(answer.status == 200 && answer.headers[.contentType] == "application/json")
        let names = answer.json.members?.map(\.key).sorted()
        #expect(names == ["deployment_model", "hostname", "location", "ws_hostname"])
        #expect(answer.json.members?.allSatisfy { $0.value.string?.isEmpty == false } == true, "\(answer.json.text)")
    }

    @Test(arguments: ["gateway:9090", "127.0.0.1", "[::1]:9090"])
    func `is the host that the client asked`(host: String) async throws {
        let json = try await AuthFixture().call(.get, Self.path, host: host).json
        #expect(json["hostname"] == .string("http://\(host)") && json["ws_hostname"] == .string("ws://\(host)"))
    }

    @Test func `is the one that the trusted proxy names, part by part`() async throws {
        let fixture = try await AuthFixture()
        for (forwarded, url, socketURL) in [
            (ForwardedOrigin(isSecure: true), "https://gateway:9090", "wss://gateway:9090"),
            (ForwardedOrigin(isSecure: false, authority: try Self.host("a.example")), "http://a.example", "ws://a.example"),
            (ForwardedOrigin(authority: try Self.host("a.example:81")), "http://a.example:81", "ws://a.example:81"),
            (ForwardedOrigin(isSecure: true, authority: try Self.host("a.example")), "https://a.example", "wss://a.example"),
        ] {
            let json = try await fixture.call(.get, Self.path, forwarded: forwarded).json
            #expect(json["hostname"] == .string(url) && json["ws_hostname"] == .string(socketURL), "\(json.text)")
        }
    }

    @Test func `is the configured one, whatever the headers say`() async throws {
        let fixture = try await AuthFixture(publicURL: "https://sync.example.com/")
        let forged = ForwardedOrigin(isSecure: false, authority: try Self.host("evil.example"))
        for host in ["gateway:9090", "evil.example", "not a host", nil] {
            let json = try await fixture.call(.get, Self.path, host: host, forwarded: forged).json
            #expect(json["hostname"] == "https://sync.example.com" && json["ws_hostname"] == "wss://sync.example.com", "\(host ?? "-")")
        }
    }

    @Test(arguments: ["evil.example/path", "user@evil.example", "a\"b", "a:0", "", nil])
    func `is refused to a request without a usable host`(host: String?) async throws {
        let answer = try await AuthFixture().call(.get, Self.path, host: host)
        #expect(answer.status == 400 && answer.json["error_code"] == "BadRequest")
        #expect(answer.json["error"]?.string?.contains("Host") == true && answer.json["hostname"] == nil)
    }

    @Test func `of another app does not exist`() async throws {
        let answer = try await AuthFixture().call(.get, "/api/client/v2.0/app/other/location")
        #expect(answer.status == 404)
        #expect(answer.json["error"]?.string?.contains("'other'") == true && answer.json["error_code"] == "BadRequest")
    }

    /// The headers are believed from a trusted proxy only, and from none with a public URL.
    @Test(.timeLimit(.minutes(10))) func `follows the options of a running gateway`() async throws {
        try await RunningGateway.deploy { deployment in
            let proxies = TrustedProxies([try NetworkRange("127.0.0.1")])
            let origin = try ServerOrigin(url: "https://sync.example.com")
            let cases: [(trusted: TrustedProxies, origin: ServerOrigin?, hostname: String?)] = [
                (.none, nil, nil), (proxies, nil, "https://a.example"), (proxies, origin, "https://sync.example.com"),
            ]
            for (trusted, origin, expected) in cases {
                let configuration = GatewayConfiguration(
                    app: try ShopApp.configuration(), postgres: deployment.conninfo, kafka: nil,
                    network: .init(port: 0, adminPort: 0, trustedProxies: trusted, publicOrigin: origin))
                try await RunningGateway.run(configuration) { gateway in
                    var request = URLRequest(url: try #require(URL(string: gateway.url + Self.path)))
                    request.setValue("203.0.113.1", forHTTPHeaderField: "X-Forwarded-For")
                    request.setValue("http, https", forHTTPHeaderField: "X-Forwarded-Proto")
                    request.setValue("evil.example, a.example", forHTTPHeaderField: "X-Forwarded-Host")
                    let (data, _) = try await URLSession.shared.data(for: request)
                    #expect(try JSON.parse(Array(data))["hostname"] == .string(expected ?? gateway.url))
                }
            }
        }
    }
}
