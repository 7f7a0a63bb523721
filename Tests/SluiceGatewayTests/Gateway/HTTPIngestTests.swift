import Foundation
import GatewayTestSupport
import SluiceCompression
import SluiceCore
import SluiceGateway
import SluiceValues
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension RunningGateway {
    /// An answer of ingest: as one JSON document, or as lines.
    struct IngestReply: Sendable {
        var status: Int
        var headers: [String: String]
        var text: String

        var json: JSON { (try? JSON.parse(text)) ?? .null }
        var lines: [JSON] { text.split(separator: "\n").map { (try? JSON.parse(String($0))) ?? .null } }
        var accepted: Int? { json["accepted"]?.int.map { Int($0) } }
    }

    func ingest(
        _ body: [UInt8], type: String = "Reading", token: String? = nil, lines: Bool = true, _ headers: [String: String] = [:]
    ) async throws -> IngestReply {
        var request = URLRequest(url: try #require(URL(string: "\(url)/v1/ingest/\(type)")))
        request.httpMethod = "POST"
        request.timeoutInterval = 60
        request.httpBody = Data(body)
        request.setValue(lines ? "application/x-ndjson" : "application/json", forHTTPHeaderField: "Content-Type")
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        let (data, response) = try await URLSession.shared.data(for: request)
        let http = try #require(response as? HTTPURLResponse)
        let fields = http.allHeaderFields.map { ("\($0.key)".lowercased(), "\($0.value)") }
        return IngestReply(
            status: http.statusCode, headers: Dictionary(fields, uniquingKeysWith: { $1 }), text: String(decoding: data, as: UTF8.self))
    }
}

/// The `zstd` program, which the tests compress with; the product only reads.
private enum Zstd {
    static func compress(_ bytes: [UInt8]) throws -> [UInt8] {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(bytes).write(to: file)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["zstd", "--quiet", "--stdout", file.path]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let compressed = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Array(compressed)
    }
}

enum Readings {
    static func line(_ id: some CustomStringConvertible, value: Double = 1.5) -> String {
        #"{"_id": "\#(id)", "store": "north", "value": \#(value)}"#
    }

    static func lines(_ count: Int, prefix: String = "r") -> [UInt8] {
        Array((0..<count).map { line("\(prefix)\($0)") }.joined(separator: "\n").utf8)
    }
}

@Suite(.timeLimit(.minutes(3))) struct `Ingest by HTTP` {
    @Test func `takes gzip and arrays, and answers line by line when asked`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            let compressed = try await gateway.ingest(
                Gzip.compress(Readings.lines(2_500)), token: token, ["Content-Encoding": "gzip", "Accept": "application/x-ndjson"])
            #expect(compressed.status == 200)
            #expect(compressed.headers["content-type"] == "application/x-ndjson")
            let lines = compressed.lines
            #expect(lines.count == 2_501)
            #expect(lines.dropLast().map { $0["line"]?.int } == (1...2_500).map { Int64($0) })
            #expect(lines.dropLast().allSatisfy { $0["accepted"] == true })
            #expect(lines.last?["summary"] == ["accepted": 2_500, "rejected_count": 0, "complete": true])
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 2_500)

            let array = "[\(Readings.line("x")), 7, \(Readings.line("y"))]"
            let answer = try await gateway.ingest(Array(array.utf8), token: token, lines: false)
            #expect((answer.status, answer.accepted) == (207, 2))
            #expect(answer.json["rejected"]?.array?.compactMap { $0["line"]?.int } == [2])
            #expect(try await gateway.count("SELECT count(*) FROM readings WHERE _id IN ('x', 'y')") == 2)
        }
    }

    @Test func `takes zstd, and the lines that came before a damaged end`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            let compressed = try Zstd.compress(Readings.lines(30_000))
            let answer = try await gateway.ingest(compressed, token: token, ["Content-Encoding": "zstd"])
            #expect((answer.status, answer.accepted) == (200, 30_000), "\(answer)")
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 30_000)
            let cut = try Zstd.compress(Readings.lines(30_000, prefix: "z")).dropLast(9)
            let lines = try await gateway.ingest(
                Array(cut), token: token, ["Content-Encoding": "zstd", "Accept": "application/x-ndjson"]
            ).lines
            #expect(lines.last?["summary"]?["complete"] == false)
            #expect(lines.last?["summary"]?["code"] == .int(Int64(ErrorCode.badCompression.rawValue)))
            #expect(try await gateway.count("SELECT count(*) FROM readings WHERE _id LIKE 'z%'") == Int64(lines.count - 1))
        }
    }

    @Test func `takes a body of any size, and names an object that is over the limit`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            // 12 MB plain, 6,000 objects.
            let padding = String(repeating: " ", count: 1_970)
            let many = (0..<6_000).map { Readings.line("r\($0)") + padding }
            let huge = #"{"_id": "huge", "store": "\#(String(repeating: "n", count: Limits.ingestObjectBytes))", "value": 1}"#
            let body = Array((many[..<3_000] + [huge] + many[3_000...]).joined(separator: "\n").utf8)
            #expect(body.count > 12_000_000)
            let answer = try await gateway.ingest(body, token: token)
            #expect((answer.status, answer.accepted) == (207, 6_000))
            let refused = answer.json["rejected"]?.array?.first
            #expect(refused?["line"] == 3_001)
            #expect(refused?["code"] == .int(Int64(ErrorCode.ingestTooLarge.rawValue)))
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 6_000)
        }
    }

    @Test func `counts refusals beyond those it names`() async throws {
        try await RunningGateway.with { gateway in
            let body = Array(repeating: "{}", count: Limits.ingestNamedRefusals + 50).joined(separator: "\n")
            let answer = try await gateway.ingest(Array(body.utf8), token: try await gateway.anonymousToken())
            #expect((answer.status, answer.accepted) == (422, 0))
            #expect(answer.json["rejected_count"] == .int(Int64(Limits.ingestNamedRefusals + 50)))
            #expect(answer.json["rejected"]?.array?.count == Limits.ingestNamedRefusals)
        }
    }

    @Test func `keeps what came before a body breaks, and says that it broke`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            let array = try await gateway.ingest(Array("[\(Readings.line("a")), {".utf8), token: token, lines: false)
            #expect((array.status, array.accepted, array.json["complete"]) == (207, 1, false))
            #expect(array.json["code"] == .int(Int64(ErrorCode.badJSON.rawValue)))
            let cut = try Gzip.compress(Readings.lines(20_000, prefix: "z")).dropLast(9)
            let lines = try await gateway.ingest(
                Array(cut), token: token, ["Content-Encoding": "gzip", "Accept": "application/x-ndjson"]
            ).lines
            #expect(lines.last?["summary"]?["complete"] == false)
            #expect(lines.last?["summary"]?["code"] == .int(Int64(ErrorCode.badCompression.rawValue)))
            #expect(try await gateway.count("SELECT count(*) FROM readings WHERE _id LIKE 'z%'") == Int64(lines.count - 1))
            let nothing = try await gateway.ingest(Array("nonsense".utf8), token: token, ["Content-Encoding": "zstd"])
            #expect((nothing.status, nothing.json["accepted"]) == (400, 0))
            let unknown = try await gateway.ingest([1], token: token, ["Content-Encoding": "br"])
            #expect((unknown.status, unknown.json["code"]) == (415, .int(Int64(ErrorCode.unsupportedEncoding.rawValue))))
        }
    }

    @Test func `takes API keys, by either header`() async throws {
        try await RunningGateway.with { gateway in
            let made = try await gateway.request("POST", "/admin/v1/api_keys", #"{"name": "pipeline"}"#, admin: true)
            let secret = try #require(made.json["key"]?.string, "\(made)")
            #expect(try await gateway.ingest(Readings.lines(1, prefix: "a"), token: secret).accepted == 1)
            #expect(try await gateway.ingest(Readings.lines(1, prefix: "b"), ["apiKey": secret]).accepted == 1)
            #expect(try await gateway.ingest(Readings.lines(1, prefix: "c"), ["apiKey": secret + "x"]).status == 401)
            let id = try #require(made.json["_id"]?.string)
            _ = try await gateway.request("PUT", "/admin/v1/api_keys/\(id)/disable", admin: true)
            #expect(try await gateway.ingest(Readings.lines(1, prefix: "d"), token: secret).status == 401)
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 2)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.api_key WHERE encode(hash, 'escape') LIKE '%\(secret)%'") == 0)
        }
    }

    @Test func `answers a repeated key as it did the first time`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            let body = Array((Readings.line("a") + "\n{}\n" + Readings.line("b")).utf8)
            let first = try await gateway.ingest(body, token: token, ["Idempotency-Key": "k1"])
            #expect((first.status, first.accepted, first.headers["idempotency-replayed"]) == (207, 2, nil))
            try await gateway.sql("DELETE FROM readings")
            // Compressed it is the same body.
            for headers in [["Idempotency-Key": "k1"], ["Idempotency-Key": "k1", "Content-Encoding": "gzip"]] {
                let again = try await gateway.ingest(
                    headers["Content-Encoding"] == nil ? body : try Gzip.compress(body), token: token, headers)
                #expect((again.status, again.text, again.headers["idempotency-replayed"]) == (first.status, first.text, "true"))
            }
            let lines = try await gateway.ingest(body, token: token, ["Idempotency-Key": "k1", "Accept": "application/x-ndjson"]).lines
            #expect(lines.map { $0["line"]?.int } == [2, nil])
            #expect(lines.last?["summary"] == ["accepted": 2, "rejected_count": 1, "complete": true, "replayed": true])
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 0, "nothing is done twice")

            let other = try await gateway.ingest(Readings.lines(1), token: token, ["Idempotency-Key": "k1"])
            #expect((other.status, other.json["code"]) == (409, .int(Int64(ErrorCode.idempotencyKeyInUse.rawValue))))
            // Keys are the user's own.
            let stranger = try await gateway.ingest(body, token: try await gateway.anonymousToken(), ["Idempotency-Key": "k1"])
            #expect((stranger.accepted, stranger.headers["idempotency-replayed"]) == (2, nil))
            let bad = try await gateway.ingest(body, token: token, ["Idempotency-Key": String(repeating: "k", count: 300)])
            #expect(bad.status == 400)
        }
    }

    @Test func `answers 409 while a request with the key is under way, and frees the key of a gateway that died`() async throws {
        try await RunningGateway.with { gateway in
            let account = try await gateway.account()
            try await gateway.sql(
                """
                INSERT INTO sluice.ingest_request (user_id, key, owner, type, lease_until)
                VALUES ('\(account.id)', 'k', 'another gateway', 'Reading', now() + interval '1 minute')
                """)
            let busy = try await gateway.ingest(Readings.lines(1), token: account.token, ["Idempotency-Key": "k"])
            #expect(busy.status == 409)
            #expect(busy.headers["retry-after"].flatMap { Int($0) } != nil)
            try await gateway.sql("UPDATE sluice.ingest_request SET lease_until = now() - interval '1 second'")
            let taken = try await gateway.ingest(Readings.lines(1), token: account.token, ["Idempotency-Key": "k"])
            #expect((taken.status, taken.accepted) == (200, 1))
        }
    }

    @Test func `gives the key of a body that broke back`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            let broken = try await gateway.ingest(
                Array("[\(Readings.line("a")),".utf8), token: token, lines: false, ["Idempotency-Key": "k"])
            #expect((broken.accepted, broken.json["complete"]) == (1, false))
            let whole = try await gateway.ingest(
                Array("[\(Readings.line("a"))]".utf8), token: token, lines: false, ["Idempotency-Key": "k"])
            #expect((whole.status, whole.accepted) == (200, 1))
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 1)
        }
    }
}

@Suite struct `The gate of ingest` {
    @Test func `lets so many requests and bytes in, and the next when one has left`() async throws {
        let gate = IngestGate(requests: 2, bytes: 100)
        var first: IngestGate.Pass? = try gate.enter()
        let second = try gate.enter()
        #expect(throws: (any Error).self) { try gate.enter() }
        withExtendedLifetime(first) {}
        first = nil
        await gate.holding(100) {
            let error = #expect(throws: (any Error).self) { try gate.enter() }
            #expect("\(error as Any)".contains("retryAfter: Optional(2)"))
        }
        _ = try gate.enter()
        #expect(gate.load == (1, 0))
        withExtendedLifetime(second) {}
    }
}
