import NIOCore
import SluiceCore
import SluiceNet
import SluiceValues
import Synchronization
import Testing

/// Attacks of peers that never authenticate, beside a session that has.
@Suite(.timeLimit(.minutes(1)))
struct HostileTests {
    /// Counts refusals by reason.
    private final class Refusals: Sendable {
        private let counts = Mutex<[NetRefusal: Int]>([:])
        var sink: @Sendable (NetRefusal) -> Void { { reason in self.counts.withLock { $0[reason, default: 0] += 1 } } }
        subscript(_ reason: NetRefusal) -> Int { counts.withLock { $0[reason] ?? 0 } }
    }

    private static func configuration(_ refusals: Refusals, _ admission: AdmissionLimits = .init()) -> NetServer.Configuration {
        // Only what a test is about may end a connection.
        var configuration = NetServer.Configuration(admission: admission, firstRequestPatience: .minutes(1))
        configuration.onRefusal = refusals.sink
        return configuration
    }

    /// Waits until the server has closed, or reset, a connection.
    private static func ended(_ client: RawClient) async { _ = try? await client.readToEnd() }

    private static func echo(_ client: RawClient) async throws {
        try await client.send(clientFrame(Array("!here".utf8)))
        var frame = try await client.readFrame()
        while frame.opcode != 2 { frame = try await client.readFrame() }
        #expect(frame == .binary(Array("!here".utf8)))
    }

