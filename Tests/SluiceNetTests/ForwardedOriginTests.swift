import SluiceCore
import SluiceNet
import SluiceValues
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ServerOriginTests {
    @Test(arguments: [
        "sync.example.com", "sync.example.com:8443", "localhost", "my_host", "10.0.2.2:9090", "[2001:db8::1]", "[::1]:1", "a:65535",
        String(repeating: "a", count: 255) + ":65535",
    ])
    func `a host may have a port`(text: String) { #expect(HostAndPort(text)?.description == text) }

    @Test(arguments: [
        "", ":80", "a:", "a:0", "a:65536", "a:123456", "a:+1", "a:b", "a:1:2", "a b", " a", "user@a", "a/b", "a?b", "a#b", "a\"", "a\\b",
        "a\r\nX: y", "a%2f", "bücher.example", "[", "[]", "[1.2.3.4]", "[::1", "[::1]x", "[::1]80", "[fe80::1%25eth0]", "::1",
        "http://a", "a,b", String(repeating: "a", count: 262),
    ])
    func `any other text is no host`(text: String) { #expect(HostAndPort(text) == nil) }

    @Test(arguments: [
        ("https://sync.example.com", "https://sync.example.com", "wss://sync.example.com"),
        ("HTTPS://sync.example.com/", "https://sync.example.com", "wss://sync.example.com"),
        ("http://10.0.2.2:9090", "http://10.0.2.2:9090", "ws://10.0.2.2:9090"), ("http://[::1]:80/", "http://[::1]:80", "ws://[::1]:80"),
    ])
    func `a public URL gives both addresses`(text: String, url: String, socketURL: String) throws {
        let origin = try ServerOrigin(url: text)
        #expect((origin.url, origin.socketURL) == (url, socketURL))
    }

    @Test(arguments: [
        "", "sync.example.com", "https:", "https:/a", "https://", "https:///", "wss://a", "ftp://a", "https://a/b", "https://a//",
        "https://a?b", "https://user@a", "https://a:0", " https://a", "https://a ",
    ])
    func `a public URL of another form is named`(text: String) {
        let error = #expect(throws: SluiceError.self) { try ServerOrigin(url: text) }
        #expect(error?.code == .configInvalid && error?.message.contains("'\(text)'") == true)
        #expect(error?.fix?.contains("--public-url") == true)
    }
}

@Suite(.timeLimit(.minutes(1)))
struct ForwardedOriginTests {
    typealias Header = (name: String, value: String)

    private static let proxies = try? TrustedProxies(["10.0.0.0/8"].map { try NetworkRange($0) })
    private static let nothing = ForwardedOrigin.none

    /// The origin as `https://host`, `http://-` for a missing host and `-://host` for a missing scheme.
    private static func origin(_ headers: [Header], peer: String = "10.0.0.1") throws -> String {
        let proxies = try #require(Self.proxies)
        let origin = proxies.origin(peer: try #require(NetworkAddress(peer)), headers)
        let scheme = origin.isSecure.map { $0 ? "https" : "http" }
        return "\(scheme ?? "-")://\(origin.authority?.description ?? "-")"
    }

    @Test(arguments: [
        ([], "-://-"), (["X-Forwarded-Proto: https"], "https://-"), (["x-forwarded-host: a.example:8443"], "-://a.example:8443"),
        (["X-Forwarded-Proto: HTTP", "X-Forwarded-Host: a.example"], "http://a.example"),
        // The elements on the left, and earlier lines, may be the client's.
        (["X-Forwarded-Proto: http, https", "X-Forwarded-Host: evil.example,\ta.example "], "https://a.example"),
        (["X-Forwarded-Host: evil.example", "X-Forwarded-Host: a.example"], "-://a.example"),
        (["X-Forwarded-Proto: https,", "X-Forwarded-Host: a.example, "], "-://-"),
        (["X-Forwarded-Proto: gopher", "X-Forwarded-Host: evil.example/path"], "-://-"),
        (["X-Forwarded-Host: user@evil.example"], "-://-"),
    ])
    func `the nearest proxy's own element counts`(lines: [String], expected: String) throws {
        #expect(try Self.origin(Self.headers(lines)) == expected)
    }

    @Test(arguments: [
        (["for=203.0.113.1;proto=https;host=a.example"], "https://a.example"),
        (["Host=\"a.example:8443\";Proto=HTTPS;for=203.0.113.1"], "https://a.example:8443"),
        (["for=203.0.113.1;host=\"[2001:db8::1]\""], "-://[2001:db8::1]"), (["for=203.0.113.1"], "-://-"),
        (["proto=https;host=a.example"], "https://a.example"),
        // The inner proxy's peer is the outer proxy, which wrote the element to the left.
        (["for=203.0.113.1;proto=https;host=a.example", "for=10.0.0.7;proto=http;host=inner"], "https://a.example"),
        (["for=203.0.113.1;proto=https;host=a.example, for=10.0.0.8, for=10.0.0.7;proto=http"], "https://a.example"),
        (["for=1.1.1.1;proto=http;host=evil.example, for=203.0.113.1;proto=https;host=a.example"], "https://a.example"),
        (["for=10.0.0.9;proto=http;host=evil.example, for=203.0.113.1;proto=https"], "https://-"),
        (["for=1.1.1.1;proto=http;host=evil.example, for=_hidden;proto=https"], "https://-"),
        (["for=203.0.113.1;proto=https;proto=http"], "-://-"), (["for=203.0.113.1;host=a;host=b"], "-://-"),
        (["for=203.0.113.1;proto=https,"], "-://-"), (["for=203.0.113.1;proto=\"https"], "-://-"), ([""], "-://-"),
    ])
    func `of the standard header the outermost trusted proxy's element counts`(lines: [String], expected: String) throws {
        #expect(try Self.origin(lines.map { ("Forwarded", $0) }) == expected)
    }

    @Test func `of two forms that differ neither is believed`() throws {
        let standard = "Forwarded: for=203.0.113.1;proto=https;host=a.example"
        for (others, expected) in [
            (["X-Forwarded-Proto: https"], "https://a.example"), (["X-Forwarded-Proto: http"], "-://a.example"),
            (["X-Forwarded-Host: evil.example"], "https://-"), (["X-Forwarded-For: 203.0.113.1"], "https://a.example"),
            (["X-Forwarded-For: 203.0.113.2", "X-Forwarded-Proto: https"], "-://-"),
        ] { #expect(try Self.origin(Self.headers(others + [standard])) == expected, "\(others)") }
    }

    @Test func `a peer that is no trusted proxy is not believed`() throws {
        let headers = Self.headers([
            "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example", "Forwarded: for=1.1.1.1;proto=https;host=evil.example",
        ])
        #expect(try Self.origin(headers, peer: "203.0.113.1") == "-://-")
        #expect(TrustedProxies.none.origin(peer: try #require(NetworkAddress("10.0.0.1")), headers) == Self.nothing)
    }

    /// Whatever a client sends, the elements that the proxies append decide; of a line that the client broke, nothing is believed.
    @Test func `no client chooses its origin`() throws {
        var random = SplitMix64()
        let pieces = [
            "1.1.1.1", "for=1.1.1.1", "proto=http", "host=evil.example", "\"", "\\", ",", ";", "=", " ", "for", "http", "evil.example",
            "for=10.0.0.5", "unknown", "é", "\t",
        ]
        for _ in 0..<5_000 {
            let forged = (0..<Int.random(in: 0...8, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
            let hops = (0..<Int.random(in: 0...3, using: &random)).map { _ in "10.0.\(random.next() % 256).\(random.next() % 256)" }
            let isOneLine = Bool.random(using: &random)
            let standard =
                ["for=\"203.0.113.1:1\";proto=https;host=\"a.example:8443\""] + hops.map { "for=\($0);proto=http;host=inner" }
            let byStandard = try Self.origin(Self.lines(forged, standard, isOneLine).map { ("Forwarded", $0) })
            #expect(
                byStandard == "https://a.example:8443" || (isOneLine && byStandard == "-://-"), "'\(forged)', \(hops), seed \(random.seed)")
            let bySimple = try Self.origin(
                Self.lines(forged, ["https"], isOneLine).map { ("X-Forwarded-Proto", $0) }
                    + Self.lines(forged, ["a.example"], isOneLine).map { ("X-Forwarded-Host", $0) })
            #expect(bySimple == "https://a.example", "'\(forged)', seed \(random.seed)")
        }
    }

    @Test func `routes are told the origin behind a trusted proxy`() async throws {
        let proxies = TrustedProxies([try NetworkRange("127.0.0.0/8")])
        for (trusted, expected) in [(proxies, "https://a.example"), (.none, "-://-")] {
            try await withServer(.init(trustedProxies: trusted)) { server in
                let client = try await RawClient.connect(port: server.port)
                try await client.send(
                    text: "GET /origin HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\n"
                        + "X-Forwarded-Host: a.example\r\n\r\n")
                #expect(try JSON.parse(try await client.readResponse().body)["origin"] == .string(expected))
            }
        }
    }

    private static func lines(_ forged: String, _ own: [String], _ isOneLine: Bool) -> [String] {
        isOneLine ? [([forged] + own).joined(separator: ", ")] : [forged] + own
    }

    private static func headers(_ lines: [String]) -> [Header] {
        lines.map { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            return (name: String(parts[0]), value: parts.count > 1 ? String(parts[1].drop { $0 == " " }) : "")
        }
    }
}
