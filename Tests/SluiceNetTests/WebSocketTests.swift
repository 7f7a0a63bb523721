import NIOCore
import SluiceCore
import SluiceNet
import SluiceValues
import Testing

@Suite(.timeLimit(.minutes(1)))
struct UpgradeTests {
    @Test func `an upgrade to the subprotocol is taken and echoes`() async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            let head = try await client.upgrade(subprotocols: "other, sluice.v1", extra: "Authorization: Bearer abc\r\n")
            #expect(head.hasPrefix("HTTP/1.1 101 "))
            #expect(head.lowercased().contains("sec-websocket-protocol: sluice.v1\r\n"))
            // The key and answer of RFC 6455, section 1.3.
            #expect(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
            try await client.send(clientFrame(Array("!hello".utf8)))
            #expect(try await client.readFrame() == .binary(Array("!hello".utf8)))
            let owner = try await server.nextOwner()
            #expect(owner.request.header("authorization") == "Bearer abc")
            #expect(owner.request.client == NetworkAddress("127.0.0.1"))
        }
    }

    @Test(arguments: [nil, "chat", "sluice.v2, mqtt"])
    func `another subprotocol is refused with the one to use`(offered: String?) async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            let head = try await client.upgrade(subprotocols: offered)
            #expect(head.hasPrefix("HTTP/1.1 400 "))
            #expect(head.contains("application/json"))
        }
    }

    @Test func `a refusal by the endpoint is answered under its status, and closed`() async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            try await client.send(
                text: "GET /closed HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                    + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: sluice.v1\r\n\r\n")
            let refusal = try await client.readResponse()
            #expect(refusal.head.hasPrefix("HTTP/1.1 403 "))
            #expect(try JSON.parse(refusal.body)["code"] == .int(206))
            #expect(try await client.readToEnd() == 0)
        }
    }

    @Test func `an upgrade elsewhere is an ordinary request`() async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            #expect(try await client.upgrade(path: "/hello").hasPrefix("HTTP/1.1 200 "))
            #expect(try await client.readToEnd() > 0)
        }
    }

    @Test func `a handshake of another version is refused`() async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            try await client.send(
                text: "GET /sync HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\n"
                    + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: sluice.v1\r\n\r\n")
            let refusal = try await client.readResponse()
            #expect(refusal.head.hasPrefix("HTTP/1.1 400 "))
            #expect(refusal.body.contains("version 13"))
        }
    }

    @Test func `an owner whose connection never opens hears of its end`() async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            // A body belongs to no upgrade.
            #expect(try await client.upgrade(extra: "Content-Length: 3\r\n", body: "abc").hasPrefix("HTTP/1.1 400 "))
            await client.close()
            guard case .lost = try await server.nextOwner().end() else { throw RawClient.Ended() }
        }
    }

    @Test func `a frame in the same packet as the upgrade is not lost`() async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            let request =
                "GET /sync HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: sluice.v1\r\n\r\n"
            try await client.send(Array(request.utf8) + clientFrame(Array("!early".utf8)))
            #expect(try await client.readHead().hasPrefix("HTTP/1.1 101 "))
            #expect(try await client.readFrame() == .binary(Array("!early".utf8)))
        }
    }
}

@Suite(.timeLimit(.minutes(1)))
struct MessageTests {
    @Test func `fragments are joined, with a ping answered between them`() async throws {
        try await withServer { server in
            let client = try await RawClient.webSocket(port: server.port)
            try await client.send(clientFrame(Array("!a".utf8), fin: false))
            try await client.send(clientFrame(Array("are you there".utf8), opcode: 9))
            try await client.send(clientFrame([], opcode: 0, fin: false))
            try await client.send(clientFrame(Array("bc".utf8), opcode: 0))
            #expect(try await client.readFrame() == .pong(Array("are you there".utf8)))
            #expect(try await client.readFrame() == .binary(Array("!abc".utf8)))
        }
    }

