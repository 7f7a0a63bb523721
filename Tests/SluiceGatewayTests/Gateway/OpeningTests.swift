import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceNet
import SluiceWire
import SwiftProtobuf
import Testing

/// The first message of a session, before and after its token is verified.
@Suite struct `A gateway before a client has authenticated` {
    private static func frame(_ kind: PBClientMessage.OneOf_Kind) throws -> [UInt8] {
        let bytes = try WireProtocol.encode(PBClientMessage(kind))
        return [0x82, 0xFF] + withUnsafeBytes(of: UInt64(bytes.count).bigEndian, Array.init) + [0, 0, 0, 0] + bytes
    }

    private static func hello(_ token: String, classes: Int, properties: Int) -> PBHello {
        .with { hello in
            (hello.protocol, hello.accessToken) = (WireProtocol.version, token)
            hello.schema = (0..<classes).map { number in
                .with {
                    $0.name = "Class\(number)"
                    $0.properties = (0..<properties).map { property in .with { $0.name = "p\(property)" } }
                }
            }
        }
    }

    private static func error(_ socket: RawSocket) async throws -> PBSessionError {
        let message: PBServerMessage = try WireProtocol.decode(from: try #require(try await socket.message()))
        return message.error
    }

    @Test func `reads no large Hello`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let socket = try await RawSocket.webSocket(gateway.url)
                // The header alone tells its length.
                try await socket.send(Array(try Self.frame(.hello(Self.hello("no token", classes: 1_000, properties: 20))).prefix(14)))
                #expect(try await Self.error(socket).code == UInt32(ErrorCode.helloTooLarge.rawValue))
                #expect(try await socket.closeCode() == 1009)
            }
        }
    }

    @Test func `decodes nothing of a Hello whose token is false`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let session = try await gateway.session(token: "")
                // A valid token field and, behind it, a class that is no message: only who decodes it can complain.
                let hello: [UInt8] = [0x08, 0x01, 0x12, 0x03] + Array("a.b".utf8) + [0x32, 0x02, 0xFF, 0xFF]
                try await session.send(bytes: [0x0A, UInt8(hello.count)] + hello)
                #expect(try await session.failure().code == .badAuthentication)
            }
        }
    }

    @Test func `refuses a Hello with two tokens`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let token = Array(try await gateway.anonymousToken().utf8)
                let session = try await gateway.session(token: "")
                let one = try WireProtocol.encode(
                    PBHello.with { ($0.protocol, $0.accessToken) = (1, String(decoding: token, as: UTF8.self)) })
                let twice = one + [0x12, 0x03] + Array("a.b".utf8)
                try await session.send(bytes: [0x0A, UInt8(twice.count & 0x7F | 0x80), UInt8(twice.count >> 7)] + twice)
                #expect(try await session.failure().code == .badSyntax)
            }
        }
    }

    @Test func `takes a large Hello behind its token`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let socket = try await RawSocket.webSocket(gateway.url)
                let token = try await gateway.anonymousToken()
                try await socket.send(.refreshToken(.with { $0.accessToken = token }))
                var hello = PBHello()
                (hello.protocol, hello.accessToken) = (WireProtocol.version, token)
                hello.sdk = String(repeating: "s", count: 200_000)
                try await socket.send(try Self.frame(.hello(hello)))
                let message: PBServerMessage = try WireProtocol.decode(from: try #require(try await socket.message()))
                #expect(message.welcome.protocol == WireProtocol.version)
            }
        }
    }

    @Test func `bounds what a Hello lists before it is decoded`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let socket = try await RawSocket.webSocket(gateway.url)
                let token = try await gateway.anonymousToken()
                try await socket.send(.refreshToken(.with { $0.accessToken = token }))
                try await socket.send(try Self.frame(.hello(Self.hello(token, classes: 2, properties: Limits.helloProperties / 2 + 1))))
                let error = try await Self.error(socket)
                #expect(error.code == UInt32(ErrorCode.limitsExceeded.rawValue))
                #expect(error.message.contains("65538 properties"))
            }
        }
    }

    /// It waits for the deadline itself, 10 s.
    @Test func `ends a socket that sends no Hello`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let socket = try await RawSocket.webSocket(gateway.url)
                let error = try await Self.error(socket)
                #expect(error.code == UInt32(ErrorCode.helloTimeout.rawValue) && error.message.contains("\(Limits.openingSeconds) s"))
                #expect(try await socket.closeCode() == 1008)
            }
        }
    }

    @Test func `refuses an address behind a proxy that has too many sockets, by name`() async throws {
        try await RunningGateway.deploy { deployment in
            let proxies = TrustedProxies([try NetworkRange("127.0.0.1")])
            let configuration = GatewayConfiguration(
                app: try ShopApp.configuration(), postgres: deployment.conninfo, kafka: nil,
                network: .init(port: 0, adminPort: 0, trustedProxies: proxies, admission: AdmissionLimits(unauthenticatedPerAddress: 2)))
            try await RunningGateway.run(configuration) { gateway in
                let flood = "X-Forwarded-For: 203.0.113.1\r\n"
                var sockets: [RawSocket] = []
                for _ in 0..<2 { sockets.append(try await RawSocket.webSocket(gateway.url, flood)) }
                let refusal = await #expect(throws: RawSocket.Failure.self) { _ = try await RawSocket.webSocket(gateway.url, flood) }
                #expect(refusal?.what.hasPrefix("HTTP/1.1 429 ") == true, "\(String(describing: refusal))")
                #expect(
                    refusal?.what.contains("\"code\":\(ErrorCode.tooManyConnections.rawValue)") == true, "\(String(describing: refusal))")
                #expect(refusal?.what.contains("203.0.113") == false, "\(String(describing: refusal))")
                // Another address is served.
                sockets.append(try await RawSocket.webSocket(gateway.url, "X-Forwarded-For: 203.0.113.2\r\n"))
                #expect(sockets.count == 3)
                let counted = try await gateway.text("/metrics").split(separator: "\n").first {
                    $0.hasPrefix("sluice_net_refusals_total") && $0.contains("address-unauthenticated")
                }
                #expect(counted?.hasSuffix(" 1") == true, "\(String(describing: counted))")
            }
        }
    }
}
