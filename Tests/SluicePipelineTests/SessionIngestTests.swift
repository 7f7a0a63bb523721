import Logging
import SluiceCore
import SluiceEmbeddedLog
import SluicePorts
import SluiceValues
import SluiceWire
import Synchronization
import Testing

@testable import SluicePipeline

/// Asymmetric objects of a session, and what happens beside them.
@Suite(.timeLimit(.minutes(1))) struct `A session that ingests` {
    @Test func `goes on while its objects cannot be taken, and acknowledges them once when they can`() async throws {
        let intake = ClosedIntake()
        let client = try await SessionClient(NoWrites(), ingest: intake)
        try await client.subscribe(1)
        await client.until { $0.contains("end 1") }
        try await client.ingest(1)
        try await client.ingest(2)
        try await client.upload(1)
        await client.until { $0.contains { $0.hasPrefix("ack 1") } }
        while intake.tries < 3, !Task.isCancelled { await Task.yield() }
        #expect(client.told.allSatisfy { !$0.hasPrefix("ingest") && !$0.hasPrefix("error") }, "\(client.told)")
        intake.open()
        await client.until { $0.contains("ingest 2 refused 0") }
        #expect(client.told.filter { $0.hasPrefix("ingest") } == ["ingest 1 refused 0", "ingest 2 refused 0"])
        #expect(intake.taken == 2)
    }

    @Test func `reads no further when its client sends more batches than it may`() async throws {
        let intake = ClosedIntake()
        let client = try await SessionClient(NoWrites(), ingest: intake)
        for number in 1...UInt64(Limits.ingestWindow) { try await client.ingest(number) }
        // Unstructured because: it ends when the intake opens.
        let further = Task { try await client.ingest(UInt64(Limits.ingestWindow) + 1) }
        while intake.tries < 2, !Task.isCancelled { await Task.yield() }
        #expect(await client.session.machine.ingest.batches.count == Limits.ingestWindow)
        intake.open()
        try await further.value
        await client.until { $0.contains("ingest \(Limits.ingestWindow + 1) refused 0") }
        #expect(intake.taken == Limits.ingestWindow + 1)
    }

    @Test func `ends what it tries when it ends`() async throws {
        let intake = ClosedIntake()
        let client = try await SessionClient(NoWrites(), ingest: intake)
        try await client.ingest(1)
        while intake.tries == 0, !Task.isCancelled { await Task.yield() }
        await client.session.closed()
        while await client.session.tasks.taking != nil, !Task.isCancelled { await Task.yield() }
        intake.open()
        #expect(intake.taken == 0 && client.told.isEmpty, "\(client.told)")
    }

    @Test func `says again what was refused, as long as its client may not have heard it`() async throws {
        let clients = NotedFile()
        let first = try await SessionClient(NoWrites(), clients: clients, ingest: RejectingIntake())
        try await first.ingest(1)
        await first.until { $0 == ["ingest 1 refused 1"] }
        // The acknowledgement was lost; the welcome does not say it in its place.
        let second = try await SessionClient(NoWrites(), clients: clients, ingest: RejectingIntake())
        let welcome = try #require(second.channel.messages.first?.welcome)
        #expect(welcome.ingest == 0 && welcome.ingestTaken == 1)
        try await second.ingest(1)
        await second.until { $0 == ["ingest 1 refused 1"] }
        #expect(clients.noted == [1])
    }

    @Test func `takes objects once, however often it has to try to note that`() async throws {
        let (intake, clients) = (RejectingIntake(), NotedFile(failures: 5))
        let client = try await SessionClient(NoWrites(), clients: clients, ingest: intake)
        try await client.ingest(1)
        await client.until { $0 == ["ingest 1 refused 1"] }
        #expect(intake.taken == 1 && intake.kept == 1 && clients.tries == 6 && clients.noted == [1])
    }

    @Test func `takes objects once, however often it has to try to keep those that are refused`() async throws {
        let (intake, clients) = (RejectingIntake(failures: 3), NotedFile())
        let client = try await SessionClient(NoWrites(), clients: clients, ingest: intake)
        try await client.ingest(1)
        await client.until { $0 == ["ingest 1 refused 1"] }
        #expect(intake.taken == 1 && intake.kept == 1 && clients.noted == [1])
    }
}

