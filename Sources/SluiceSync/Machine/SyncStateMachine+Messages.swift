import SluiceCore
import SluiceReplica
import SluiceWire

/// The handling of the gateway's messages.
extension SyncStateMachine {
    mutating func received(_ message: ServerMessage) {
        heard()
        switch (phase, message) {
        case (.greeting, .welcome(let welcome)): self.welcome(welcome)
        case (.greeting, .error(let error, let action, let fatal, let backoff)),
            (.open, .error(let error, let action, let fatal, let backoff)):
            refused(error, action, fatal: fatal, backoff)
        // A gateway that ends, or that takes no more connections, does not wait for Hello.
        case (.loading, .error(let error, _, _, let backoff)): fail(error, atLeast: backoff, mendsItself: true)
        case (.open, .welcome): blame(SluiceError(.badMessageOrder, "The gateway sent a second Welcome."))
        case (.open, _):
            prove()
            inSession(message)
        default: blame(SluiceError(.badMessageOrder, "The gateway sent a message before Welcome."))
        }
    }

    private mutating func welcome(_ welcome: ServerMessage.Welcome) {
        guard let state = session?.local else { return }
        open()
        complain()
        session?.schema = ServerSchema(local: local, server: welcome.schema)
        session?.maximumMessageBytes = welcome.maximumMessageBytes
        if welcome.time > 0 { session?.clock = (welcome.time, now) }
        if state.identity != welcome.identity {
            actions.append(.setIdentity(welcome.identity))
            session?.local.identity = welcome.identity
        }
        // Performed before the read that `pump` requests: that read returns the new numbers.
        if welcome.changeset > 0 { actions.append(.renumber(after: welcome.changeset, time: welcome.changesetTime)) }
        session?.readThrough = welcome.changeset
        session?.sentThrough = welcome.changeset
        if welcome.ingest > 0 { ingested(welcome.ingest, []) }
        session?.ingestThrough = welcome.ingest
        session?.ingestTaken = welcome.ingestTaken
        if let first = state.firstUnacknowledged, first <= welcome.changeset { askForPosition(of: welcome.changeset) }
        pump()
    }

    /// Requests the position of changesets whose acknowledgement was lost. The gateway recognises a resend by its number and acknowledges
    /// it with a position, so a stub with the last number is enough.
    private mutating func askForPosition(of number: UInt64) {
        session?.inFlight.append(SyncSession.Upload(number: number, bytes: 0))
        var stub = PBChangeset()
        stub.number = number
        upload([stub])
    }

    private mutating func inSession(_ message: ServerMessage) {
        switch message {
        case .welcome, .error: break
        case .bootstrapBegin(let version, let rows, let checkpoint):
            guard session?.isAsked(for: version) == true else {
                return blame(
                    SluiceError(.badMessageOrder, "A bootstrap began of version \(version), which was not requested or was rejected."))
            }
            session?.bootstrap = SyncSession.Bootstrap(version: version, expected: rows)
            actions.append(.beginBootstrap(version: version, checkpoint))
            actions.append(.report(.downloading(version: version, rows: 0, expected: rows)))
        case .bootstrapRows(let rows): stage(rows)
        case .bootstrapEnd(let version, let lsn, let types, let held, let taken, let writeTime):
            endBootstrap(version, lsn, types, held, taken, writeTime)
        case .commits(let batch, let more): commits(batch, more: more)
        case .uploadAck(let number, let lsn, let futile):
            session?.inFlight.removeAll { $0.number <= number }
            actions.append(.acknowledgeUpload(number, lsn, futile))
            actions.append(.report(.uploaded(number)))
            pump()
        case .compensation(let id, let writes): compensate(id, writes)
        case .ingestAck(let number, let writes):
            session?.ingestInFlight.removeAll { $0 <= number }
            session?.mustReadIngest = true
            ingested(number, writes)
            pump()
        case .markReached(let id):
            guard session?.marksSent.contains(id) == true else {
                return blame(SluiceError(.badMessageOrder, "The gateway reported barrier \(id), which was not sent."))
            }
            reached(id)
        case .queryError(let version, let error, let index): refuseSet(version, error, index)
        }
    }

