import NIOCore
import SluiceNet
import SluiceValues
import Testing

/// Requests that two servers in a row may read in different ways, so that one hides another from a proxy (RFC 9112, 11.2).
@Suite(.timeLimit(.minutes(1))) struct SmugglingTests {
    /// A malformed request. `\r\n` of each ends its head; what follows would be the hidden request.
    struct Attack: CustomTestStringConvertible, Sendable {
        var name: String
        var text: String
        var testDescription: String { name }

        init(_ name: String, _ text: String) { (self.name, self.text) = (name, text) }

        /// A POST with these fields and this body.
        static func post(_ name: String, _ fields: String, body: String = "0\r\n\r\n") -> Attack {
            Attack(name, "POST /echo HTTP/1.1\r\nHost: test\r\n\(fields)\r\n\(body)")
        }
    }

    private static let hidden = "GET /hello HTTP/1.1\r\nHost: test\r\n\r\n"

    static let attacks: [Attack] = [
        // The host.
        Attack("two hosts", "GET /hello HTTP/1.1\r\nHost: test\r\nHost: other\r\n\r\n"),
        Attack("the same host twice", "GET /hello HTTP/1.1\r\nHost: test\r\nhost: test\r\n\r\n"),
        Attack("two hosts in one field", "GET /hello HTTP/1.1\r\nHost: test, other\r\n\r\n"),
        Attack("no host", "GET /hello HTTP/1.1\r\n\r\n"),
        Attack("a host with a path", "GET /hello HTTP/1.1\r\nHost: test/x\r\n\r\n"),
        Attack("a host with a user", "GET /hello HTTP/1.1\r\nHost: a@test\r\n\r\n"),
        Attack("a host with a blank", "GET /hello HTTP/1.1\r\nHost: te st\r\n\r\n"),
        // The transfer coding.
        .post("an unknown coding", "Transfer-Encoding: xchunked\r\n"),
        .post("two codings", "Transfer-Encoding: gzip, chunked\r\n"),
        .post("chunked that is not last", "Transfer-Encoding: chunked, identity\r\n"),
        .post("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        .post("chunked in two fields with another", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n"),
        .post("identity", "Transfer-Encoding: identity\r\nContent-Length: 5\r\n"),
        .post("a quoted coding", "Transfer-Encoding: \"chunked\"\r\n"),
        .post("a parameter of chunked", "Transfer-Encoding: chunked;q=1\r\n"),
        .post("a tab in the coding", "Transfer-Encoding: \u{0B}chunked\r\n"),
        .post("length and coding", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        .post("coding and length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
        .post("a blank before the colon of the coding", "Transfer-Encoding : chunked\r\n"),
        .post("a folded coding", "Transfer-Encoding:\r\n chunked\r\n"),
        .post("a coding behind a bare line feed", "X: y\nTransfer-Encoding: chunked\r\n"),
        .post("a coding behind a bare carriage return", "X: y\rTransfer-Encoding: chunked\r\n"),
        Attack("a coding of HTTP/1.0", "POST /echo HTTP/1.0\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        // The length.
        .post("two lengths", "Content-Length: 2\r\nContent-Length: 5\r\n", body: "{}"),
        .post("the same length twice", "Content-Length: 2\r\nContent-Length: 2\r\n", body: "{}"),
        .post("two lengths in one field", "Content-Length: 2, 2\r\n", body: "{}"),
        .post("a length with a sign", "Content-Length: +2\r\n", body: "{}"),
        .post("a negative length", "Content-Length: -2\r\n", body: "{}"),
        .post("a hexadecimal length", "Content-Length: 0x2\r\n", body: "{}"),
        .post("a length with a blank inside", "Content-Length: 2 2\r\n", body: "{}"),
        .post("an empty length", "Content-Length:\r\n", body: "{}"),
        .post("a length beyond 64 bits", "Content-Length: 18446744073709551618\r\n", body: "{}"),
        .post("a blank before the colon of the length", "Content-Length : 2\r\n", body: "{}"),
        // Lines and versions.
        Attack("a bare line feed at the end of the first line", "GET /hello HTTP/1.1\nHost: test\r\n\r\n"),
        Attack("a NUL in a field", "GET /hello HTTP/1.1\r\nHost: test\r\nX: a\u{0}b\r\n\r\n"),
        Attack("a field without a name", "GET /hello HTTP/1.1\r\nHost: test\r\n: x\r\n\r\n"),
        Attack("a field without a colon", "GET /hello HTTP/1.1\r\nHost: test\r\nX\r\n\r\n"),
        Attack("a blank before the first field", "GET /hello HTTP/1.1\r\n Host: test\r\n\r\n"),
        Attack("HTTP/2.0 in the first line", "GET /hello HTTP/2.0\r\nHost: test\r\n\r\n"),
        Attack("HTTP/1.2", "GET /hello HTTP/1.2\r\nHost: test\r\n\r\n"),
        Attack("HTTP/0.9", "GET /hello\r\n\r\n"),
        Attack("a target with a blank", "GET /hello there HTTP/1.1\r\nHost: test\r\n\r\n"),
    ]

    /// The statuses of all responses until the server ends the connection.
    private static func statuses(_ client: RawClient) async throws -> [String] {
        var statuses: [String] = []
        while let answer = try? await client.readResponse() { statuses.append(String(answer.head.split(separator: " ")[1])) }
        return statuses
    }

    @Test(arguments: attacks)
    func `a malformed request is 400, and the connection ends before the hidden one`(attack: Attack) async throws {
        try await withServer { server in
            let first = try await RawClient.connect(port: server.port)
            try await first.send(text: attack.text + Self.hidden)
            #expect(try await Self.statuses(first) == ["400"], "\(attack.name), as the first request")
            let later = try await RawClient.connect(port: server.port)
            #expect(try await later.request("GET", "/hello").head.hasPrefix("HTTP/1.1 200 "))
            try await later.send(text: attack.text + Self.hidden)
            #expect(try await Self.statuses(later) == ["400"], "\(attack.name), as a later request")
        }
    }

    @Test func `the refusal follows the responses to the requests before it`() async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            let slow = "POST /later HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\n{}"
            try await client.send(text: slow + Self.hidden + Self.attacks[0].text + Self.hidden)
            #expect(try await Self.statuses(client) == ["200", "200", "400"])
        }
    }

    /// They come in many reads, each of which the decoder may report as another error.
    @Test(arguments: attacks.filter { ["two hosts", "a NUL in a field"].contains($0.name) })
    func `bytes behind a malformed request do not take the responses before it`(attack: Attack) async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            let slow = "POST /later HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\n{}"
            try await client.send(text: slow + attack.text)
            for _ in 0..<100 { try await client.send(text: Self.hidden) }
            #expect(try await Self.statuses(client) == ["200", "400"])
        }
    }

    @Test(arguments: [
        "GET /hello HTTP/1.1\r\nHost: test\r\n\r\n", "GET /hello HTTP/1.1\r\nHost:\r\n\r\n",
        "GET /hello HTTP/1.1\r\nhOsT: [::1]:8090\r\n\r\n",
        "GET /hello HTTP/1.1\r\nHost: sync_1.example.com:443\r\n\r\n", "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n2;name=value\r\n{}\r\n0\r\nTrailer: x\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 02\r\n\r\n{}",
    ])
    func `a request that follows the rules is answered, and so is the next one`(text: String) async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            try await client.send(text: text)
            #expect(try await client.readResponse().head.split(separator: " ")[1] == "200")
            #expect(try await client.request("GET", "/hello").head.hasPrefix("HTTP/1.1 200 "))
        }
    }

    /// The end of the body is open, so nothing behind it may count as a request.
    @Test(arguments: [
        "x\r\n{}\r\n0\r\n\r\n", "-2\r\n{}\r\n0\r\n\r\n", "2\r\n{}0\r\n\r\n",
        "ffffffffffffffff2\r\n{}\r\n0\r\n\r\n", "2\n{}\n0\n\n",
    ])
    func `a broken chunk ends the connection`(body: String) async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            try await client.send(text: "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" + body + Self.hidden)
            #expect(try await Self.statuses(client).contains("200") == false)
        }
    }

    /// The decoder keeps what follows such a request, which no other bound limits.
    @Test(arguments: [
        "GET /hello HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", "CONNECT test:1 HTTP/1.1\r\nHost: test:1\r\n\r\n",
        "GET /sync HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ])
    func `bytes behind a request for another protocol end the connection`(text: String) async throws {
        try await withServer { server in
            for isFirst in [true, false] {
                let client = try await RawClient.connect(port: server.port)
                if !isFirst { #expect(try await client.request("GET", "/hello").head.hasPrefix("HTTP/1.1 200 ")) }
                try await client.send(text: text)
                var sent = 0
                let piece = String(repeating: "x", count: 64 << 10)
                // Twice as much as the buffers of both sockets take.
                while sent < 64 << 20, (try? await client.send(text: piece)) != nil { sent += piece.utf8.count }
                #expect(sent < 64 << 20, "\(isFirst ? "as the first request" : "as a later request")")
            }
        }
    }

    @Test func `a client that still sends its body reads why it is refused`() async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            #expect(try await client.request("GET", "/hello").head.hasPrefix("HTTP/1.1 200 "))
            try await client.send(text: "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 2000000\r\nContent-Length: 2000000\r\n\r\n")
            for _ in 0..<32 { try? await client.send(text: String(repeating: "x", count: 62_500)) }
            #expect(try await Self.statuses(client) == ["400"])
        }
    }
}