/// Asymmetric objects of a reader in the gateway's process, which come with the changesets of its client.
@Suite(.timeLimit(.minutes(1))) struct `A session that ingests changesets` {
    private static func order(_ key: String, of changeset: UInt64) -> (changeset: UInt64, change: ObjectChange) {
        (changeset, ObjectChange(object: ObjectKey(type: "Order", key: .string(key)), kind: .create, values: ["size": .int(1)]))
    }

    @Test func `reports rejected objects as compensating writes, one for each changeset, until they are acknowledged`() async throws {
        let clients = NotedFile(failures: 2)
        let intake = RejectingIntake()
        let client = try await SessionClient(NoWrites(), clients: clients, ingest: intake)
        let objects = [Self.order("a", of: 3), Self.order("b", of: 3), Self.order("a", of: 8)]
        await client.session.ingest(objects, number: 9)
        await client.until { $0 == ["compensation 3", "compensation 8", "ingest 9 refused 0"] }
        #expect(intake.taken == 1 && intake.kept == 1 && clients.noted == [9])
        let writes = client.channel.messages.map { $0.compensation.writes.map(\.changeset) }
        #expect(writes.filter { !$0.isEmpty } == [[3, 3], [8]])
        // A later session has them again, and does not ingest the batch again.
        let second = try await SessionClient(NoWrites(), clients: clients, ingest: intake)
        await second.session.ingest(objects, number: 9)
        await second.until { $0 == ["compensation 3", "compensation 8", "ingest 9 refused 0"] }
        #expect(intake.taken == 1 && clients.noted == [9])
    }
}

/// Objects of a device on their way into the log.
@Suite(.timeLimit(.minutes(1))) struct `The way into the log` {
    private static let type = ObjectType(
        name: "Reading", kind: .asymmetric,
        properties: [Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "note", type: .string)])
    private static let schema = AppSchema(version: 1, schema: Schema([type]), fields: QueryableFields(), isDevelopment: false)

    private static func reading(_ key: String, bytes: Int) -> ObjectChange {
        ObjectChange(
            object: ObjectKey(type: "Reading", key: .string(key)), kind: .create,
            values: ["note": .string(String(repeating: "x", count: bytes))])
    }

    private static func intake(_ log: any MessageLog, _ letters: KeptLetters = KeptLetters()) async throws -> LogIntake {
        _ = try await log.prepare([TopicSpec(name: "app.ingest.Reading", partitions: 2)])
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        return LogIntake(
            log: log, topics: Topics(app: "app"), refusals: IngestRejections(store: letters, observer: letters, logger: quiet)
        ) { _ in 2 }
    }

    @Test func `is closed to those alone that are larger than the log takes`() async throws {
        let (log, letters) = (SmallLog(bytes: 500), KeptLetters())
        let intake = try await Self.intake(log, letters)
        let objects = [Self.reading("a", bytes: 10), Self.reading("large", bytes: 600), Self.reading("b", bytes: 10)]
        let permissions = SessionPermissions(SessionPlan(types: ["Reading": .open]), schema: Self.schema)
        let refused = try await intake.submit(objects, from: "device/ann/7", permissions: permissions)
        #expect(refused.map(\.object.key) == [.string("large")] && refused.map(\.code) == [.logRecordTooLarge], "\(refused)")
        #expect(refused.first?.reason.contains("Reading") == true && refused.first?.reason.contains("app.ingest") == false, "\(refused)")
        #expect(log.stored == ["a", "b"])
        try await intake.keep(refused, from: "device/ann/7", schema: Self.schema.schema)
        #expect(letters.kept == ["705 device/ann/7"])
    }

    @Test func `tells a sender by HTTP of those alone that are larger than the log takes`() async throws {
        let log = SmallLog(bytes: 500)
        let records = [("a", 10), ("large", 600), ("b", 10)].map { key, bytes in
            Array(#"{"_id": "\#(key)", "note": "\#(String(repeating: "x", count: bytes))"}"#.utf8)
        }
        let results = try await Self.intake(log).submit(records, type: Self.type, schema: Self.schema.schema, rights: nil)
        let codes: [ErrorCode?] = results.map { if case .failure(let error) = $0 { error.code } else { nil } }
        try #require(codes == [nil, .logRecordTooLarge, nil])
        #expect(try results[0].get() != nil && results[2].get() != nil && log.stored == ["a", "b"])
    }
}

