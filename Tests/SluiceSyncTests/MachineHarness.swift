import SluiceCore
import SluiceReplica
import SluiceSync
import SluiceWire

/// A machine with its clock, for tests that say each input and look at each action.
struct MachineHarness {
    var machine: SyncStateMachine
    var now: UInt64 = 10_000
    /// The random number of each input.
    var random: UInt64 = 0
    var actions: [SyncAction] = []

    init(reset: ResetMode = .recover, timing: SyncTiming = SyncTiming()) {
        machine = SyncStateMachine(
            configuration: SyncConfiguration(url: "ws://gateway", app: "app", timing: timing, reset: reset), schema: clientTypes)
    }

    @discardableResult
    mutating func feed(_ input: SyncInput, after milliseconds: UInt64 = 0) -> [SyncAction] {
        now += milliseconds
        actions = machine.handle(input, now: now, random: random)
        return actions
    }

    var connection: UInt64 { machine.connection }

    @discardableResult
    mutating func receive(_ message: ServerMessage) -> [SyncAction] { feed(.received(connection, message)) }

    /// Up to Welcome.
    mutating func open(_ state: LocalState = LocalState(), welcome: ServerMessage.Welcome? = nil) {
        if machine.phase == .idle { feed(.start(token: "t")) }
        feed(.connected(connection))
        feed(.loaded(connection, state))
        receive(.welcome(welcome ?? Self.welcome()))
    }

    static func welcome(
        changeset: UInt64 = 0, ingest: UInt64 = 0, ingestTaken: UInt64 = 0, maximumMessageBytes: Int = 1 << 20
    ) -> ServerMessage.Welcome {
        ServerMessage.Welcome(
            identity: ReplicaIdentity(client: ClientID(rawValue: 7), secret: [1]), schema: serverTypes, changeset: changeset,
            ingest: ingest, ingestTaken: ingestTaken, maximumMessageBytes: maximumMessageBytes)
    }

    mutating func pending(_ sets: [StoredSubscriptionSet], _ changesets: [Changeset] = [], ingest: IngestBatch? = nil) {
        feed(.pending(connection, LocalPending(sets: sets, changesets: changesets, ingest: ingest)))
    }

    mutating func bootstrap(_ version: UInt64, lsn: UInt64 = 50) {
        receive(.bootstrapBegin(version: version, rows: 0))
        receive(.bootstrapEnd(version: version, lsn: LSN(rawValue: lsn), types: [0]))
    }

    /// Open, subscribed to version 1 and complete, with nothing waiting.
    static func settled() -> MachineHarness {
        var harness = MachineHarness()
        harness.open()
        harness.pending([set(1, ["north"])])
        harness.bootstrap(1)
        return harness
    }

    static func change(_ number: UInt64, key: Int64 = 1, value: String = "v") -> Changeset {
        let object = ObjectKey(type: "Item", key: .int(key))
        let change = ObjectChange(object: object, kind: .create, values: ["store": .string("north"), "value": .string(value)])
        return Changeset(number: number, time: .zero, base: .zero, changes: [change])
    }

    // MARK: What the last input brought

    var sent: [PBClientMessage.OneOf_Kind] {
        actions.compactMap { if case .send(_, let message) = $0 { message.kind } else { nil } }
    }

    var subscribed: [UInt64] { sent.compactMap { if case .subscribe(let set) = $0 { set.version } else { nil } } }

    var uploaded: [UInt64] {
        sent.flatMap { kind -> [UInt64] in if case .upload(let upload) = kind { upload.changesets.map(\.number) } else { [] } }
    }

    var reports: [SyncReport] { actions.compactMap { if case .report(let report) = $0 { report } else { nil } } }
    var queries: [LocalQuery] { actions.compactMap { if case .read(_, let query) = $0 { query } else { nil } } }
    var hasConnected: Bool { actions.contains { if case .connect = $0 { true } else { false } } }
    var hasClosed: Bool { actions.contains { if case .close = $0 { true } else { false } } }
    var forgotten: ReplicaReset? { actions.lazy.compactMap { if case .forgetServer(let reset) = $0 { reset } else { nil } }.first }
    var asksForToken: Bool { actions.contains { if case .refreshToken = $0 { true } else { false } } }
    var finished: [UInt64: SluiceError?] {
        var finished: [UInt64: SluiceError?] = [:]
        for case .finish(let id, let error) in actions { finished[id] = .some(error) }
        return finished
    }

    /// Milliseconds until the next attempt; nil when none is planned.
    var waiting: UInt64? { if case .waiting(let until) = machine.phase { until - now } else { nil } }
}
