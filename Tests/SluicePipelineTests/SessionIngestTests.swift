import SluiceCore
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
        #expect(await client.session.batches.count == Limits.ingestWindow)
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
        while await client.session.ingesting != nil, !Task.isCancelled { await Task.yield() }
        intake.open()
        #expect(intake.taken == 0 && client.told.isEmpty, "\(client.told)")
    }

    @Test func `says again what was refused, as long as its client may not have heard it`() async throws {
        let clients = NotedFile()
        let first = try await SessionClient(NoWrites(), clients: clients, ingest: RefusingIntake())
        try await first.ingest(1)
        await first.until { $0 == ["ingest 1 refused 1"] }
        // The acknowledgement was lost; the welcome does not say it in its place.
        let second = try await SessionClient(NoWrites(), clients: clients, ingest: RefusingIntake())
        let welcome = try #require(second.channel.messages.first?.welcome)
        #expect(welcome.ingest == 0 && welcome.ingestTaken == 1)
        try await second.ingest(1)
        await second.until { $0 == ["ingest 1 refused 1"] }
        #expect(clients.noted == [1])
    }
}

/// Takes nothing until it is opened.
private final class ClosedIntake: IngestIntake {
    private let state = Mutex((isOpen: false, tries: 0, taken: 0))

    var tries: Int { state.withLock { $0.tries } }
    var taken: Int { state.withLock { $0.taken } }
    func open() { state.withLock { $0.isOpen = true } }

    func submit(_ objects: [ObjectChange], from sender: String, plan: SessionPlan, schema: AppSchema) async throws -> [RejectedWrite] {
        try state.withLock { state in
            state.tries += 1
            guard state.isOpen else { throw SluiceError(.pluginFailed, "The rules are away.") }
            state.taken += 1
        }
        return []
    }

    func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>] { [] }
}

/// Refuses everything.
private struct RefusingIntake: IngestIntake {
    func submit(_ objects: [ObjectChange], from sender: String, plan: SessionPlan, schema: AppSchema) async throws -> [RejectedWrite] {
        objects.map { RejectedWrite(changeset: 0, object: $0.object, code: .writeNotAllowed, reason: "No.", values: $0.values) }
    }

    func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>] { [] }
}

/// One client file that remembers its batches.
private final class NotedFile: ClientRegistry {
    private let state = Mutex((noted: [UInt64](), answers: [UInt64: [UInt8]]()))

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
        state.withLock { state in
            state.noted.append(number)
            state.answers[number] = answer
        }
    }
    func ingestAnswer(id: ClientID, number: UInt64) async throws -> [UInt8]? { state.withLock { $0.answers[number] } }
    func openCompensations(id: ClientID, after last: UInt64) async throws -> [(id: UInt64, writes: [RejectedWrite])] { [] }
    func acknowledgeCompensations(id: ClientID, upTo: UInt64) async throws {}
}
