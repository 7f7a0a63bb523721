import SluiceCore
import SluiceReplica
import SluiceWire

/// The engine's only loop. All actions of one input are performed before the next input is taken. Two messages therefore never change the
/// replica at once.
struct SyncLoop {
    let engine: SyncEngine
    private var machine: SyncStateMachine
    private var links: [UInt64: SyncLink] = [:]
    /// The deadline of the earliest tick that is scheduled.
    private var armed: UInt64?
    /// The number of scheduled ticks.
    private var ticks = 0

    init(engine: SyncEngine) {
        self.engine = engine
        machine = SyncStateMachine(configuration: engine.configuration, schema: engine.replica.schema)
    }

    mutating func take(_ item: Mailbox.Item, in group: inout DiscardingTaskGroup) async {
        switch item {
        case .input(let input):
            if case .disconnected(let id, _) = input { links[id] = nil }
            if case .tick = input { ticked() }
            await handle(input, in: &group)
        case .message(let id, let bytes): await handle(read(bytes, of: id), in: &group)
        }
        arm(in: &group)
    }

    private func read(_ bytes: [UInt8], of id: UInt64) -> SyncInput {
        do throws(SluiceError) {
            return .received(id, try ServerMessage.decode(bytes, schema: machine.serverSchema))
        } catch {
            return .unreadable(id, error)
        }
    }

    private mutating func handle(_ input: SyncInput, in group: inout DiscardingTaskGroup) async {
        // A failed action on the replica ends the work on this input. Only actions that close, connect or report trouble still run.
        let actions = machine.handle(input, now: engine.now, random: engine.environment.random())
        var failure: SluiceError?
        for action in actions {
            if performNow(action, after: failure, in: &group) || failure != nil { continue }
            do throws(SluiceError) {
                try await perform(action)
            } catch {
                failure = error
            }
        }
        if let failure { await handle(.replicaFailed(failure), in: &group) }
    }

    func closeAll() { for link in links.values { link.close() } }

    /// Records a tick's arrival. A tick armed for later may arrive while the earlier one is still scheduled; then `armed` stays.
    private mutating func ticked() {
        ticks -= 1
        if ticks == 0 || engine.now >= armed ?? 0 { armed = nil }
    }

    /// Schedules a tick if the machine needs one earlier than those scheduled. The machine ignores a tick that is too early.
    private mutating func arm(in group: inout DiscardingTaskGroup) {
        guard let deadline = machine.nextDeadline, deadline < armed ?? .max else { return }
        armed = deadline
        ticks += 1
        let wait = deadline - min(deadline, engine.now)
        let (environment, mailbox) = (engine.environment, engine.mailbox)
        group.addTask {
            guard (try? await environment.sleep(nanoseconds: wait * 1_000_000)) != nil else { return }
            mailbox.post(.tick)
        }
    }

    /// Performs an action that does not touch the replica.
    /// - Parameter failure: of an earlier action of the same input. Then nothing is sent and no success is reported.
    /// - Returns: `false` for an action on the replica.
    private mutating func performNow(_ action: SyncAction, after failure: SluiceError?, in group: inout DiscardingTaskGroup) -> Bool {
        let engine = engine
        switch action {
        case .connect(let id):
            let link = SyncLink()
            links[id] = link
            let request = engine.configuration.request(token: machine.token)
            group.addTask { await engine.connect(id, request, link) }
        case .close(let id): links[id]?.close()
        case .send(let id, let message): if failure == nil { send(message, to: links[id]) }
        case .ping(let id): links[id]?.ping()
        case .refreshToken: group.addTask { await engine.fetchToken() }
        case .report(let report): if failure == nil || !report.saysDone { _ = engine.onReport(report) }
        case .finish(let id, let error): engine.waiters.finish(id, error ?? failure)
        default: return false
        }
        return true
    }

    private func send(_ message: PBClientMessage, to link: SyncLink?) {
        do throws(SluiceError) {
            link?.send(try WireProtocol.encode(message))
        } catch {
            _ = engine.onReport(.warning(error))
            link?.close()
        }
    }

    /// Performs an action on the replica, in one transaction or several. A commit is durable if it gives out a number or an identity that
    /// must not be given twice, or drops writes.
    private func perform(_ action: SyncAction) async throws(SluiceError) {
        switch action {
        case .load(let id):
            let state = try await engine.replica.read { parts throws(SluiceError) in try parts.localState() }
            engine.mailbox.post(.loaded(id, state))
        case .read(let id, let query): engine.mailbox.post(.pending(id, try await pending(query)))
        case .setIdentity(let identity):
            try await commit(isDurable: true) { parts throws(SluiceError) in parts.server.setIdentity(identity) }
        case .renumber(let number, let time):
            try await commit { parts throws(SluiceError) in try parts.local.renumber(after: number, time: time) }
        case .acknowledgeUpload(let number, let lsn, let futile):
            try await commit { parts throws(SluiceError) in try parts.local.acknowledge(upTo: number, lsn: lsn, futile: futile) }
        case .acknowledgeIngest(let number, let refused):
            try await undo { parts throws(SluiceError) in try parts.ingest.acknowledge(upTo: number, refused: refused) }
        case .compensate(let id, let writes):
            try await undo { parts throws(SluiceError) in try parts.local.compensations.apply(id: id, writes: writes) }
        case .setAside(let number, let error):
            try await undo(isDurable: true) { parts throws(SluiceError) in
                try parts.local.compensations.setAside(changeset: number, error)
            }
        case .shortenIngest(let cut): try await undo(isDurable: true) { parts throws(SluiceError) in try parts.ingest.shorten(cut) }
        case .beginBootstrap(let version, let checkpoint): try await beginBootstrap(version, checkpoint)
        case .stage(let rows): try await stage(rows)
        case .endBootstrap(let version, let lsn, let types, let held, let taken):
            try await endBootstrap { parts throws(SluiceError) in
                try parts.server.endBootstrap(version: version, lsn: lsn, types: types, held: held, taken: taken)
            }
        case .observe(let milliseconds): try await commit { parts throws(SluiceError) in parts.server.observe(milliseconds) }
        case .apply(let batch): try await commit { parts throws(SluiceError) in try parts.server.apply(batch) }
        case .refuseSet(let version, let error): try await refuseSet(version, error)
        case .forgetServer(let reset): try await forgetServer(reset)
        case .connect, .close, .send, .ping, .refreshToken, .report, .finish: break
        }
    }

