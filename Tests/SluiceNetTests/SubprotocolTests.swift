import HTTPTypes
import SluiceCore
import SluiceNet
import SluiceValues
import Testing

/// Runs the body with endpoints beside the one of `sluice.v1`.
///
/// - `/many` accepts the offered `many#1` to `many#9` with the largest number. It refuses `old#1` with 403, and all else with 400.
/// - `/wrong` chooses a name that no client offers.
/// - `/expired` refuses each client with 401.
/// - `/later` accepts once `gate` is open; with the query `no` it refuses with 401 then.
private func withEndpoints(gate: Gate = Gate(), _ body: @Sendable (TestServer) async throws -> Void) async throws {
    try await withServer(
        others: { record in
            let accept: @Sendable (UpgradeRequest) -> UpgradeDecision = { request in
                let owner = Recorder(request: request, authenticates: true)
                record(owner)
                return .accept(owner)
            }
            let expired = ErrorResponse(SluiceError(.tokenExpired, "The token has expired."), status: .unauthorized, name: "InvalidSession")
            return [
                WebSocketEndpoint(subprotocols: many, matches: { $0 == "/many" }, accept: accept),
                WebSocketEndpoint(
                    subprotocols: SubprotocolChoice(advised: "none") { _, _ in .accept("other") }, matches: { $0 == "/wrong" },
                    accept: accept),
                WebSocketEndpoint(subprotocols: many, matches: { $0 == "/expired" }, accept: { _ in .refuseWith(expired) }),
                WebSocketEndpoint(
                    subprotocols: many, matches: { $0 == "/later" },
                    accept: { request in
                        .later {
                            await gate.pass()
                            return request.query == "no" ? .refuseWith(expired) : accept(request)
                        }
                    }),
            ]
        }, body)
}

/// A gate that opens once, for one client.
private final class Gate: Sendable {
    private let opening = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(1))
    private let arrival = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(1))

    func open() { opening.continuation.finish() }
    func pass() async {
        arrival.continuation.finish()
        for await _ in opening.stream {}
    }
    /// Waits until the client is at the gate.
    func reached() async { for await _ in arrival.stream {} }
}

private let many = SubprotocolChoice(advised: "many#9") { offered, _ in
    let known = (1...9).map { "many#\($0)" }
    if let newest = offered.filter({ known.contains($0) }).max() { return .accept(newest) }
    let isOld = offered.contains("old#1")
    let error = SluiceError(.wrongProtocolVersion, isOld ? "The old protocol is not served." : "No name is known.")
    return .refuse(ErrorResponse(error, status: isOld ? .forbidden : .badRequest))
}

extension RawClient {
    /// Returns the values of a header in the head of a response.
    fileprivate static func values(_ name: String, in head: String) -> [String] {
        head.split(separator: "\r\n").filter { $0.lowercased().hasPrefix("\(name.lowercased()): ") }
            .map { String($0.dropFirst(name.count + 2)) }
    }
}