    @Test func `a flood from one address is refused when it is accepted, and others are served`() async throws {
        let refusals = Refusals()
        let limits = AdmissionLimits(connections: 200, unauthenticated: 100, connectionsPerAddress: 30, unauthenticatedPerAddress: 20)
        try await withServer(Self.configuration(refusals, limits)) { server in
            let session = try await RawClient.webSocket(port: server.port, from: "127.0.0.2")
            _ = try await server.nextOwner().open()
            var flood: [RawClient] = []
            for _ in 0..<300 { flood.append(try await RawClient.connect(port: server.port, from: "127.0.0.3")) }
            for client in flood.dropFirst(20) { await Self.ended(client) }
            #expect(refusals[.addressUnauthenticated] == 280)
            #expect(refusals[.evicted] == 0)
            #expect(server.server.connectionCount == 21)
            try await Self.echo(session)
            #expect(
                try await RawClient.connect(port: server.port, from: "127.0.0.4").request("GET", "/hello").head.hasPrefix("HTTP/1.1 200"))
            for client in flood { await client.close() }
        }
    }

    @Test func `slow sockets from many addresses make room for new clients, and never at the cost of a session`() async throws {
        let refusals = Refusals()
        let limits = AdmissionLimits(connections: 60, unauthenticated: 40, connectionsPerAddress: 30, unauthenticatedPerAddress: 20)
        try await withServer(Self.configuration(refusals, limits)) { server in
            var sessions: [RawClient] = []
            for _ in 0..<20 {
                sessions.append(try await RawClient.webSocket(port: server.port, from: "127.0.0.2"))
                _ = try await server.nextOwner().open()
            }
            var slow: [RawClient] = []
            for number in 0..<400 {
                slow.append(try await RawClient.connect(port: server.port, from: "127.1.\(number / 200).\(number % 200 + 1)"))
                try await slow[number].send(text: "GET /he")
            }
            for client in slow.prefix(360) { await Self.ended(client) }
            #expect(refusals[.evicted] == 360)
            #expect(server.server.connectionCount == 60)
            let user = try await RawClient.connect(port: server.port, from: "127.0.0.4")
            #expect(try await user.request("GET", "/hello").head.hasPrefix("HTTP/1.1 200"))
            for session in sessions { try await Self.echo(session) }
            for client in slow { await client.close() }
        }
    }

    @Test func `a server full of sessions refuses new connections`() async throws {
        let refusals = Refusals()
        try await withServer(Self.configuration(refusals, AdmissionLimits(connections: 3, unauthenticated: 2))) { server in
            for _ in 0..<3 {
                _ = try await RawClient.webSocket(port: server.port)
                _ = try await server.nextOwner().open()
            }
            #expect(try await RawClient.connect(port: server.port).readToEnd() == 0)
            #expect(refusals[.full] == 1)
        }
    }

    @Test func `behind a proxy each client has its own limit`() async throws {
        let refusals = Refusals()
        var configuration = Self.configuration(refusals, AdmissionLimits(unauthenticatedPerAddress: 2))
        configuration.trustedProxies = TrustedProxies([try NetworkRange("127.0.0.1")])
        try await withServer(configuration, authenticates: false) { server in
            for address in ["203.0.113.1", "203.0.113.2"] {
                for number in 0..<3 {
                    let client = try await RawClient.connect(port: server.port)
                    let head = try await client.upgrade(extra: "X-Forwarded-For: \(address)\r\n")
                    #expect(head.hasPrefix(number < 2 ? "HTTP/1.1 101 " : "HTTP/1.1 429 "))
                }
            }
            #expect(refusals[.addressUnauthenticated] == 2)
        }
    }

    @Test(arguments: [[], clientFrame(Array("he".utf8), fin: false), clientFrame([], opcode: 9), [0x82]])
    func `a socket without a whole first message is closed in time`(bytes: [UInt8]) async throws {
        let refusals = Refusals()
        try await withServer(
            Self.configuration(refusals), limits: .init(openingPatience: .milliseconds(200)), authenticates: false
        ) { server in
            let client = try await RawClient.webSocket(port: server.port)
            try await client.send(bytes)
            let frames = try await client.readToClose().filter { $0.opcode != 10 }
            #expect(frames.first == .binary(Array("late".utf8)))
            #expect(frames.last?.closeCode == 1008)
            await client.close()
            #expect(try await server.nextOwner().end() == .late)
            #expect(refusals[.openingTimeout] == 1)
        }
    }

    @Test(arguments: [true, false])
    func `a peer that has not authenticated sends no large message`(isOneFrame: Bool) async throws {
        let refusals = Refusals()
        try await withServer(Self.configuration(refusals), authenticates: false) { server in
            let client = try await RawClient.webSocket(port: server.port)
            if isOneFrame {
                try await client.send(clientFrame([], claimedLength: Limits.openingBytes + 1))
            } else {
                try await client.send(clientFrame(Array(repeating: 1, count: Limits.openingBytes), fin: false))
                try await client.send(clientFrame([1], opcode: 0, fin: false))
            }
            let frames = try await client.readToClose()
            #expect(frames.first == .binary(Array("tooLarge".utf8)))
            #expect(frames.last?.closeCode == 1009)
            #expect(refusals[.openingTooLarge] == 1)
        }
    }

    @Test func `what follows the first message waits for authentication, and may be large then`() async throws {
        try await withServer(authenticates: false) { server in
            let client = try await RawClient.webSocket(port: server.port)
            let owner = try await server.nextOwner()
            let socket = try await owner.open()
            let large = Array(repeating: UInt8(7), count: 300_000)
            try await client.send(clientFrame(Array("token".utf8)) + clientFrame(large))
            #expect(await owner.next() == .message(Array("token".utf8)))
            socket.send(.encode(binary: [1]))
            #expect(try await client.readFrame() == .binary([1]))
            socket.authenticated()
            #expect(await owner.next() == .message(large))
        }
    }

    @Test func `a goodbye that waits behind the first message is heard when the server closes`() async throws {
        try await withServer(authenticates: false) { server in
            let client = try await RawClient.webSocket(port: server.port)
            let owner = try await server.nextOwner()
            let socket = try await owner.open()
            try await client.send(clientFrame([1]) + clientFrame([3, 232], opcode: 8))
            #expect(await owner.next() == .message([1]))
            socket.close(.policyViolation)
            #expect(try await client.readFrame().closeCode == 1008)
            #expect(try await client.readToEnd() == 0)
            #expect(await owner.end() == .local(code: 1008))
        }
    }

    @Test func `a body that drips is answered 408`() async throws {
        let refusals = Refusals()
        var configuration = Self.configuration(refusals)
        (configuration.bodies.grace, configuration.bodies.bytesPerSecond) = (200_000_000, 1_000)
        try await withServer(configuration) { server in
            let client = try await RawClient.connect(port: server.port)
            try await client.send(text: "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 60\r\n\r\n{")
            let answer = try await client.readResponse()
            #expect(answer.head.hasPrefix("HTTP/1.1 408 "))
            #expect(try JSON.parse(answer.body)["code"] == .int(Int64(ErrorCode.requestTimeout.rawValue)))
            #expect(try await client.readToEnd() == 0)
            #expect(refusals[.bodyTimeout] == 1)
        }
    }

    @Test func `a body that the route holds back is not late`() async throws {
        let refusals = Refusals()
        var configuration = Self.configuration(refusals)
        (configuration.bodies.grace, configuration.bodies.bytesPerSecond) = (600_000_000, 1 << 20)
        try await withServer(configuration) { server in
            let client = try await RawClient.connect(port: server.port)
            let body = Array(repeating: UInt8(ascii: "x"), count: 8 << 20)
            try await client.send(Array("POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body)
            let answer = try await client.readResponse()
            #expect(answer.head.hasPrefix("HTTP/1.1 200 "))
            #expect(try JSON.parse(answer.body)["bytes"] == .int(Int64(body.count)))
            #expect(refusals[.bodyTimeout] == 0)
        }
    }

    @Test func `requests and upgrades of an address share one limit`() async throws {
        let refusals = Refusals()
        var configuration = Self.configuration(refusals)
        configuration.requests = RequestLimiter(AdmissionLimits(requestsPerSecond: 1, requestBurst: 2))
        try await withServer(configuration) { server in
            let client = try await RawClient.connect(port: server.port)
            // A slow machine is given a few more as time passes.
            var heads: [String] = []
            repeat { heads.append(try await client.request("GET", "/hello").head) } while heads.last?.hasPrefix("HTTP/1.1 200 ") == true
            #expect(heads.count >= 3)
            #expect(heads.last?.hasPrefix("HTTP/1.1 429 ") == true)
            #expect(heads.last?.lowercased().contains("retry-after: 1\r\n") == true)
            repeat {
                heads.append(try await RawClient.connect(port: server.port).upgrade())
            } while heads.last?.hasPrefix("HTTP/1.1 101 ") == true
            #expect(heads.last?.hasPrefix("HTTP/1.1 429 ") == true)
            #expect(refusals[.requests] == 1)
            let other = try await RawClient.connect(port: server.port, from: "127.0.0.2")
            #expect(try await other.request("GET", "/hello").head.hasPrefix("HTTP/1.1 200 "))
        }
    }
}
