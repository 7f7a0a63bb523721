import FoundationEssentials
import NIOSSL
import SluiceCore
import SluiceNet
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct TLSTests {
    @Test func `HTTP and WebSocket work over TLS, in whatever way a message comes and goes`() async throws {
        let files = try Self.files(key: TestCertificate.key)
        defer { Self.remove(files) }
        try await withServer(.init(tls: files)) { server in
            let http = try await RawClient.connect(port: server.port, tls: { _ in try Self.client() })
            #expect(try await http.request("GET", "/hello").head.hasPrefix("HTTP/1.1 200 "))
            let socket = try await RawClient.connect(port: server.port, tls: { _ in try Self.client() })
            #expect(try await socket.upgrade().hasPrefix("HTTP/1.1 101 "))
            let payload = [UInt8](repeating: UInt8(ascii: "!"), count: 300_000)
            try await socket.send(clientFrame(payload))
            #expect(try await socket.readFrame() == .binary(payload))
        }
    }

    @Test func `a message over the limit is answered over TLS as well`() async throws {
        let files = try Self.files(key: TestCertificate.key)
        defer { Self.remove(files) }
        try await withServer(.init(tls: files), limits: .init(messageBytes: 1_000)) { server in
            let client = try await RawClient.connect(port: server.port, tls: { _ in try Self.client() })
            _ = try await client.upgrade()
            try await client.send(clientFrame(Array(repeating: 1, count: 50_000)))
            #expect(try await client.readToClose().map(\.opcode) == [2, 8])
        }
    }

    @Test func `a client that does not speak TLS gets no answer and no session`() async throws {
        let files = try Self.files(key: TestCertificate.key)
        defer { Self.remove(files) }
        try await withServer(.init(tls: files)) { server in
            let client = try await RawClient.connect(port: server.port)
            await #expect(throws: (any Error).self) { try await client.request("GET", "/hello") }
        }
    }

    @Test func `a key that is none is named`() async throws {
        let files = try Self.files(key: "no key")
        defer { Self.remove(files) }
        let error = await #expect(throws: SluiceError.self) { try await withServer(.init(tls: files)) { _ in } }
        #expect(error?.code == .configInvalid)
        #expect(error?.message.contains(files.privateKey) == true)
    }

    @Test func `a look at an address gives the end of its certificate, and names what is wrong with it`() async throws {
        let files = try Self.files(key: TestCertificate.key)
        defer { Self.remove(files) }
        try await withServer(.init(tls: files)) { server in
            var trusting = TLSConfiguration.makeClientConfiguration()
            trusting.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(TestCertificate.certificate.utf8)))
            let origin = try ServerOrigin(url: "https://localhost:\(server.port)")
            let end = try await TLSProbe.certificateEnd(of: origin, tls: trusting)
            let certificate = try #require(try NIOSSLCertificate.fromPEMBytes(Array(TestCertificate.certificate.utf8)).first)
            #expect(end == Int64(certificate.notValidAfter))
            // The machine's roots do not have it.
            let error = await #expect(throws: SluiceError.self) { try await TLSProbe.certificateEnd(of: origin) }
            #expect(error?.code == .connectionFailed && error?.message.contains("localhost:\(server.port)") == true)
        }
        let closed = try ServerOrigin(url: "https://127.0.0.1:1")
        let error = await #expect(throws: SluiceError.self) { try await TLSProbe.certificateEnd(of: closed) }
        #expect(error?.code == .connectionFailed)
        let plain = try await #require(throws: SluiceError.self) {
            try await withServer(.init()) { server in
                _ = try await TLSProbe.certificateEnd(of: try ServerOrigin(url: "https://localhost:\(server.port)"))
            }
        }
        #expect(plain.code == .connectionFailed)
    }

    @Test func `a port is asked for without serving on it`() async throws {
        try await withServer(.init()) { server in
            var taken = NetServer.Configuration(host: "127.0.0.1", port: server.port)
            taken.portOption = "--admin-port"
            let error = await #expect(throws: SluiceError.self) { try await taken.requireFreePort() }
            #expect(error?.code == .portInUse && error?.fix?.contains("--admin-port") == true)
        }
        try await NetServer.Configuration(host: "127.0.0.1", port: 0).requireFreePort()
        let elsewhere = await #expect(throws: SluiceError.self) {
            try await NetServer.Configuration(host: "192.0.2.1", port: 0).requireFreePort()
        }
        #expect(elsewhere?.code == .configInvalid)
    }

    @Test func `a client with TLS 1.1 is refused, and one with 1.2 or 1.3 is told HTTP/1.1`() async throws {
        let files = try Self.files(key: TestCertificate.key)
        defer { Self.remove(files) }
        try await withServer(.init(tls: files)) { server in
            for version in [TLSVersion.tlsv12, .tlsv13] {
                let client = try await RawClient.connect(
                    port: server.port,
                    tls: { _ in
                        try Self.client {
                            ($0.minimumTLSVersion, $0.maximumTLSVersion) = (version, version)
                            $0.applicationProtocols = ["h2", "http/1.1"]
                        }
                    })
                #expect(try await client.request("GET", "/hello").head.hasPrefix("HTTP/1.1 200 "), "\(version)")
            }
            let old = try await RawClient.connect(
                port: server.port, tls: { _ in try Self.client { ($0.minimumTLSVersion, $0.maximumTLSVersion) = (.tlsv1, .tlsv11) } })
            await #expect(throws: (any Error).self) { try await old.request("GET", "/hello") }
        }
    }

    @Test func `with authorities of clients, only a client with a certificate of one is served`() async throws {
        var files = try Self.files(key: TestCertificate.key)
        defer { Self.remove(files) }
        files.clientAuthorities = try Self.file("authorities.pem", TestCertificate.stranger, beside: files)
        try await withServer(.init(tls: files)) { (server: TestServer) async throws in
            func request(_ certificate: String?, _ key: String) async throws -> String {
                let client = try await RawClient.connect(
                    port: server.port,
                    tls: { _ in
                        try Self.client {
                            guard let certificate else { return }
                            $0.certificateChain = try NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8)).map { .certificate($0) }
                            $0.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem))
                        }
                    })
                return try await client.request("GET", "/hello").head
            }
            #expect(try await request(TestCertificate.stranger, TestCertificate.strangerKey).hasPrefix("HTTP/1.1 200 "))
            await #expect(throws: (any Error).self) { try await request(nil, "") }
            await #expect(throws: (any Error).self) { try await request(TestCertificate.certificate, TestCertificate.key) }
        }
        files.clientAuthorities = files.privateKey
        let wrong = files
        let error = await #expect(throws: SluiceError.self) { try await withServer(.init(tls: wrong)) { _ in } }
        #expect(error?.code == .configInvalid && error?.message.contains(wrong.privateKey) == true)
    }

    @Test func `changed files hold for new connections, and unusable ones change nothing`() async throws {
        let files = try Self.files(key: TestCertificate.key)
        defer { Self.remove(files) }
        try await withServer(.init(tls: files)) { (server: TestServer) async throws in
            func connect(trusting certificate: String) async throws -> RawClient {
                try await RawClient.connect(port: server.port, tls: { _ in try Self.client(trusting: certificate) })
            }
            let early = try await connect(trusting: TestCertificate.certificate)
            #expect(try await early.request("GET", "/hello").head.hasPrefix("HTTP/1.1 200 "))
            _ = try Self.file("chain.pem", TestCertificate.stranger, beside: files)
            // The key is not there yet.
            let error = #expect(throws: SluiceError.self) { try server.server.renewTLS() }
            #expect(error?.message.contains("not a pair") == true, "\(String(describing: error))")
            #expect(try await connect(trusting: TestCertificate.certificate).request("GET", "/hello").head.hasPrefix("HTTP/1.1 200 "))
            _ = try Self.file("key.pem", TestCertificate.strangerKey, beside: files)
            let end = try #require(try NIOSSLCertificate.fromPEMBytes(Array(TestCertificate.stranger.utf8)).first).notValidAfter
            #expect(try server.server.renewTLS() == Int64(end))
            #expect(try await connect(trusting: TestCertificate.stranger).request("GET", "/hello").head.hasPrefix("HTTP/1.1 200 "))
            let late = try await connect(trusting: TestCertificate.certificate)
            await #expect(throws: (any Error).self) { try await late.request("GET", "/hello") }
            #expect(try await early.request("GET", "/hello").head.hasPrefix("HTTP/1.1 200 "))
        }
    }

    private static func client(
        trusting certificate: String = TestCertificate.certificate, _ change: (inout TLSConfiguration) throws -> Void = { _ in }
    ) throws -> NIOSSLClientHandler {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8)))
        try change(&configuration)
        return try NIOSSLClientHandler(context: NIOSSLContext(configuration: configuration), serverHostname: "localhost")
    }

    private static func files(key: String) throws -> TLSFiles {
        let folder = FileManager.default.temporaryDirectory.path() + "sluice-tls-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let files = TLSFiles(certificateChain: folder + "/chain.pem", privateKey: folder + "/key.pem")
        try Data(TestCertificate.certificate.utf8).write(to: URL(filePath: files.certificateChain))
        try Data(key.utf8).write(to: URL(filePath: files.privateKey))
        return files
    }

    /// Writes a file beside others and returns its path.
    private static func file(_ name: String, _ text: String, beside files: TLSFiles) throws -> String {
        let url = URL(filePath: files.privateKey).deletingLastPathComponent().appending(path: name)
        try Data(text.utf8).write(to: url)
        return url.path()
    }

    private static func remove(_ files: TLSFiles) {
        try? FileManager.default.removeItem(at: URL(filePath: files.privateKey).deletingLastPathComponent())
    }
}