@Suite(.timeLimit(.minutes(1))) struct `An endpoint of several subprotocols` {
    @Test(arguments: [
        ("many#3", "many#3"), ("many#2, many#7, many#4", "many#7"), ("many#10,many#1 ,other", "many#1"), ("old#1, many#5", "many#5"),
        ("many#6, many#6", "many#6"),
    ])
    func `names the chosen one in its answer and to the owner`(offered: String, chosen: String) async throws {
        try await withEndpoints { server in
            let client = try await RawClient.connect(port: server.port)
            let head = try await client.upgrade(path: "/many", subprotocols: offered)
            #expect(head.hasPrefix("HTTP/1.1 101 "))
            #expect(RawClient.values("Sec-WebSocket-Protocol", in: head) == [chosen])
            #expect(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
            #expect(try await server.nextOwner().request.subprotocol == chosen)
            try await client.send(clientFrame(Array("!hello".utf8)))
            #expect(try await client.readFrame() == .binary(Array("!hello".utf8)))
        }
    }

    @Test func `reads the names of all lines of the header`() async throws {
        try await withEndpoints { server in
            let client = try await RawClient.connect(port: server.port)
            let head = try await client.upgrade(path: "/many", subprotocols: "other", extra: "sec-websocket-protocol: many#2, many#8\r\n")
            #expect(RawClient.values("Sec-WebSocket-Protocol", in: head) == ["many#8"])
        }
    }

    @Test(
        arguments: [
            (nil, 400, "No name is known."), ("", 400, "No name is known."), ("sluice.v1", 400, "No name is known."),
            ("MANY#1, many #2, many", 400, "No name is known."), ("old#1, other", 403, "The old protocol is not served."),
        ] as [(String?, Int, String)])
    func `refuses other names with the status and body of the choice`(offered: String?, status: Int, message: String) async throws {
        try await withEndpoints { server in
            let client = try await RawClient.connect(port: server.port)
            try await client.sendUpgrade(path: "/many", subprotocols: offered)
            let refusal = try await client.readResponse()
            #expect(refusal.head.hasPrefix("HTTP/1.1 \(status) "))
            #expect(RawClient.values("Content-Type", in: refusal.head) == ["application/json"])
            #expect(RawClient.values("Sec-WebSocket-Protocol", in: refusal.head) == [])
            let json = try JSON.parse(refusal.body)
            #expect(json["code"] == .int(105))
            #expect(json["error"] == .string(message))
            #expect(try await client.readToEnd() == 0)
            // The next owner is that of the next client: the refused one never had any.
            let next = try await RawClient.connect(port: server.port)
            _ = try await next.upgrade(path: "/many?next", subprotocols: "many#1")
            #expect(try await server.nextOwner().request.query == "next")
        }
    }

    @Test func `never answers with a name that was not offered`() async throws {
        try await withEndpoints { server in
            for offered in ["many#1", nil] {
                let client = try await RawClient.connect(port: server.port)
                let head = try await client.upgrade(path: "/wrong", subprotocols: offered)
                #expect(head.hasPrefix("HTTP/1.1 500 "))
                #expect(RawClient.values("Sec-WebSocket-Protocol", in: head) == [])
                await client.close()
            }
            // Only by chance is it right.
            let client = try await RawClient.connect(port: server.port)
            #expect(try await client.upgrade(path: "/wrong", subprotocols: "other").hasPrefix("HTTP/1.1 101 "))
        }
    }

    @Test func `may refuse a client with any status and name of the error`() async throws {
        try await withEndpoints { server in
            let client = try await RawClient.connect(port: server.port)
            try await client.sendUpgrade(path: "/expired?baas_at=x", subprotocols: "many#1")
            let refusal = try await client.readResponse()
            #expect(refusal.head.hasPrefix("HTTP/1.1 401 "))
            #expect(try JSON.parse(refusal.body)["error_code"] == "InvalidSession")
            #expect(try await client.readToEnd() == 0)
        }
    }

    @Test func `leaves other paths to their own endpoint`() async throws {
        try await withEndpoints { server in
            let sync = try await RawClient.connect(port: server.port)
            #expect(try await sync.upgrade(path: "/sync", subprotocols: "many#1, sluice.v1").contains(": sluice.v1\r\n"))
            #expect(try await server.nextOwner().request.subprotocol == "sluice.v1")
            let wrong = try await RawClient.connect(port: server.port)
            #expect(try await wrong.upgrade(path: "/sync", subprotocols: "many#1").hasPrefix("HTTP/1.1 400 "))
        }
    }

    @Test func `advises a plain request of its own name`() async throws {
        try await withEndpoints { server in
            for (path, name) in [("/many", "many#9"), ("/sync", "sluice.v1")] {
                let client = try await RawClient.connect(port: server.port)
                let answer = try await client.request("GET", path)
                #expect(answer.head.hasPrefix("HTTP/1.1 426 "))
                #expect(answer.body.contains("Sec-WebSocket-Protocol: \(name)."))
                await client.close()
            }
        }
    }

    @Test func `gives the parameters of the query to the owner`() async throws {
        try await withEndpoints { server in
            let client = try await RawClient.connect(port: server.port)
            _ = try await client.upgrade(path: "/many?baas_at=abc.d%65f.gh-i_j&x=1", subprotocols: "many#1")
            let request = try await server.nextOwner().request
            #expect(request.path == "/many")
            #expect(request.parameter("baas_at") == "abc.def.gh-i_j")
            #expect(request.parameter("x") == "1")
        }
    }
}