/// Refuses batches with a record that is larger than a bound, when it has taken those in front of it.
private final class SmallLog: MessageLog {
    private let log = EmbeddedLog(environment: SystemEnvironment())
    private let bytes: Int
    private let keys = Mutex<Set<String>>([])

    init(bytes: Int) { self.bytes = bytes }

    /// The keys of its records.
    var stored: [String] { keys.withLock { $0.sorted() } }

    func place(_ batch: LogBatch) async throws -> [Int64] {
        for entry in batch.entries {
            guard entry.value.count <= bytes else {
                throw SluiceError(.logRecordTooLarge, "A record for app.ingest.Reading[1] is too large.")
            }
            let text = String(decoding: batch.arena[entry.value], as: UTF8.self)
            let key = try JSON.parse(text)["_id"]?.string ?? text
            keys.withLock { _ = $0.insert(key) }
        }
        return try await log.place(batch)
    }

    func prepare(_ topics: [TopicSpec]) async throws -> [Int32] { try await log.prepare(topics) }
    func append(_ batch: LogBatch) async throws -> [LogPartition: Int64] { try await log.append(batch) }
    func ends(of partitions: [LogPartition]) async throws -> [LogPartition: Int64] { try await log.ends(of: partitions) }
    func ranges(of partitions: [LogPartition]) async throws -> [LogPartition: Range<Int64>] { try await log.ranges(of: partitions) }
    func makeReader() async throws -> any LogReader { try await log.makeReader() }
}

/// Keeps refused objects.
private final class KeptLetters: IngestStore, IngestObserver {
    private let letters = Mutex<[String]>([])

    /// The code and the sender of each.
    var kept: [String] { letters.withLock { $0 } }

    func commit(accepted: [AcceptedObjects], refused: [RejectedObject]) async throws -> IngestTally {
        letters.withLock { $0 += refused.map { "\($0.code.rawValue) \($0.record.sender ?? "")" } }
        return IngestTally(refused: refused.count)
    }
    func offsets(of partitions: [LogPartition]) async throws -> [LogPartition: Int64] { [:] }
    func commit(_ outcome: IngestOutcome) async throws -> IngestTally { IngestTally() }
    func rewind(_ partition: LogPartition, from offset: Int64) async throws {}
    func claim(topic: String, partitions: Int32) async throws -> Set<Int32> { [] }
    func release(topic: String) async {}
    func took(_ type: String, _ tally: IngestTally) {}
    func lags(_ type: String, records: Int64) {}
}

/// Takes nothing until it is opened.
private final class ClosedIntake: IngestIntake {
    private let state = Mutex((isOpen: false, tries: 0, taken: 0))

    var tries: Int { state.withLock { $0.tries } }
    var taken: Int { state.withLock { $0.taken } }
    func open() { state.withLock { $0.isOpen = true } }

    func submit(_ objects: [ObjectChange], from sender: String, permissions: SessionPermissions) async throws -> [WriteRejection] {
        try state.withLock { state in
            state.tries += 1
            guard state.isOpen else { throw SluiceError(.pluginFailed, "The rules are away.") }
            state.taken += 1
        }
        return []
    }

