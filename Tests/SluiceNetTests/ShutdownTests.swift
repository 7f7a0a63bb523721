import Hummingbird
import NIOCore
import SluiceCore
import SluiceNet
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ShutdownTests {
    @Test func `a shutdown says why, and ends when the peers have gone`() async throws {
        try await withServer { server in
            let idle = try await RawClient.connect(port: server.port)
            let client = try await RawClient.webSocket(port: server.port)
            let owner = try await server.nextOwner()
            _ = try await owner.open()
            await server.stop()
            let frames = try await client.readToClose()
            #expect(frames.first == .binary(Array("stopping".utf8)))
            #expect(frames.last?.closeCode == 1001)
            try await client.send(clientFrame([3, 233], opcode: 8))
            #expect(await owner.end() == .shutdown)
            #expect(try await idle.readToEnd() == 0)
        }
    }

    @Test func `a shutdown answers the messages that it has read, and reads no more`() async throws {
        try await withServer(.init(shutdown: ShutdownPace(answers: .hours(1), deadline: .hours(1)))) { server in
            let client = try await RawClient.webSocket(port: server.port)
            let owner = try await server.nextOwner()
            _ = try await owner.open()
            try await client.send(clientFrame(Array("?".utf8)))
            #expect(await owner.next() == .message(Array("?".utf8)))
            await server.stop()
            #expect(await owner.next() == .settling)
            // The next server gets it: the peer has no answer to it.
            try await client.send(clientFrame(Array("late".utf8)))
            owner.answer("taken")
            let frames = try await client.readToClose()
            #expect(frames.dropLast() == [.binary(Array("taken".utf8)), .binary(Array("stopping".utf8))])
            #expect(frames.last?.closeCode == 1001)
            try await client.send(clientFrame([3, 233], opcode: 8))
            // No message between the two.
            #expect(await owner.next() == .closed(.shutdown))
        }
    }

    @Test func `a shutdown counts what it cuts off`() async throws {
        let counted = Mutex<[ShutdownCutOff]>([])
        var configuration = NetServer.Configuration(
            shutdown: ShutdownPace(answers: .milliseconds(100), deadline: .milliseconds(400)))
        configuration.onCutOff = { cutOff in counted.withLock { $0.append(cutOff) } }
        try await withServer(configuration) { server in
            let asking = try await RawClient.webSocket(port: server.port)
            let owner = try await server.nextOwner()
            _ = try await owner.open()
            try await asking.send(clientFrame(Array("?".utf8)))
            #expect(await owner.next() == .message(Array("?".utf8)))
            let idle = try await RawClient.webSocket(port: server.port)
            _ = try await server.nextOwner().open()
            let request = try await RawClient.connect(port: server.port)
            try await request.send(text: "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\n{")
            // The server has read its head once it has read a later connection's.
            _ = try await RawClient.connect(port: server.port).request("GET", "/hello")
            await server.stop()
            for client in [asking, idle] { #expect(try await client.readToClose().last?.closeCode == 1001) }
            #expect(try await request.readToEnd() == 0)
        }
        var expected = ShutdownCutOff()
        (expected.sockets, expected.requests) = (1, 1)
        #expect(counted.withLock(\.self) == [expected])
    }

    @Test func `the closes of a shutdown are spread over all of their time`() {
        let pace = ShutdownPace(spread: .seconds(10))
        let moments = (UInt64(0)..<1_000).map { pace.moment(random: $0 &* 0x9E37_79B9_7F4A_7C15).nanoseconds }
        let tenths = Dictionary(grouping: moments) { $0 / 1_000_000_000 }
        #expect((0..<10).allSatisfy { (70...130).contains(tenths[$0]?.count ?? 0) }, "\(tenths.mapValues(\.count))")
        #expect(ShutdownPace().moment(random: .max) == .zero)
    }

    @Test func `a socket whose moment has not come is served on`() async throws {
        // The moment is in the first two seconds of an hour with a probability of 1 in 1,800.
        let pace = ShutdownPace(spread: .hours(1), answers: .hours(2), deadline: .seconds(2))
        try await withServer(.init(shutdown: pace)) { server in
            let client = try await RawClient.webSocket(port: server.port)
            let owner = try await server.nextOwner()
            _ = try await owner.open()
            await server.stop()
            try await client.send(clientFrame(Array("!".utf8)))
            #expect(try await client.readFrame() == .binary(Array("!".utf8)))
            while try await client.readToEnd() > 0 {}
        }
    }

    @Test func `a shutdown does not wait longer than its deadline`() async throws {
        let limits = WebSocketLimits(closeGrace: .hours(1))
        let pace = ShutdownPace(answers: .milliseconds(200), deadline: .milliseconds(300))
        try await withServer(.init(shutdown: pace), limits: limits) { server in
            let client = try await RawClient.webSocket(port: server.port)
            let owner = try await server.nextOwner()
            _ = try await owner.open()
            await server.stop()
            // The client reads the goodbye, if it comes in time, and does not answer.
            while try await client.readToEnd() > 0 {}
            #expect(await owner.end() != nil)
        }
    }

    @Test func `the port of a server that has stopped is an error, not a wait`() async throws {
        let stopped = try await withServer { $0.server }
        #expect(try await stopped.port > 0)
        let never = NetServer(
            configuration: .init(tls: .init(certificateChain: "/nowhere", privateKey: "/nowhere")), router: .init(), logger: quiet)
        await #expect(throws: SluiceError.self) { try await never.run() }
        await #expect(throws: SluiceError.self) { try await never.port }
    }
}
