import FoundationEssentials
import NIOHTTP1
import NIOSSL
import SluiceCore
import SluiceSync
import Synchronization
import TestSupport
import Testing

/// The device's side of TLS, against a server whose certificate nobody has signed.
@Suite(.timeLimit(.minutes(1))) struct TransportTLSTests {
    private func withServer(_ body: (TestSocketServer) async throws -> Void) async throws {
        let server = TestSocketServer()
        try await server.start(tls: Self.serving())
        do {
            try await body(server)
        } catch {
            try await server.stop()
            throw error
        }
        try await server.stop()
    }

    private static func serving() throws -> TLSConfiguration {
        TLSConfiguration.makeServerConfiguration(
            certificateChain: try certificates().map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(TestCertificate.key.utf8), format: .pem)))
    }

    private static func certificates() throws -> [NIOSSLCertificate] {
        try NIOSSLCertificate.fromPEMBytes(Array(TestCertificate.certificate.utf8))
    }

    private static func trusting() throws -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .certificates(try certificates())
        return tls
    }

    @Test(arguments: ["localhost", "127.0.0.1"])
    func `messages go both ways over wss, to a name and to an address`(host: String) async throws {
        try await withServer { server in
            let transport = WebSocketTransport(tls: try Self.trusting())
            let connection = try await transport.connect(SyncRequest(url: "wss://\(host):\(server.port)/echo"))
            for size in [3, 70_000, 900_000] {
                let message = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
                try await connection.send(message)
                #expect(try await connection.next() == .message(message))
            }
            connection.close()
        }
    }

    @Test func `a certificate that is not trusted, or is another's, is a failed handshake that says so`() async throws {
        try await withServer { server in
            let attempts = [
                // The system's roots do not have it.
                ("wss://localhost:\(server.port)/echo", TLSConfiguration.makeClientConfiguration(), ErrorCode.tlsHandshakeFailed),
                // It is trusted, and not that address's.
                ("wss://127.0.0.2:\(server.port)/echo", try Self.trusting(), .tlsHandshakeFailed),
                // The server does not speak plain text.
                ("ws://localhost:\(server.port)/echo", try Self.trusting(), .connectionFailed),
            ]
            for (url, tls, code) in attempts {
                let error = await #expect(throws: SluiceError.self) {
                    try await WebSocketTransport(tls: tls).connect(SyncRequest(url: url))
                }
                #expect(error?.code == code, "\(url): \(String(describing: error))")
                #expect(error?.message.contains(url) == true, "\(String(describing: error))")
            }
            #expect(server.seen.withLock { $0.heads.isEmpty }, "nothing of a request was sent")
        }
    }

    @Test func `a server that does not speak TLS is a failed handshake`() async throws {
        let server = TestSocketServer()
        try await server.start()
        let error = await #expect(throws: SluiceError.self) {
            try await WebSocketTransport().connect(SyncRequest(url: "wss://localhost:\(server.port)/echo"))
        }
        #expect(error?.code == .tlsHandshakeFailed, "\(String(describing: error))")
        try await server.stop()
    }

    @Test func `a server that speaks nothing newer than TLS 1.1 is refused`() async throws {
        let server = TestSocketServer()
        var old = try Self.serving()
        (old.minimumTLSVersion, old.maximumTLSVersion) = (.tlsv1, .tlsv11)
        try await server.start(tls: old)
        var tls = TLSConfiguration.gatewayClient()
        tls.trustRoots = try Self.trusting().trustRoots
        let error = await #expect(throws: SluiceError.self) {
            try await WebSocketTransport(tls: tls).connect(SyncRequest(url: "wss://localhost:\(server.port)/echo"))
        }
        #expect(error?.code == .tlsHandshakeFailed, "\(String(describing: error))")
        try await server.stop()
    }

    // MARK: Pins

    /// As `openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64` gives it.
    private static let pin = "NcNil52ihfaKLUYob5CCCRa/Zux4Kpsom1lkX6n+Rzo="
    private static let other = "cwWmlHe661ObyLR9wEam+lz4/6KqjPc2rPZyuAR/roI="

    private func failure(_ url: String, _ pins: [String], tls: TLSConfiguration) async -> SluiceError? {
        await #expect(throws: SluiceError.self) {
            try await WebSocketTransport(tls: tls, pins: KeyPins(pins)).connect(SyncRequest(url: url))
        }
    }

    @Test(arguments: [[pin], [other, pin]])
    func `a server with a key of one of the pins is used`(pins: [String]) async throws {
        try await withServer { server in
            let transport = WebSocketTransport(tls: try Self.trusting(), pins: KeyPins(pins))
            let connection = try await transport.connect(SyncRequest(url: "wss://localhost:\(server.port)/echo"))
            try await connection.send([1, 2, 3])
            #expect(try await connection.next() == .message([1, 2, 3]))
            connection.close()
        }
        try await TestHTTPServer.with(tls: Self.serving()) { server in
            let transport = HTTPTransport(tls: try Self.trusting(), pins: KeyPins(pins))
            #expect(try await transport.send(login("https://localhost:\(server.port)/echo")).status == 201)
            try await server.closed()
        }
    }

    @Test func `a trusted server with another key is refused by name, and is sent nothing`() async throws {
        try await withServer { server in
            let url = "wss://localhost:\(server.port)/echo"
            let error = await failure(url, [Self.other], tls: try Self.trusting())
            #expect(error?.code == .serverKeyMismatch && error?.message.contains(Self.pin) == true, "\(String(describing: error))")
            #expect(server.seen.withLock { $0.heads.isEmpty })
        }
        try await TestHTTPServer.with(tls: Self.serving()) { server in
            let error = await #expect(throws: SluiceError.self) {
                try await HTTPTransport(tls: try Self.trusting(), pins: KeyPins([Self.other]))
                    .send(login("https://localhost:\(server.port)/echo"))
            }
            #expect(error?.code == .serverKeyMismatch, "\(String(describing: error))")
            try await server.closed()
            #expect(server.received.isEmpty)
        }
    }

    @Test func `a pin does not replace the check of the certificate, and none is met without TLS`() async throws {
        try await withServer { server in
            let untrusted = await failure("wss://localhost:\(server.port)/echo", [Self.pin], tls: .gatewayClient())
            #expect(untrusted?.code == .tlsHandshakeFailed, "\(String(describing: untrusted))")
            let plain = await failure("ws://localhost:\(server.port)/echo", [Self.pin], tls: try Self.trusting())
            #expect(plain?.code == .serverKeyMismatch && plain?.message.contains("has no TLS") == true, "\(String(describing: plain))")
            for pin in ["", "sha256/\(Self.pin)", String(Self.pin.dropLast(4)), Self.pin.replacing("=", with: "")] {
                let error = await failure("wss://localhost:\(server.port)/echo", [Self.pin, pin], tls: try Self.trusting())
                #expect(error?.code == .configInvalid && error?.message.contains("'\(pin)'") == true, "\(String(describing: error))")
            }
            #expect(server.seen.withLock { $0.heads.isEmpty })
        }
    }

    @Test func `a redirect does not lead past the pins`() async throws {
        try await TestHTTPServer.with { plain in
            let error = await #expect(throws: SluiceError.self) {
                try await HTTPTransport(tls: try Self.trusting(), pins: KeyPins([Self.pin])).send(login("\(plain.url)/echo"))
            }
            #expect(error?.code == .serverKeyMismatch, "\(String(describing: error))")
            #expect(plain.received.isEmpty)
        }
    }

    // MARK: HTTPS

    private func login(_ url: String, to location: String? = nil) -> HTTPTransport.Request {
        var headers = ["Authorization": "Bearer t"]
        headers["X-Location"] = location
        return HTTPTransport.Request(method: "POST", url: url, headers: headers, body: Array("body".utf8), milliseconds: 30_000)
    }

    @Test(arguments: ["localhost", "127.0.0.1"])
    func `a request over https is answered, to a name and to an address`(host: String) async throws {
        try await TestHTTPServer.with(tls: Self.serving()) { server in
            let response = try await HTTPTransport(tls: try Self.trusting()).send(login("https://\(host):\(server.port)/echo"))
            #expect(response.status == 201 && response.body == Array("POST  body".utf8))
            try await server.closed()
        }
    }

    @Test func `a request to a server that is not trusted is not sent`() async throws {
        try await TestHTTPServer.with(tls: Self.serving()) { server in
            for (host, tls) in [("localhost", TLSConfiguration.makeClientConfiguration()), ("127.0.0.2", try Self.trusting())] {
                let error = await #expect(throws: SluiceError.self) {
                    try await HTTPTransport(tls: tls).send(login("https://\(host):\(server.port)/echo"))
                }
                #expect(error?.code == .tlsHandshakeFailed, "\(host): \(String(describing: error))")
            }
            try await server.closed()
            #expect(server.received.isEmpty)
        }
    }

    @Test func `a redirect may begin TLS, and may not end it`() async throws {
        try await TestHTTPServer.with(tls: Self.serving()) { secure in
            try await TestHTTPServer.with { plain in
                let transport = HTTPTransport(tls: try Self.trusting())
                let (https, http) = ("https://localhost:\(secure.port)", plain.url)
                let response = try await transport.send(login("\(http)/redirect/308", to: "\(https)/echo"))
                #expect(response.status == 201 && response.body == Array("POST  body".utf8))
                #expect(secure.received.last?.headers["Authorization"] == [])
                let error = await #expect(throws: SluiceError.self) {
                    try await transport.send(login("\(https)/redirect/307", to: "\(http)/echo"))
                }
                #expect(error?.code == .connectionFailed && error?.message.contains("has no TLS") == true, "\(String(describing: error))")
                #expect(plain.received.count == 1)
            }
        }
    }
}