@Suite struct `The parameters of an upgrade's query` {
    @Test(arguments: [
        ("a=1", "1"), ("b=2&a=1", "1"), ("a=1&a=2", "1"), ("a", ""), ("a=", ""), ("&&a=1&", "1"), ("a==b=c", "=b=c"), ("%61=1", "1"),
        ("a=%c3%A9", "é"), ("a=1+2", "1+2"), ("a=%00", "\0"), ("a=%25", "%"), ("a=%2541", "%41"), ("%zz=9&a=1", "1"),
    ])
    func `are decoded`(query: String, value: String) {
        #expect(UpgradeRequest(target: "/p?\(query)").parameter("a") == value)
    }

    @Test(arguments: ["", "b=1", "A=1", "a=%", "a=%4", "a=%4g", "a=%ff", "a=%c3", "aa=1", "=a"])
    func `are nil if missing or damaged`(query: String) {
        #expect(UpgradeRequest(target: "/p?\(query)").parameter("a") == nil)
    }

    @Test func `are missing without a query`() { #expect(UpgradeRequest(target: "/p").parameter("a") == nil) }
}

@Suite(.timeLimit(.minutes(1))) struct `A close frame of the server` {
    @Test(arguments: [SocketCloseCode.normal, .goingAway, .internalError, .unauthorized, .forbidden, .moved])
    func `has its code and the start of its reason`(code: SocketCloseCode) async throws {
        try await withServer { server in
            // 120 bytes, a character of 4 that exceeds the 123, and a short one that must not take its place.
            let long = String(repeating: "é", count: 60)
            for (reason, expected) in [("", ""), ("bye", "bye"), (long + "🛫.", long)] {
                let client = try await RawClient.webSocket(port: server.port)
                let owner = try await server.nextOwner()
                try await owner.open().close(code, reason: reason)
                let frame = try await client.readFrame()
                #expect(frame.closeCode == Int(code.rawValue))
                #expect(String(validating: frame.payload.dropFirst(2), as: UTF8.self) == expected)
                try await client.send(clientFrame(Array(frame.payload.prefix(2)), opcode: 8))
                #expect(await owner.end() == .local(code: code.rawValue))
            }
        }
    }

    @Test func `holds a reason of 123 bytes`() async throws {
        try await withServer { server in
            let client = try await RawClient.webSocket(port: server.port)
            let reason = String(repeating: "a", count: 120) + "水"
            try await server.nextOwner().open().close(.unauthorized, reason: reason + "b")
            let frame = try await client.readFrame()
            #expect(frame.payload.count == 125)
            #expect(frame.payload.dropFirst(2).elementsEqual(reason.utf8))
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct `An endpoint that decides later` {
    @Test func `accepts, and keeps the frames that came with the request`() async throws {
        let gate = Gate()
        try await withEndpoints(gate: gate) { server in
            let client = try await RawClient.connect(port: server.port)
            let request =
                "GET /later HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: many#3\r\n\r\n"
            try await client.send(Array(request.utf8) + clientFrame(Array("!hello".utf8)))
            await gate.reached()
            gate.open()
            #expect(try await client.readHead().hasPrefix("HTTP/1.1 101 "))
            #expect(try await server.nextOwner().request.subprotocol == "many#3")
            #expect(try await client.readFrame() == .binary(Array("!hello".utf8)))
            try await client.send(clientFrame(Array("!again".utf8)))
            #expect(try await client.readFrame() == .binary(Array("!again".utf8)))
        }
    }

    @Test func `refuses with a status`() async throws {
        let gate = Gate()
        gate.open()
        try await withEndpoints(gate: gate) { server in
            let client = try await RawClient.connect(port: server.port)
            try await client.sendUpgrade(path: "/later?no", subprotocols: "many#1")
            let refusal = try await client.readResponse()
            #expect(refusal.head.hasPrefix("HTTP/1.1 401 "))
            #expect(try JSON.parse(refusal.body)["error_code"] == "InvalidSession")
            #expect(try await client.readToEnd() == 0)
        }
    }

    @Test func `refuses a request with a body at once`() async throws {
        let gate = Gate()
        try await withEndpoints(gate: gate) { server in
            let client = try await RawClient.connect(port: server.port)
            try await client.sendUpgrade(path: "/later", subprotocols: "many#1", extra: "Content-Length: 3\r\n", body: "abc")
            #expect(try await client.readResponse().head.hasPrefix("HTTP/1.1 400 "))
            gate.open()
            // The owner that comes too late is told of the end.
            let owner = try await server.nextOwner()
            #expect(await owner.end() == .lost("the connection ended before it was open"))
        }
    }
}