    private mutating func ingested(_ number: UInt64, _ refused: [CompensatingWrite]) {
        actions.append(.acknowledgeIngest(number, refused))
        actions.append(.report(.ingested(number)))
    }

    // MARK: Downloads

    private mutating func stage(_ rows: StagedRows?) {
        guard var bootstrap = session?.bootstrap else {
            blame(SluiceError(.badMessageOrder, "Rows of a bootstrap arrived outside of one."))
            return
        }
        guard let rows else { return }
        bootstrap.rows += UInt64(rows.rows.count + rows.kept.count)
        bootstrap.types.insert(rows.type)
        session?.bootstrap = bootstrap
        actions.append(.stage(rows))
        actions.append(
            .report(.downloading(version: bootstrap.version, rows: bootstrap.rows, expected: bootstrap.expected)))
    }

    private mutating func endBootstrap(
        _ version: UInt64, _ lsn: LSN, _ types: [Int]?, _ held: [UInt8], _ taken: UInt64, _ writeTime: HybridTime
    ) {
        guard let bootstrap = session?.bootstrap, bootstrap.version == version else {
            blame(SluiceError(.badMessageOrder, "The end of a bootstrap of version \(version) arrived outside of one."))
            return
        }
        // A class without a subscription is empty in the new view, even if the gateway did not list it.
        let replaced = types.map { unsubscribedTypes(in: version).subtracting(bootstrap.types).union($0).filter { hasRows($0) } } ?? []
        // Before the bootstrap ends: recovered writes get their times in that step.
        if let clock = session?.clock { actions.append(.observe(clock.gateway + Int64(now - clock.own))) }
        // Rows have no write times, and their writers' clocks may be ahead of the gateway's. Later writes must not be older than the rows.
        if writeTime > .zero { actions.append(.observe(writeTime.milliseconds + 1)) }
        actions.append(.endBootstrap(version: version, lsn: lsn, types: replaced.sorted(), held: held, taken: taken))
        actions.append(.report(.downloaded(version: version)))
        session?.bootstrap = nil
        session?.settled = version
        session?.local.applied = AppliedPosition(lsn: lsn, version: version)
        // The end of the bootstrap has dropped the changesets that were read, or given them the position of recovered writes.
        if session?.local.resets.underWay != nil { session?.rereadChangesets() }
        session?.local.resets.underWay = nil
        // Older sets are superseded and get no answer.
        session?.unanswered.removeAll { $0.version <= version }
        pump()
    }

    private func hasRows(_ type: Int) -> Bool { local.types.indices.contains(type) && local.types[type].kind == .topLevel }

    /// Returns the classes that no subscription of the set names. The view has none of their objects.
    private func unsubscribedTypes(in version: UInt64) -> Set<Int> {
        guard let set = session?.sets.first(where: { $0.version == version }) else { return [] }
        let named = Set(set.subscriptions.map(\.type))
        return Set(local.types.indices.filter { !named.contains(local.types[$0].name) })
    }

    private mutating func commits(_ batch: ReplicaBatch, more: Bool) {
        // Pieces of a run are joined and applied as one transaction: a commit is never shown in part.
        var run = session?.partial ?? ReplicaBatch()
        session?.partial = nil
        if run.commits.isEmpty { run = batch } else { run.append(batch) }
        let changes = UInt64(run.changes.count)
        // Most messages without a change only advance the position.
        if changes > 0 { actions.append(.report(.receiving(changes: changes))) }
        guard more else {
            if let applied = session?.local.applied.lsn, run.lsn > applied {
                session?.local.applied.lsn = run.lsn
                session?.local.applied.witness = run.witness
            }
            actions.append(.apply(run))
            if changes > 0 { actions.append(.report(.received(changes: changes))) }
            return
        }
        guard run.byteCount <= SyncSession.partialBytes else {
            blame(SluiceError(.limitsExceeded, "A run of commits has more than \(SyncSession.partialBytes) bytes."))
            return
        }
        session?.partial = run
    }

