import FoundationEssentials
import NIOCore
import NetTestSupport
import SluiceCore
import SluiceNet
import SluicePorts
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct OutboundTests {
    @Test func `a request arrives as it was made, and its answer comes back with any status`() async throws {
        try await withPeer { request, channel in
            channel.writeAndFlush(RawPeer.text("418 Teapot", "short", headers: "X-Kind: A\r\nx-kind: B\r\n"), promise: nil)
        } _: { peer in
            let answer = try await OutboundClient().send(
                OutboundRequest(
                    .post, "http://127.0.0.1:\(peer.port)/a/b?c=d", headers: [.init("X-Key", "k")], body: Array("{\"a\":1}".utf8),
                    allowsPrivateAddresses: true))
            #expect(answer == OutboundAnswer(status: 418, headers: ["content-length": "5", "x-kind": "A"], body: Array("short".utf8)))
            let request = try #require(await peer.next())
            #expect(request.hasPrefix("POST /a/b?c=d HTTP/1.1\r\n"))
            #expect(request.lowercased().contains("\r\nx-key: k\r\n"))
            #expect(request.hasSuffix("\r\n\r\n{\"a\":1}"))
        }
    }

    @Test func `a redirect is an answer, and its target gets no request`() async throws {
        try await withPeer { request, channel in
            channel.writeAndFlush(RawPeer.text("307 Moved", headers: "Location: /other\r\n"), promise: nil)
        } _: { peer in
            let answer = try await OutboundClient().send(Self.request(peer))
            #expect(answer.status == 307)
            #expect(!answer.isSuccess)
            #expect(answer.headers["location"] == "/other")
        }
    }

    @Test func `a service without an answer, or with a body that does not end, costs the time of the request and no more`() async throws {
        for head in [
            "", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
        ] {
            try await withPeer { request, channel in
                channel.writeAndFlush(ByteBuffer(string: head), promise: nil)
            } _: { peer in
                let error = await Self.failure { try await OutboundClient().send(Self.request(peer, milliseconds: 200)) }
                #expect(error?.code == .outboundTimeout, "\(head)")
                #expect(error?.value == "127.0.0.1:\(peer.port)")
                #expect(error?.message.contains("127.0.0.1") == false)
            }
        }
    }

    @Test func `an answer over its bound is an error, whether or not it gives its length`() async throws {
        let many = String(repeating: "x", count: 70_000)
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11170\r\n\(many)\r\n"
        for answer in [RawPeer.text("200 OK", many), ByteBuffer(string: chunked)] {
            try await withPeer { request, channel in
                channel.writeAndFlush(answer, promise: nil)
            } _: { peer in
                let error = await Self.failure { try await OutboundClient().send(Self.request(peer)) }
                #expect(error?.code == .outboundTooLarge)
                #expect(error?.message.contains("65536") == true)
            }
        }
    }

    @Test func `a service that is gone, and one that closes without an answer, are failures`() async throws {
        try await withPeer { request, channel in
            channel.close(promise: nil)
        } _: { peer in
            let closed = await Self.failure { try await OutboundClient().send(Self.request(peer)) }
            #expect(closed?.code == .outboundFailed)
            await peer.close()
            let gone = await Self.failure { try await OutboundClient().send(Self.request(peer)) }
            #expect(gone?.code == .outboundFailed)
            #expect(gone?.cause != nil)
            #expect(gone.map { ClientError($0).message.contains("127.0.0.1") } == false)
        }
    }

    @Test func `an address of the machine is refused before a byte of the request, also if a name leads to it`() async throws {
        let peer = try await RawPeer(certificate: (TestCertificate.certificate, TestCertificate.key)) { _, channel in
            channel.writeAndFlush(RawPeer.text("200 OK"), promise: nil)
        }
        let authorities = try Self.file(TestCertificate.certificate)
        defer { try? FileManager.default.removeItem(atPath: authorities) }
        let client = try OutboundClient(authorities: authorities)
        // The name is of this machine only after the look-up. The other texts are the same address for a resolver.
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1", "2130706433"] {
            let error = await Self.failure { try await client.send(OutboundRequest(.get, "https://\(host):\(peer.port)/")) }
            // The certificate has the first two names.
            let expected: [ErrorCode] =
                ["127.1", "2130706433"].contains(host) ? [.outboundAddressRefused, .outboundFailed] : [.outboundAddressRefused]
            #expect(error.map { expected.contains($0.code) } == true, "\(host): \(String(describing: error))")
        }
        // The connections of requests that may reach the address serve no others.
        let allowed = OutboundRequest(.get, "https://localhost:\(peer.port)/allowed", allowsPrivateAddresses: true)
        #expect(try await client.send(allowed).status == 200)
        #expect(
            await Self.failure { try await client.send(OutboundRequest(.get, "https://localhost:\(peer.port)/")) }?.code
                == .outboundAddressRefused)
        #expect(await peer.next()?.hasPrefix("GET /allowed ") == true)
        await peer.close()
    }

    @Test func `a certificate of another authority fails, and one of the given file does not`() async throws {
        let peer = try await RawPeer(certificate: (TestCertificate.stranger, TestCertificate.strangerKey)) { _, channel in
            channel.writeAndFlush(RawPeer.text("200 OK"), promise: nil)
        }
        let request = OutboundRequest(.get, "https://localhost:\(peer.port)/", allowsPrivateAddresses: true)
        #expect(await Self.failure { try await OutboundClient().send(request) }?.code == .outboundFailed)
        for (authority, isTrusted) in [(TestCertificate.certificate, false), (TestCertificate.stranger, true)] {
            let authorities = try Self.file(authority)
            defer { try? FileManager.default.removeItem(atPath: authorities) }
            let client = try OutboundClient(authorities: authorities)
            let status = try? await client.send(request).status
            #expect(status == (isTrusted ? 200 : nil))
        }
        await peer.close()
        let error = #expect(throws: SluiceError.self) { try OutboundClient(authorities: "/nowhere.pem") }
        #expect(error?.code == .configInvalid)
    }

    @Test(arguments: [
        ("http://example.com/", false), ("http://8.8.8.8/", true), ("ftp://example.com/", true), ("https://", false), ("nothing", true),
        ("https://user:secret@example.com/", false), ("https://10.1.2.3/", false), ("https://[fd00::1]/", false),
        ("https+unix://a/b", true),
    ])
    func `a URL that is not allowed is refused without a connection`(url: String, allowsPrivate: Bool) async {
        let error = await Self.failure {
            try await OutboundClient().send(OutboundRequest(.get, url, allowsPrivateAddresses: allowsPrivate))
        }
        #expect(error?.code == .outboundAddressRefused)
    }

    @Test func `a header that would be two is refused`() async throws {
        try await withPeer { request, channel in
            channel.writeAndFlush(RawPeer.text("200 OK"), promise: nil)
        } _: { peer in
            var request = Self.request(peer)
            request.headers = [.init("X-Key", "a\r\nX-Other: b")]
            let sent = request
            #expect(await Self.failure { try await OutboundClient().send(sent) }?.code == .outboundFailed)
        }
    }

    @Test func `a cancelled request ends at once`() async throws {
        try await withPeer { _, _ in
        } _: { peer in
            let sending = Task { await Self.failure { try await OutboundClient().send(Self.request(peer, milliseconds: 60_000)) } }
            #expect(await peer.next() != nil)
            sending.cancel()
            #expect(await sending.value?.code == .outboundFailed)
        }
    }

    @Test(arguments: [
        "0.0.0.0", "10.255.255.255", "100.64.0.1", "127.0.0.1", "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.19.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1",
        "2002:a00:1::1",
        "3fff::1", "fc00::1", "fd00:ec2::254", "fe80::1", "ff02::1",
    ])
    func `an address of no public network is known`(text: String) throws { #expect(try #require(NetworkAddress(text)).isPublic == false) }

    @Test(arguments: ["1.1.1.1", "9.255.255.255", "100.128.0.1", "172.32.0.1", "223.255.255.255", "2606:4700::1111", "64:ff9b::1.1.1.1"])
    func `an address of the internet is public`(text: String) throws { #expect(try #require(NetworkAddress(text)).isPublic) }

    // MARK: Helpers

    private static func request(_ peer: RawPeer, milliseconds: Int = 5_000) -> OutboundRequest {
        OutboundRequest(.get, "http://127.0.0.1:\(peer.port)/", milliseconds: milliseconds, allowsPrivateAddresses: true)
    }

    private static func failure(_ body: () async throws -> OutboundAnswer) async -> SluiceError? {
        do {
            _ = try await body()
            return nil
        } catch {
            return error as? SluiceError
        }
    }

    private static func file(_ text: String) throws -> String {
        let path = FileManager.default.temporaryDirectory.path() + "sluice-authorities-\(UUID()).pem"
        try Data(text.utf8).write(to: URL(filePath: path))
        return path
    }

    private func withPeer(
        answer: @escaping @Sendable (String, any Channel) -> Void, _ body: @Sendable (RawPeer) async throws -> Void
    ) async throws {
        let peer = try await RawPeer(answer)
        try await body(peer)
        await peer.close()
    }
}