    func keep(_ refused: [WriteRejection], from sender: String, schema: Schema) async throws {}

    func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>] { [] }
}

/// Refuses everything, and cannot keep it so many times.
private final class RejectingIntake: IngestIntake {
    private let state: Mutex<(failures: Int, taken: Int, kept: Int)>

    init(failures: Int = 0) { state = Mutex((failures: failures, taken: 0, kept: 0)) }

    var taken: Int { state.withLock { $0.taken } }
    var kept: Int { state.withLock { $0.kept } }

    func submit(_ objects: [ObjectChange], from sender: String, permissions: SessionPermissions) async throws -> [WriteRejection] {
        state.withLock { $0.taken += 1 }
        return objects.map { WriteRejection(changeset: 0, object: $0.object, code: .writeNotAllowed, reason: "No.", values: $0.values) }
    }

    func keep(_ refused: [WriteRejection], from sender: String, schema: Schema) async throws {
        try state.withLock { state in
            guard state.failures == 0 else {
                state.failures -= 1
                throw SluiceError(.postgresUnreachable, "PostgreSQL is away.")
            }
            state.kept += 1
        }
    }

    func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>] { [] }
}

/// One client replica that remembers its batches, and cannot so many times.
private final class NotedFile: ClientRegistry {
    private struct State {
        var failures: Int
        var tries = 0
        var noted: [UInt64] = []
        var answers: [UInt64: [UInt8]] = [:]
        /// The rejected objects of changesets.
        var compensations: [UInt64: [WriteRejection]] = [:]
    }
    private let state: Mutex<State>

    init(failures: Int = 0) { state = Mutex(State(failures: failures)) }

    var tries: Int { state.withLock { $0.tries } }
    var noted: [UInt64] { state.withLock { $0.noted } }

    private var file: ClientFile {
        state.withLock { state in
            ClientFile(
                id: ClientID(rawValue: 7), secret: [1], changeset: 0, ingest: state.noted.max() ?? 0,
                refusedIngest: state.answers.keys.min(), session: 1)
        }
    }

    func allot(user: String) async throws -> ClientFile { file }
    func open(id: ClientID, secret: [UInt8], user: String, oldestBase: LSN, seen: SeenHistory) async throws -> ClientFile { file }
    func recordIngest(id: ClientID, number: UInt64, answer: [UInt8]?) async throws {
        try state.withLock { state in
            state.tries += 1
            guard state.tries > state.failures else { throw SluiceError(.postgresUnreachable, "PostgreSQL is away.") }
            state.noted.append(number)
            state.answers[number] = answer
        }
    }
    func recordIngest(
        id: ClientID, number: UInt64, rejected: [WriteRejection]
    ) async throws -> [(id: UInt64, writes: [WriteRejection])] {
        try state.withLock { state in
            state.tries += 1
            guard state.tries > state.failures else { throw SluiceError(.postgresUnreachable, "PostgreSQL is away.") }
            state.noted.append(number)
            state.compensations = Dictionary(grouping: rejected, by: \.changeset)
            return Self.sorted(state.compensations)
        }
    }
    func ingestAnswer(id: ClientID, number: UInt64) async throws -> [UInt8]? { state.withLock { $0.answers[number] } }
    func openCompensations(id: ClientID, after last: UInt64) async throws -> [(id: UInt64, writes: [WriteRejection])] {
        state.withLock { Self.sorted($0.compensations.filter { $0.key > last }) }
    }
    private static func sorted(_ writes: [UInt64: [WriteRejection]]) -> [(id: UInt64, writes: [WriteRejection])] {
        writes.sorted { $0.key < $1.key }.map { (id: $0.key, writes: $0.value) }
    }
    func acknowledgeCompensations(id: ClientID, upTo: UInt64) async throws {}
    func keepReported(id: ClientID, _ writes: [WriteRejection]) async throws {}
}
