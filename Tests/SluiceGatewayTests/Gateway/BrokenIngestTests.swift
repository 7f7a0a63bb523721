import Foundation
import GatewayTestSupport
import HTTPTypes
import Hummingbird
import NIOCore
import SluiceCore
import SluiceGateway
import SluicePipeline
import SluicePorts
import SluiceValues
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(3))) struct `A body whose rest cannot be taken just now` {
    @Test(arguments: [(ErrorCode.logFull, 429), (.logUnreachable, 503), (.logDelivery, 503), (.shuttingDown, 503)])
    func `has what came before counted, and says when to come again`(code: ErrorCode, status: Int) async throws {
        let (type, request) = (Self.type, Self.request)
        let schema = Schema([type])
        let run = try IngestRun(
            try IngestForm(request), type: type, schema: schema, rights: IngestRights(.open, type: type, schema: schema),
            review: RightsReview(environment: SystemEnvironment()) { IngestRights(.open, type: type, schema: schema) },
            intake: TiredIntake(code: code), gate: IngestGate())
        let told = Mutex<[Int]>([])
        try await run.run(request.body) { results in told.withLock { $0 += results.map(\.line) } }
        #expect(run.summary.accepted == 1_000 && run.summary.rejected == 0 && run.summary.failure?.code == code)
        #expect(told.withLock(\.self) == Array(1...1_000))
        let response = IngestAnswer.response(run.summary)
        #expect(response.status.code == status && response.headers[.retryAfter] == "2")
    }

    private static let type = ObjectType(
        name: "Reading", kind: .asymmetric,
        properties: [
            Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "store", type: .string),
            Property(id: 3, name: "value", type: .double),
        ])

    /// Of 2,500 objects.
    private static var request: Request {
        let head = HTTPRequest(
            method: .post, scheme: nil, authority: nil, path: "/v1/ingest/Reading", headerFields: [.contentType: "application/x-ndjson"])
        return Request(head: head, body: RequestBody(buffer: ByteBuffer(bytes: Readings.lines(2_500))))
    }

    /// A body of three pieces, each of which takes longer than its sender's rights are good for, and so the questions in between.
    private static func run(
        _ environment: HurriedTime, asking ask: @escaping @Sendable (Int) throws -> Void
    ) async throws -> (summary: IngestSummary, asked: Int) {
        let (type, questions) = (type, Questions())
        let schema = Schema([type])
        let review = RightsReview(environment: environment) {
            try ask(questions.next())
            return IngestRights(.open, type: type, schema: schema)
        }
        let run = try IngestRun(
            try IngestForm(request), type: type, schema: schema, rights: IngestRights(.open, type: type, schema: schema), review: review,
            intake: SlowIntake(environment: environment), gate: IngestGate())
        try await run.run(request.body) { _ in }
        return (run.summary, questions.count)
    }

    @Test(arguments: [ErrorCode.pluginUnavailable, .pluginCrashed, .postgresUnreachable])
    func `goes on when it is known again within ten seconds what its sender may`(code: ErrorCode) async throws {
        let (summary, asked) = try await Self.run(HurriedTime()) { if $0 == 1 || $0 == 3 { throw SluiceError(code, "Away.") } }
        #expect(summary.failure == nil && summary.accepted == 2_500 && asked >= 4)
    }

    @Test func `ends when it is not known for longer what its sender may, and at once when they may not go on`() async throws {
        let time = HurriedTime()
        let (away, asked) = try await Self.run(time) { _ in throw SluiceError(.pluginUnavailable, "Away.") }
        #expect(away.failure?.code == .pluginUnavailable && away.accepted == 1_000 && asked > 5)
        #expect((9_000_000_000...10_000_000_000).contains(time.monotonicNanoseconds() - SlowIntake.nanoseconds))
        let (refused, times) = try await Self.run(HurriedTime()) { _ in throw SluiceError(.permissionDenied, "No more.") }
        #expect(refused.failure?.code == .permissionDenied && refused.accepted == 1_000 && times == 1)
    }

    @Test func `is in the table once when it is sent again after PostgreSQL went away in its middle`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            try await gateway.sql(
                """
                CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS
                    $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;
                CREATE TRIGGER leave BEFORE INSERT ON readings FOR EACH ROW WHEN (NEW._id LIKE '%1500') EXECUTE FUNCTION leave();
                """)
            let answer = try await gateway.ingest(Readings.lines(3_000), token: token)
            // Pieces are at least a thousand lines, as they come from the socket.
            let first = answer.accepted ?? 0
            #expect((answer.status, answer.json["complete"]) == (503, false) && (1_000...1_500).contains(first), "\(answer)")
            #expect(answer.headers["retry-after"] == "2")
            let lines = try await gateway.ingest(
                Readings.lines(3_000, prefix: "s"), token: token, ["Accept": "application/x-ndjson"]
            ).lines
            let second = lines.count - 1
            #expect((1_000...1_500).contains(second) && lines.last?["summary"]?["accepted"] == .int(Int64(second)))
            #expect(lines.last?["summary"]?["code"] == .int(Int64(ErrorCode.postgresUnreachable.rawValue)), "\(lines.last?.text ?? "")")
            #expect(try await gateway.count("SELECT count(*) FROM readings") == Int64(first + second))
            try await gateway.sql("DROP TRIGGER leave ON readings")
            let again = try await gateway.ingest(Readings.lines(3_000), token: token)
            #expect((again.status, again.accepted) == (200, 3_000))
            #expect(try await gateway.count("SELECT count(*) FROM readings WHERE _id LIKE 'r%'") == 3_000)
        }
    }
}