    private func commit(
        isDurable: Bool = false, _ body: @escaping @Sendable (ReplicaParts) throws(SluiceError) -> Void
    ) async throws(SluiceError) {
        try await engine.replica.commit(isDurable: isDurable, body)
    }

    /// Runs a transaction that removes writes which the gateway has rejected, or will. Then sends its report to the app.
    private func undo(
        isDurable: Bool = false, _ body: @escaping @Sendable (ReplicaParts) throws(SluiceError) -> CompensationReport?
    ) async throws(SluiceError) {
        if let report = try await engine.replica.commit(isDurable: isDurable, body) { try await engine.tell(report) }
    }

    private func refuseSet(_ version: UInt64, _ error: SluiceError) async throws(SluiceError) {
        try await commit { parts throws(SluiceError) in
            try parts.subscriptions.setState(version: version, .error(code: error.code.rawValue, message: error.message))
        }
    }

    private func pending(_ query: LocalQuery) async throws(SluiceError) -> LocalPending {
        var pending = try await engine.replica.read { parts throws(SluiceError) in try parts.pending(query) }
        if let number = query.ingestAfter {
            // Forms a batch, whose number must not be given twice.
            pending.ingest = try await engine.replica.commit(isDurable: true) { parts throws(SluiceError) in
                try parts.ingest.nextBatch(after: number, taken: query.ingestTaken)
            }
        }
        return pending
    }

    private func beginBootstrap(_ version: UInt64, _ checkpoint: ServerMessage.Checkpoint?) async throws(SluiceError) {
        try await commit { parts throws(SluiceError) in
            try parts.server.beginBootstrap(version: version, keeping: checkpoint?.types ?? [], checkpoint: checkpoint?.content ?? [])
        }
    }

    private func endBootstrap(_ body: @escaping @Sendable (ReplicaParts) throws(SluiceError) -> Void) async throws(SluiceError) {
        let isReset = try await engine.replica.read { parts throws(SluiceError) in parts.server.reset.underWay.reset != nil }
        try await resetting(isReset) { () async throws(SluiceError) in try await commit(body) }
    }

    private func forgetServer(_ reset: ReplicaReset) async throws(SluiceError) {
        let replica = engine.replica
        // Without a subscription no bootstrap follows, so the reset ends here.
        let isReset = try await replica.read { parts throws(SluiceError) in try parts.subscriptions.latest().version == 0 }
        try await resetting(isReset) { () async throws(SluiceError) in
            try await replica.commit(isDurable: true) { parts throws(SluiceError) in try parts.server.reset.begin(reset) }
        }
    }

    /// Runs the step that ends a client reset, if one is under way, between the two callbacks of the app.
    private func resetting(_ isReset: Bool, _ body: () async throws(SluiceError) -> Void) async throws(SluiceError) {
        guard isReset else { return try await body() }
        engine.onReset(.before)
        do throws(SluiceError) {
            try await body()
        } catch {
            engine.onReset(.failed)
            throw error
        }
        engine.onReset(.after)
    }

    private func stage(_ staged: StagedRows) async throws(SluiceError) {
        // Rows first: the write times and removals of a message apply after its rows.
        if !staged.rows.isEmpty {
            try await commit { parts throws(SluiceError) in
                try parts.server.staging.stage(
                    type: staged.type, rows: staged.rows, of: staged.buffer, checkpoint: staged.checkpoint)
            }
        }
        if !staged.times.isEmpty {
            try await commit { parts throws(SluiceError) in
                try parts.server.staging.stageTimes(type: staged.type, staged.times, numbers: staged.numbers)
            }
        }
        if !staged.kept.isEmpty {
            try await commit { parts throws(SluiceError) in try parts.server.staging.stageKept(type: staged.type, keys: staged.kept) }
        }
        if !staged.removed.isEmpty {
            try await commit { parts throws(SluiceError) in
                try parts.server.staging.stageRemoval(type: staged.type, keys: staged.removed, reasons: staged.reasons)
            }
        }
    }
}

extension SyncReport {
    /// `true` if the report holds only once the replica has committed the change.
    fileprivate var saysDone: Bool {
        switch self {
        case .downloaded, .received, .uploaded, .ingested: true
        case .connection, .warning, .interrupted, .stopped, .resumed, .loggedOut, .clientReset, .resetting, .refused, .setRefused,
            .downloading, .receiving:
            false
        }
    }
}
