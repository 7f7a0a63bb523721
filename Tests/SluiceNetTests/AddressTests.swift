import NIOCore
import SluiceCore
import SluiceNet
import SluiceValues
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct NetworkAddressTests {
    @Test func `an address is the one that its text says`() {
        var random = SplitMix64()
        for _ in 0..<2_000 {
            let address =
                Bool.random(using: &random)
                ? NetworkAddress(v4: .random(in: .min ... .max, using: &random))
                : NetworkAddress(v6: UInt128(random.next()) << 64 | UInt128(random.next()))
            #expect(NetworkAddress(address.description) == address, "seed \(random.seed)")
            #expect(NetworkAddress(address.socketAddress(port: 7)) == address, "seed \(random.seed)")
        }
    }

    @Test func `an IPv4 address in an IPv6 one is the IPv4 address`() {
        #expect(NetworkAddress("::ffff:192.0.2.1") == NetworkAddress("192.0.2.1"))
        #expect(NetworkAddress("::ffff:192.0.2.1")?.description == "192.0.2.1")
    }

    @Test(arguments: ["", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.1.1.1", "1.2.3.4:5", "[::1]", "fe80::1%eth0", "::g", "1.2.3.4\0", " ::1"])
    func `other texts are no address`(text: String) { #expect(NetworkAddress(text) == nil) }

    @Test func `limits count a network of 64 bits of IPv6, and one address of IPv4`() {
        #expect(NetworkAddress("2001:db8:1:2:3:4:5:6")?.limitGroup == NetworkAddress("2001:db8:1:2::"))
        #expect(NetworkAddress("2001:db8:1:3::1")?.limitGroup != NetworkAddress("2001:db8:1:2::1")?.limitGroup)
        #expect(NetworkAddress("192.0.2.1")?.limitGroup == NetworkAddress("192.0.2.1"))
    }

    @Test func `a range holds the addresses that share its prefix, and no others`() throws {
        var random = SplitMix64()
        for _ in 0..<2_000 {
            let isFour = Bool.random(using: &random)
            let width = isFour ? 32 : 128
            let prefix = Int.random(in: 0...width, using: &random)
            let base = UInt128(random.next()) << 64 | UInt128(random.next())
            // Mostly near the base: addresses that differ in one bit.
            let other = base ^ UInt128(1) << UInt128(Int.random(in: 0..<width, using: &random))
            let address: (UInt128) -> NetworkAddress = {
                isFour ? NetworkAddress(v4: UInt32(truncatingIfNeeded: $0)) : NetworkAddress(v6: $0)
            }
            let range = try NetworkRange("\(address(base))/\(prefix)")
            let sharesPrefix = (0..<prefix).allSatisfy { bit in (base ^ other) >> UInt128(width - 1 - bit) & 1 == 0 }
            #expect(range.contains(address(base)), "seed \(random.seed)")
            #expect(range.contains(address(other)) == sharesPrefix, "\(range), \(address(other)), seed \(random.seed)")
        }
    }

    @Test(arguments: ["", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "::/129", "proxy", "::/0x"])
    func `a range that is none is named`(text: String) {
        let error = #expect(throws: SluiceError.self) { try NetworkRange(text) }
        #expect(error?.code == .configInvalid)
        #expect(error?.message.contains("'\(text)'") == true)
    }
}

@Suite(.timeLimit(.minutes(1)))
struct TrustedProxiesTests {
    private static let proxies = try? TrustedProxies(["10.0.0.0/8", "fd00::/8"].map { try NetworkRange($0) })

    private static func client(_ peer: String, _ simple: [String] = [], standard: [String] = []) throws -> String {
        let proxies = try #require(Self.proxies)
        return proxies.client(peer: try #require(NetworkAddress(peer)), forwardedFor: simple, forwarded: standard).description
    }

    @Test(arguments: [
        // The header of a peer that is not trusted is its own word.
        ("192.0.2.9", ["203.0.113.1"], "192.0.2.9"), ("10.0.0.1", [], "10.0.0.1"), ("10.0.0.1", ["203.0.113.1"], "203.0.113.1"),
        ("10.0.0.1", ["1.1.1.1, 203.0.113.1"], "203.0.113.1"), ("10.0.0.1", ["203.0.113.1, 10.0.0.7"], "203.0.113.1"),
        ("10.0.0.1", ["1.1.1.1", "203.0.113.1", "10.0.0.7"], "203.0.113.1"), ("10.0.0.1", ["10.0.0.3,10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["203.0.113.1:4711"], "203.0.113.1"), ("fd00::1", ["[2001:db8::1]:80, fd00::2"], "2001:db8::1"),
        ("10.0.0.1", ["2001:db8::1"], "2001:db8::1"), ("::ffff:10.0.0.1", ["203.0.113.1"], "203.0.113.1"),
        ("10.0.0.1", ["1.1.1.1, unknown"], "10.0.0.1"), ("10.0.0.1", ["1.1.1.1, , 10.0.0.2"], "10.0.0.2"), ("10.0.0.1", [""], "10.0.0.1"),
    ])
    func `the client is the right-most address that is not trusted`(peer: String, lines: [String], client: String) throws {
        #expect(try Self.client(peer, lines) == client)
    }

    @Test(arguments: [
        (["for=203.0.113.1"], "203.0.113.1"), (["For=\"203.0.113.1:80\";proto=https;by=10.0.0.1"], "203.0.113.1"),
        (["for=1.1.1.1, for=\"[2001:db8::1]:4711\" , proto=http;for=10.0.0.2"], "2001:db8::1"),
        (["for=1.1.1.1, for=_hidden"], "10.0.0.1"), (["for=1.1.1.1, proto=http"], "10.0.0.1"),
        (["for=\"1.1.1.1", "for=203.0.113.1"], "203.0.113.1"), (["for=\"1.1.1.1, for=203.0.113.1"], "10.0.0.1"),
        (["for=1.1.1.1;for=203.0.113.1"], "10.0.0.1"), (["for=\"203.0.113.\\1\""], "203.0.113.1"), ([""], "10.0.0.1"),
        (["for=203.0.113.1,"], "10.0.0.1"),
    ])
    func `the standard header is read as RFC 7239 says`(lines: [String], client: String) throws {
        #expect(try Self.client("10.0.0.1", standard: lines) == client)
    }

    @Test func `of two headers that differ neither is believed`() throws {
        #expect(try Self.client("10.0.0.1", ["1.1.1.1"], standard: ["for=203.0.113.1"]) == "10.0.0.1")
        #expect(try Self.client("10.0.0.1", ["203.0.113.1"], standard: ["for=203.0.113.1"]) == "203.0.113.1")
    }

    /// Whatever a client sends, the address that the first trusted proxy appends is found, or a trusted one; never one of its choice.
    @Test func `no client chooses its address`() throws {
        var random = SplitMix64()
        let proxies = try #require(Self.proxies)
        let pieces = [
            "1.1.1.1", "for=1.1.1.1", "\"", "\\", ",", ";", "=", " ", "for", "[", "]", ":", "::1", "unknown", "10.0.0.5", "é", "\t",
        ]
        for _ in 0..<5_000 {
            let client = NetworkAddress(v4: UInt32(0xCB00_7100) | .random(in: 0...255, using: &random))
            let hops = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                NetworkAddress(v4: 0x0A00_0000 | UInt32(random.next() % 1_000))
            }
            let forged = (0..<Int.random(in: 0...8, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
            let seen = [client] + hops
            let isOneLine = Bool.random(using: &random)
            let simple = Self.lines(forged, seen.map(\.description), isOneLine)
            let standard = Self.lines(forged, seen.map { "for=\"\($0):1\";proto=https" }, isOneLine)
            let peer = NetworkAddress(v4: 0x0A00_0001)
            let bySimple = proxies.client(peer: peer, forwardedFor: simple, forwarded: [String]())
            #expect(bySimple == client, "\(simple), seed \(random.seed)")
            let byStandard = proxies.client(peer: peer, forwardedFor: [String](), forwarded: standard)
            #expect(byStandard == client || (isOneLine && byStandard == peer), "\(standard), seed \(random.seed)")
        }
    }

    private static func lines(_ forged: String, _ seen: [String], _ isOneLine: Bool) -> [String] {
        isOneLine ? [([forged] + seen).joined(separator: ", ")] : [forged] + seen
    }

    @Test func `routes and sockets are told the address behind a trusted proxy`() async throws {
        let proxies = TrustedProxies([try NetworkRange("127.0.0.0/8")])
        for (trusted, expected) in [(proxies, "203.0.113.7"), (.none, "127.0.0.1")] {
            try await withServer(.init(trustedProxies: trusted)) { server in
                let client = try await RawClient.connect(port: server.port)
                try await client.send(text: "GET /address HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.1.1.1, 203.0.113.7\r\n\r\n")
                #expect(try JSON.parse(try await client.readResponse().body)["address"] == .string(expected))
                let socket = try await RawClient.connect(port: server.port)
                _ = try await socket.upgrade(extra: "Forwarded: for=1.1.1.1, for=203.0.113.7\r\n")
                #expect(try await server.nextOwner().request.client == NetworkAddress(expected))
            }
        }
    }
}
