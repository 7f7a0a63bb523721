import Logging
import SluiceCore
import SluiceEmbeddedLog
import SluicePorts
import SluiceWire
import Synchronization

@testable import SluicePipeline

/// What sessions of tests work with: nobody else is there, nobody reads the log, which is empty, and the rules allow everything.
enum SessionFixture {
    /// - Parameter layout: where the schema's classes lie in the log.
    static func services(
        authority: any SchemaAuthority = OrderAuthority(), store: any WriteStore = NoWrites(), clients: any ClientRegistry = OneFile(),
        layout: Partitioning? = nil, rules: any Rules = OpenRules(), snapshots: any SnapshotStore = EmptyTables(),
        log: EmbeddedLog = EmbeddedLog(environment: SystemEnvironment()), ingest: any IngestIntake = NoIngest()
    ) -> SessionServices {
        let (time, frames) = (SystemEnvironment(), PlainFrames())
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let fanout = Fanout(authority: authority, frames: frames, environment: time, logger: quiet)
        let feed = Feed(log: log, topics: Topics(app: "app"), fanout: fanout, environment: time, logger: quiet)
        let fixed = FixedLayout(layout: layout ?? Partitioning(schema: authority.current(), topics: Topics(app: "app"), partitions: [:]))
        return SessionServices(
            access: SessionServices.Access(authenticator: Ann(), authority: authority, rules: rules),
            storage: SessionServices.Storage(
                clients: clients, snapshots: snapshots, committer: Committer(store: store, rules: rules, environment: time), ingest: ingest),
            delivery: SessionServices.Delivery(
                feed: feed, fanout: fanout, resume: LogResume(log: log, feed: feed, environment: time, logger: quiet), layout: fixed,
                frames: frames),
            environment: time, logger: quiet)
    }
}

/// One user, for an hour.
private struct Ann: Authenticator {
    func authenticate(token: String) async throws -> Authenticated {
        Authenticated(user: UserContext(id: "ann"), expires: SystemEnvironment().wallMilliseconds() + 3_600_000)
    }
    func current(_ user: Authenticated) async throws -> UserContext { user.user }
}

/// One client replica, of which so many changesets have taken effect, in a database that has all that it has seen, or may not.
struct OneFile: ClientRegistry {
    var changeset: UInt64 = 0
    var isProven = false

    private var file: ClientFile {
        ClientFile(
            id: ClientID(rawValue: 7), secret: [1], changeset: changeset, ingest: 0, session: 1,
            proven: ProvenHistory(position: isProven, point: isProven))
    }

    func allot(user: String) async throws -> ClientFile { file }
    func open(id: ClientID, secret: [UInt8], user: String, oldestBase: LSN, seen: SeenHistory) async throws -> ClientFile { file }
    func recordIngest(id: ClientID, number: UInt64, answer: [UInt8]?) async throws {}
    func recordIngest(
        id: ClientID, number: UInt64, rejected: [WriteRejection]
    ) async throws -> [(id: UInt64, writes: [WriteRejection])] { [] }
    func ingestAnswer(id: ClientID, number: UInt64) async throws -> [UInt8]? { nil }
    func openCompensations(id: ClientID, after last: UInt64) async throws -> [(id: UInt64, writes: [WriteRejection])] { [] }
    func acknowledgeCompensations(id: ClientID, upTo: UInt64) async throws {}
    func keepReported(id: ClientID, _ writes: [WriteRejection]) async throws {}
}

struct OpenRules: Rules {
    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan {
        SessionPlan(types: Dictionary(uniqueKeysWithValues: types.map { ($0, TypePlan.open) }))
    }
    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String] {
        queries.map { _ in "TRUEPREDICATE" }
    }
    func checkWrites(user: UserContext, _ writes: [ProposedWrite]) async throws -> [WriteVerdict] { writes.map { _ in .allow } }
    func ingest(_ objects: ObjectRows) async throws -> [IngestVerdict]? { nil }
}

struct FixedLayout: LayoutProvider {
    let layout: Partitioning
    func layout(of schema: AppSchema) async throws -> Partitioning { layout }
}

/// Empty tables whose first `blind` snapshots do not see transaction 110 yet; each begins when `wait` returns.
final class EmptyTables: SnapshotStore {
    let taken = Atomic<Int>(0)
    let blind: Int
    private let wait: @Sendable () async -> Void

    init(blind: Int = 0, wait: @escaping @Sendable () async -> Void = {}) { (self.blind, self.wait) = (blind, wait) }

    func read(_ queries: [SnapshotQuery], into sink: some SnapshotSink) async throws -> SnapshotStart? {
        await wait()
        let number = taken.add(1, ordering: .relaxed).newValue
        let start = SnapshotStart(
            snapshot: TransactionSnapshot(xmin: 100, xmax: 111, running: number <= blind ? [110] : []), lsn: .zero, cluster: "c")
        guard try await sink.begin(start) else { return nil }
        if sink.needsEstimate { try await sink.expect(0) }
        return start
    }

    func stored(_ type: ObjectType, keys: [Value]) async throws -> (objects: [Value: StoredObject], start: SnapshotStart) {
        ([:], SnapshotStart(snapshot: TransactionSnapshot(xmin: 1, xmax: 1, running: []), lsn: .zero, cluster: "c"))
    }
    func hasSeen(_ witness: HistoryAnchor) async throws -> Bool { true }
    func currentLSN() async throws -> LSN { .zero }
    func place() async throws -> (lsn: LSN, point: SnapshotPoint) { (.zero, SnapshotPoint(cluster: "c", transaction: 100)) }
    func source(of type: ObjectType) throws -> String { "" }
}

struct NoIngest: IngestIntake {
    func submit(_ objects: [ObjectChange], from sender: String, permissions: SessionPermissions) async throws -> [WriteRejection] { [] }
    func keep(_ refused: [WriteRejection], from sender: String, schema: Schema) async throws {}
    func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>] { [] }
}

struct NoWrites: WriteStore {
    func transaction(_ request: WriteRequest, _ decide: WriteDecider) async throws -> WriteOutcome {
        WriteOutcome(lsn: .zero, rejected: [], compensation: nil)
    }
    func durable() async throws {}
}
