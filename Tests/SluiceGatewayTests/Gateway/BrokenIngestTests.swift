import HTTPTypes
import Hummingbird
import NIOCore
import SluiceCore
import SluiceGateway
import SluicePipeline
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(3))) struct `A body whose rest cannot be taken just now` {
    @Test(arguments: [(ErrorCode.logFull, 429), (.logUnreachable, 503), (.logDelivery, 503), (.shuttingDown, 503)])
    func `has what came before counted, and says when to come again`(code: ErrorCode, status: Int) async throws {
        let type = ObjectType(
            name: "Reading", kind: .asymmetric,
            properties: [
                Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "store", type: .string),
                Property(id: 3, name: "value", type: .double),
            ])
        let head = HTTPRequest(
            method: .post, scheme: nil, authority: nil, path: "/v1/ingest/Reading", headerFields: [.contentType: "application/x-ndjson"])
        let request = Request(head: head, body: RequestBody(buffer: ByteBuffer(bytes: Readings.lines(2_500))))
        let run = try IngestRun(
            try IngestForm(request), type: type, schema: Schema([type]), rights: try IngestRights(.open, type: type),
            intake: TiredIntake(code: code), gate: IngestGate())
        let told = Mutex<[Int]>([])
        try await run.run(request.body) { results in told.withLock { $0 += results.map(\.line) } }
        #expect(run.summary.accepted == 1_000 && run.summary.rejected == 0 && run.summary.failure?.code == code)
        #expect(told.withLock(\.self) == Array(1...1_000))
        let response = IngestAnswer.response(run.summary)
        #expect(response.status.code == status && response.headers[.retryAfter] == "2")
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

/// Takes one piece, and no other.
private final class TiredIntake: IngestIntake {
    let code: ErrorCode
    private let pieces = Atomic(0)

    init(code: ErrorCode) { self.code = code }

    func submit(
        _ objects: [ObjectChange], from sender: String, plan: SessionPlan, schema: AppSchema
    ) async throws -> [RejectedWrite] { [] }

    func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>] {
        guard pieces.wrappingAdd(1, ordering: .relaxed).oldValue == 0 else { throw SluiceError(code, "Enough.") }
        return records.map { _ in .success(nil) }
    }
}