    @Test(arguments: [0, 1, 125, 126, 65_535, 65_536, 300_000])
    func `messages of every length form arrive whole`(length: Int) async throws {
        try await withServer { server in
            let client = try await RawClient.webSocket(port: server.port)
            let payload = [UInt8(ascii: "!")] + (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            try await client.send(clientFrame(payload))
            #expect(try await client.readFrame() == .binary(payload))
        }
    }

    @Test func `bytes that drip in one by one make the same message`() async throws {
        try await withServer { server in
            let client = try await RawClient.webSocket(port: server.port)
            let payload = Array("!drip".utf8) + Array(repeating: 5, count: 130)
            for byte in clientFrame(payload) { try await client.send([byte]) }
            #expect(try await client.readFrame() == .binary(payload))
        }
    }

    @Test(arguments: [true, false])
    func `a message over the limit ends with the owner's last word and 1009`(isOneFrame: Bool) async throws {
        try await withServer(limits: .init(messageBytes: 1_000)) { server in
            let client = try await RawClient.webSocket(port: server.port)
            if isOneFrame {
                // The header alone tells; the rest keeps coming, as it does from a client that does not know yet.
                try await client.send(clientFrame(Array(repeating: 1, count: 50_000)))
            } else {
                try await client.send(clientFrame(Array(repeating: 1, count: 600), fin: false))
                try await client.send(clientFrame(Array(repeating: 1, count: 401), opcode: 0))
            }
            let frames = try await client.readToClose()
            #expect(frames.map(\.opcode) == [2, 8])
            #expect(frames[0] == .binary(Array("too big".utf8)))
            #expect(frames[1].closeCode == 1009)
            await client.close()
            #expect(try await server.nextOwner().end() == .oversize)
        }
    }

    @Test func `a message at the limit is taken`() async throws {
        try await withServer(limits: .init(messageBytes: 1_000)) { server in
            let client = try await RawClient.webSocket(port: server.port)
            let payload = Array(repeating: UInt8(ascii: "!"), count: 1_000)
            try await client.send(clientFrame(Array(payload[..<999]), fin: false))
            try await client.send(clientFrame([payload[999]], opcode: 0))
            #expect(try await client.readFrame() == .binary(payload))
        }
    }

    @Test(arguments: [
        ("unmasked", clientFrame([1], masked: false), 1002), ("reserved opcode", clientFrame([1], opcode: 3), 1002),
        ("reserved bit", clientFrame([1], reserved: 4), 1002), ("fragmented ping", clientFrame([1], opcode: 9, fin: false), 1002),
        ("long ping", clientFrame(Array(repeating: 1, count: 126), opcode: 9), 1002),
        ("stray continuation", clientFrame([1], opcode: 0), 1002),
        ("two beginnings", clientFrame([1], fin: false) + clientFrame([2]), 1002), ("half a close code", clientFrame([3], opcode: 8), 1002),
        ("text", clientFrame(Array("hi".utf8), opcode: 1), 1003),
        ("absurd length", clientFrame([], claimedLength: .max), 1009),
    ])
    func `a frame against the protocol closes the connection with its code`(name: String, bytes: [UInt8], code: Int) async throws {
        try await withServer { server in
            let client = try await RawClient.webSocket(port: server.port)
            try await client.send(bytes)
            #expect(try await client.readToClose().last?.closeCode == code, "\(name)")
            await client.close()
            let reason = try await server.nextOwner().end()
            if code == 1009 {
                #expect(reason == .oversize)
            } else {
                guard case .malformed = reason else { throw RawClient.Ended() }
            }
        }
    }

    @Test func `a goodbye is answered with its code and ends the connection`() async throws {
        try await withServer { server in
            let client = try await RawClient.webSocket(port: server.port)
            try await client.send(clientFrame([0x0F, 0xA1], opcode: 8))
            #expect(try await client.readFrame().closeCode == 4001)
            #expect(try await client.readToEnd() == 0)
            #expect(try await server.nextOwner().end() == .peer(code: 4001))
        }
    }

    @Test func `a connection that just ends is lost`() async throws {
        try await withServer { server in
            let client = try await RawClient.webSocket(port: server.port)
            await client.close()
            guard case .lost = try await server.nextOwner().end() else { throw RawClient.Ended() }
        }
    }

    @Test func `closing sends what was sent before, then the code and the reason`() async throws {
        try await withServer { server in
            let client = try await RawClient.webSocket(port: server.port)
            let owner = try await server.nextOwner()
            let socket = try await owner.open()
            socket.send(frames: [.encode(binary: [1]), .encode(binary: [2])])
            socket.close(.policyViolation, reason: "slow-client")
            socket.send(.encode(binary: [3]))
            let frames = try await client.readToClose()
            #expect(frames.prefix(2) == [.binary([1]), .binary([2])])
            #expect(frames.count == 3)
            #expect(frames[2].closeCode == 1008)
            #expect(frames[2].payload.dropFirst(2).elementsEqual("slow-client".utf8))
            try await client.send(clientFrame([3, 240], opcode: 8))
            #expect(try await client.readToEnd() == 0)
            #expect(await owner.end() == .local(code: 1008))
            #expect(socket.bufferedBytes == 0)
        }
    }

    @Test func `a peer that does not answer a goodbye is dropped after the grace period`() async throws {
        try await withServer(limits: .init(closeGrace: .milliseconds(50))) { server in
            let client = try await RawClient.webSocket(port: server.port)
            let owner = try await server.nextOwner()
            try await owner.open().close(.normal)
            #expect(try await client.readFrame().closeCode == 1000)
            #expect(try await client.readToEnd() == 0)
            #expect(await owner.end() == .local(code: 1000))
        }
    }
}
