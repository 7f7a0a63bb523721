import NIOCore
import NIOHTTP1
import NIOPosix
import SluiceCore
import SluiceSync
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct WebSocketTransportTests {
    private func withConnection(
        _ path: String, headers: [String: String] = [:], maximumBytes: Int = 1 << 20,
        _ body: (any SyncConnection, TestSocketServer) async throws -> Void
    ) async throws {
        let server = TestSocketServer()
        try await server.start()
        do {
            let transport = WebSocketTransport(maximumBytes: maximumBytes)
            // The handshake's own limit would time a busy machine.
            let request = SyncRequest(url: server.url(path), headers: headers, milliseconds: 60_000)
            let connection = try await transport.connect(request)
            try await body(connection, server)
            connection.close()
        } catch {
            try await server.stop()
            throw error
        }
        try await server.stop()
    }

    @Test func `messages go both ways whole, whatever their fragments`() async throws {
        try await withConnection("echo") { connection, server in
            for size in [3, 125, 126, 65_535, 65_536, 900_000] {
                let message = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
                try await connection.send(message)
                #expect(try await connection.next() == .message(message))
            }
        }
    }

    @Test func `the request carries the path, the subprotocol and the app's headers`() async throws {
        try await withConnection("v1/app/demo/sync", headers: ["X-Trace": "7"]) { _, server in
            let head = try #require(server.seen.withLock { $0.heads.first })
            #expect(head.uri == "/v1/app/demo/sync")
            #expect(head.headers["Sec-WebSocket-Protocol"] == ["sluice.v1"] && head.headers["X-Trace"] == ["7"])
            #expect(head.headers["Host"] == ["127.0.0.1:\(server.port)"])
        }
    }

    @Test func `a ping is answered by a sign of life, and the gateway's pings are answered`() async throws {
        try await withConnection("ping") { connection, server in
            connection.ping()
            #expect(try await connection.next() == .pong)
            // The answer to the gateway's ping was written before ours.
            try await connection.send([1, 2, 3])
            #expect(try await connection.next() == .message([1, 2, 3]))
            #expect(server.seen.withLock { $0.pongs } >= 1)
        }
    }

    @Test func `a normal close is the end`() async throws {
        try await withConnection("close") { connection, _ in
            let (end, still) = (try await connection.next(), try await connection.next())
            #expect(end == nil && still == nil)
        }
    }

    @Test func `a close with another code is an error that names it`() async throws {
        try await withConnection("too-large") { connection, _ in
            let error = await #expect(throws: SluiceError.self) { try await connection.next() }
            #expect(error?.code == .connectionFailed && error?.message.contains("because") == true)
        }
    }

    @Test func `a connection that breaks is an error, also while it is made`() async throws {
        let error = await #expect(throws: SluiceError.self) {
            try await withConnection("vanish") { connection, _ in _ = try await connection.next() }
        }
        #expect(error?.code == .connectionFailed)
    }

    @Test(arguments: ["text", "orphan"])
    func `frames that the protocol does not have end the connection`(path: String) async throws {
        try await withConnection(path) { connection, _ in
            let error = await #expect(throws: SluiceError.self) { try await connection.next() }
            #expect(error?.code == .badSyntax)
        }
    }

    @Test func `a message over the limit ends the connection by name, also in fragments`() async throws {
        try await withConnection("echo", maximumBytes: 1_000) { connection, _ in
            try await connection.send([UInt8](repeating: 1, count: 2_400))
            let error = await #expect(throws: SluiceError.self) { try await connection.next() }
            #expect(error?.code == .limitsExceeded)
        }
    }

    @Test func `a gateway that refuses, and one that is not there, are told apart`() async throws {
        let refused = await #expect(throws: SluiceError.self) { try await withConnection("refuse") { _, _ in } }
        #expect(refused?.code == .connectionFailed && refused?.message.contains("404") == true)
        let server = TestSocketServer()
        try await server.start()
        let url = server.url("echo")
        try await server.stop()
        let missing = await #expect(throws: SluiceError.self) { try await WebSocketTransport().connect(SyncRequest(url: url)) }
        #expect(missing?.code == .connectionFailed && missing?.message.contains(url) == true)
    }

    @Test func `a server that takes the connection and says nothing is a timeout, in the time that the request gives`() async throws {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(host: "127.0.0.1", port: 0).get()
        let url = "ws://127.0.0.1:\(server.localAddress?.port ?? 0)/"
        let error = await #expect(throws: SluiceError.self) {
            try await WebSocketTransport().connect(SyncRequest(url: url, milliseconds: 100))
        }
        #expect(error?.code == .timeout && error?.message.contains(url) == true)
        try await server.close()
    }

    @Test(arguments: ["", "http://host", "ws://", "ws://host:x/", "ws://host:99999", "ws://user@host/"])
    func `addresses that are none are refused`(url: String) async {
        let error = await #expect(throws: SluiceError.self) { try await WebSocketTransport().connect(SyncRequest(url: url)) }
        #expect(error?.code == .connectionFailed)
    }

    @Test func `a close on this side ends whoever waits`() async throws {
        try await withConnection("echo") { connection, _ in
            async let next = connection.next()
            connection.close()
            let end = try await next
            #expect(end == nil)
            await #expect(throws: SluiceError.self) { try await connection.send([1]) }
        }
    }

    @Test func `a gateway cannot send more than a bounded number of messages ahead`() async throws {
        try await withConnection("flood") { connection, server in
            #expect(try await connection.next() != nil)
            // That nothing more comes cannot be awaited: the time is long enough to receive all of it many times over.
            try await Task.sleep(for: .milliseconds(700))
            #expect(server.seen.withLock { $0.flooded } < TestSocketServer.floodMessages / 2)
            for index in 1..<TestSocketServer.floodMessages {
                guard case .message(let bytes)? = try await connection.next() else {
                    Issue.record("message \(index) is missing")
                    return
                }
                #expect(bytes.first == UInt8(truncatingIfNeeded: index))
            }
        }
    }

    @Test func `a gateway that pings without reading gets few pongs, and the last one`() async throws {
        try await withConnection("pings") { _, server in
            let isAnswered = try await eventually(every: .milliseconds(50)) {
                server.seen.withLock { $0.lastPong == [UInt8](repeating: 1, count: 125) }
            }
            #expect(isAnswered)
            // The rest went into the sockets of the kernel while there was room.
            #expect(server.seen.withLock { $0.pongs } < TestSocketServer.pings / 2)
        }
    }
}