@Suite(.timeLimit(.minutes(3))) struct `A body that comes slowly` {
    @Test(arguments: ["disabled", "no key"])
    func `is refused from the moment on that its sender may not go on`(end: String) async throws {
        try await RunningGateway.with { gateway in
            let account = try await gateway.account()
            let key = try await gateway.request(
                "POST", "/api/client/v2.0/auth/api_keys", #"{ "name": "slow" }"#, token: account.refreshToken)
            let secret = end == "no key" ? try #require(key.json["key"]?.string, "\(key)") : account.token
            let body = try await SlowBody.begin(gateway.port, token: secret)
            let answer = Task { try await body.answer() }  // Unstructured because: the answer comes while the body is sent.
            try await body.send(Readings.lines(1_000, prefix: "a"))
            #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 1_000))
            let sql = end == "disabled" ? "UPDATE sluice.user_account SET disabled = true" : "DELETE FROM sluice.api_key"
            try await gateway.sql(sql)
            var piece = 0
            _ = try await eventually(within: .seconds(60), every: .milliseconds(250)) {
                // Nobody may be listening any more.
                try? await body.send(Readings.lines(1_000, prefix: "b\(piece)-"))
                piece += 1
                return body.isAnswered
            }
            let summary = try await answer.value
            let code = end == "disabled" ? ErrorCode.userDisabled : .badAuthentication
            #expect(summary["code"] == .int(Int64(code.rawValue)) && summary["complete"] == false, "\(summary.text)")
            #expect(summary["accepted"]?.int == (try await gateway.count("SELECT count(*) FROM readings")))
        }
    }
}

/// A request by hand whose body comes piece by piece, and whose answer comes meanwhile.
private final class SlowBody: Sendable {
    private let socket: LocalSocket
    private let end = Atomic(false)
    var isAnswered: Bool { end.load(ordering: .relaxed) }

    private init(_ socket: LocalSocket) { self.socket = socket }

    static func begin(_ port: Int, token: String) async throws -> SlowBody {
        try await LocalSocket.onThread {
            let body = SlowBody(try LocalSocket(port: port, patience: 60))
            let head =
                "POST /v1/ingest/Reading HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(token)\r\nTransfer-Encoding: chunked\r\n"
                + "Content-Type: application/x-ndjson\r\nAccept: application/x-ndjson\r\n\r\n"
            try body.socket.write(Array(head.utf8))
            return body
        }
    }

    func send(_ bytes: [UInt8]) async throws {
        let chunk = Array((String(bytes.count + 1, radix: 16) + "\r\n").utf8) + bytes + Array("\n\r\n".utf8)
        try await LocalSocket.onThread { try self.socket.write(chunk) }
    }

    /// Its closing line.
    func answer() async throws -> JSON {
        defer { end.store(true, ordering: .relaxed) }
        return try await LocalSocket.onThread {
            var line: [UInt8] = []
            while true {
                line += try self.socket.read(1)
                guard line.last == UInt8(ascii: "\n") else { continue }
                if line.starts(with: Array(#"{"summary""#.utf8)) { return try JSON.parse(line)["summary"] ?? .null }
                line = []
            }
        }
    }
}

/// Takes bodies by HTTP, and nothing of devices.
private protocol BodyIntake: IngestIntake {}

extension BodyIntake {
    func submit(
        _ objects: [ObjectChange], from sender: String, permissions: SessionPermissions
    ) async throws -> [WriteRejection] { [] }

    func keep(_ refused: [WriteRejection], from sender: String, schema: Schema) async throws {}
}

/// Takes one piece, and no other.
private final class TiredIntake: BodyIntake {
    let code: ErrorCode
    private let pieces = Atomic(0)

    init(code: ErrorCode) { self.code = code }

    func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>] {
        guard pieces.wrappingAdd(1, ordering: .relaxed).oldValue == 0 else { throw SluiceError(code, "Enough.") }
        return records.map { _ in .success(nil) }
    }
}

/// Counts what is asked.
private final class Questions: Sendable {
    private let asked = Atomic(0)

    var count: Int { asked.load(ordering: .relaxed) }
    /// - Returns: which it is, from 1.
    func next() -> Int { asked.wrappingAdd(1, ordering: .relaxed).newValue }
}

/// Time that passes by sleeping, which takes none.
private final class HurriedTime: SluiceCore.Environment {
    private let nanoseconds = Atomic<UInt64>(0)

    func wallMilliseconds() -> Int64 { Int64(monotonicNanoseconds() / 1_000_000) }
    func monotonicNanoseconds() -> UInt64 { nanoseconds.load(ordering: .relaxed) }
    func random() -> UInt64 { 4 }
    func sleep(nanoseconds duration: UInt64) async throws { nanoseconds.wrappingAdd(duration, ordering: .relaxed) }
}

/// Takes everything, and longer for it than the sender's rights are good for.
private struct SlowIntake: BodyIntake {
    static let nanoseconds = RightsReview.interval + 1
    let environment: HurriedTime

    func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>] {
        try await environment.sleep(nanoseconds: Self.nanoseconds)
        return records.map { _ in .success(nil) }
    }
}