    // MARK: Rejections

    private mutating func compensate(_ id: UInt64, _ writes: [CompensatingWrite]) {
        // A resent one is only acknowledged again: its number is not above the last that was applied.
        if id > session?.local.compensation ?? 0 {
            session?.local.compensation = id
            actions.append(.compensate(id, writes))
            session?.rereadChangesets()
        }
        // An empty upload acknowledges the compensation.
        upload([])
        pump()
    }

    private mutating func refuseSet(_ version: UInt64, _ unnamed: SluiceError, _ index: Int?) {
        var error = unnamed
        // The later versions of the set keep the subscription and fail too, so the app must learn which one it is.
        if let index, let set = session?.unanswered.first(where: { $0.version == version }), set.subscriptions.indices.contains(index) {
            error.message = "\(set.subscriptions[index].label): \(error.message)"
        }
        actions.append(.refuseSet(version: version, error))
        session?.refused.insert(version)
        session?.unanswered.removeAll { $0.version == version }
        let isLast = session?.awaiting == nil && session?.hasUnsentSet != true
        actions.append(.report(.setRefused(version: version, error, isLast: isLast)))
        pump()
    }

    private mutating func refused(_ error: SluiceError, _ action: SessionAction, fatal: Bool, _ backoff: UInt64) {
        switch action {
        case .warning where !fatal: actions.append(.report(.warning(error)))
        case .warning, .transient: fail(error, atLeast: backoff, mendsItself: true)
        case .refreshUser: tokenRefused(error)
        case .logOutUser: logOut(error)
        case .applicationBug: end(error, .stopped(error))
        case .clientReset: reset(error, isRecoveryAllowed: true, backoff)
        case .clientResetNoRecovery: reset(error, isRecoveryAllowed: false, backoff)
        }
    }

    /// Stops until `start` and drops the token that the gateway rejected. A later `start` without a token fetches a new one.
    private mutating func logOut(_ error: SluiceError) {
        token = nil
        end(error, .loggedOut(error))
    }

    /// The maximum of client resets begun in a row without one ending. Then the app must decide.
    package static let resetAttempts: UInt64 = 3

    mutating func reset(_ error: SluiceError, isRecoveryAllowed: Bool, _ backoff: UInt64) {
        guard let reset = configuration.reset.reset(isRecoveryAllowed: isRecoveryAllowed) else {
            let isForbidden = configuration.reset == .recover
            let reason = isForbidden ? "\(error.message) The server does not allow to recover what was not uploaded." : error.message
            let manual = SluiceError(error.code, reason, fix: error.fix)
            return end(manual, .clientReset(manual))
        }
        let before = session?.local.resets.begun ?? 0
        guard before < Self.resetAttempts else {
            let cycle = SluiceError(
                error.code,
                "\(error.message) The last \(before) client resets did not succeed; giving up on '\(reset)' mode to prevent a cycle.",
                fix: error.fix)
            return end(cycle, .clientReset(cycle))
        }
        retry(atLeast: backoff)
        actions.append(.forgetServer(error.code == .userMismatch ? .disown : reset))
        actions.append(.report(.resetting(error)))
    }

    /// Reports an error to the gateway.
    /// - Parameter undone: the objects whose writes the replica undid because of the error. The first `Limits.reportedWrites` are named.
    mutating func report(_ error: SluiceError, undone: [ObjectKey] = [], changeset: UInt64 = 0) {
        var report = PBReportError()
        report.code = UInt32(error.code.rawValue)
        report.message = String(error.operatorText.prefix(2_000))
        report.writes = undone.prefix(Limits.reportedWrites).compactMap { PBReportedWrite(changeset: changeset, $0) }
        send(.reportError(report))
    }
}
