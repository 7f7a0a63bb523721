import SluiceCore
import SluiceGateway
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
}
