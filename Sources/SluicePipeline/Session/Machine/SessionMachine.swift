import SluiceCore
import SluicePorts

/// A session's decisions, as pure code. Messages, results of tasks and errors come in as inputs. Effects go out; `Session` performs them.
///
/// ```
///                  RefreshToken               Hello            Welcome
///   awaitingHello ─────────────▶ authenticated ─────▶ opening ─────────▶ open
///        │              Hello                           ▲                  │
///        └──────────────────────────────────────────────┘                  │ error, close
///                       closed ◀──────────────── from every phase ◀────────┘
/// ```
///
/// Beside the phase, an open session has parts with states of their own: uploads, ingest, barriers, the rules' answer and the views.
struct SessionMachine: Sendable {
    enum Phase: Hashable, CaseIterable, Sendable {
        /// Nothing has arrived.
        case awaitingHello
        /// A token has arrived ahead of a Hello that is too large for an unauthenticated peer.
        case authenticated
        /// The Hello is being answered.
        case opening
        case open
        case closed
    }

    /// The number of client reports that a session logs. The bound keeps a client from filling the log.
    static let reports = 16

    private(set) var phase = Phase.awaitingHello
    private(set) var uploads: UploadState
    private(set) var ingest = IngestQueue()
    private(set) var barriers = Barriers()
    private(set) var rules = RulesState()
    private(set) var views = ViewState()
    /// The newest requested subscription version.
    private var requested: UInt64 = 0
    private var reported = 0

    init(numbering: ChangesetNumbering = .contiguous) { uploads = UploadState(numbering) }

    /// `true` from the Hello to the end of the session.
    var isOpen: Bool { phase == .opening || phase == .open }
    var isClosed: Bool { phase == .closed }
    /// `true` if the next message must be a token or a Hello.
    var awaitsHello: Bool { phase == .awaitingHello || phase == .authenticated }
    /// `true` while no plugin answers. Requests of the client wait.
    var isAsking: Bool { rules.availability != .known }
    /// `true` if content of a view may be sent.
    private var mayShow: Bool { phase == .open && !isAsking }

    /// Handles one input and returns the effects to perform, in order.
    mutating func handle(_ input: SessionInput) -> [SessionEffect] {
        switch input {
        case .received(let message): received(message)
        case .opened(let changeset): opened(changeset)
        case .requested(let version): request(version)
        case .accepted(let set, let view): accept(set, view)
        case .committed(let acknowledgement): uploads.add(acknowledgement) && isOpen ? [.flush] : []
        case .ingest(let batch): isOpen && ingest.add(batch) ? [.takeBatches] : []
        case .barrier(let id): isOpen && barriers.add(id) ? [.answerBarriers] : []
        case .rulesChanged, .replace, .rulesFailed, .rulesRefused, .answered, .answerRefused, .askingEnded: judge(input)
        case .stop: views.stop()
        case .ending, .live, .bootstrapFailed, .workEnded: work(input)
        case .membersChanged(let isStale): mayShow ? views.findMembers(isStale: isStale) : []
        case .failed(let error): end(error)
        case .disconnected: disconnect()
        }
    }

    /// Ends the session with an error, once: a second failure sends no second error.
    private mutating func end(_ error: SluiceError) -> [SessionEffect] {
        guard !isClosed else { return [] }
        phase = .closed
        return [.end(error)]
    }

    private mutating func disconnect() -> [SessionEffect] {
        phase = .closed
        return views.stop()
    }

    // MARK: Messages

    /// Checks a message against the phase and advances the phase.
    private mutating func received(_ message: ClientMessageKind) -> [SessionEffect] {
        switch (phase, message) {
        case (.awaitingHello, .hello), (.authenticated, .hello): phase = .opening
        case (.awaitingHello, .refreshToken): phase = .authenticated
        case (.awaitingHello, _), (.authenticated, _):
            return end(SluiceError(.badMessageOrder, "The first message was \(message.rawValue), not hello."))
        case (.opening, .hello), (.open, .hello):
            return end(SluiceError(.badMessageOrder, "The client sent a second Hello."))
        case (.opening, _): return end(SluiceError(.badMessageOrder, "\(message.rawValue) came before hello was answered."))
        case (.open, _), (.closed, _): break
        }
        return []
    }

    private mutating func opened(_ changeset: UInt64) -> [SessionEffect] {
        guard phase == .opening else { return [] }
        phase = .open
        uploads.begin(changeset: changeset)
        return []
    }

    /// Accepts a new subscription version if it is higher than all before and fits the 63 bits of JSON and databases.
    private mutating func request(_ version: UInt64) -> [SessionEffect] {
        guard phase == .open else { return [] }
        guard version <= UInt64(Int64.max) else { return end(SluiceError(.badSyntax, "No subscription set has the version \(version).")) }
        guard version > requested else {
            return end(SluiceError(.badMessageOrder, "Subscription set version \(version) arrived after version \(requested)."))
        }
        requested = version
        return []
    }

    private mutating func accept(_ set: SubscriptionSet, _ view: View) -> [SessionEffect] {
        guard phase == .open else { return [] }
        views.subscribe(set)
        rules.changeQuestion()
        // A member search for the previous set may have failed meanwhile. The answer to the new question then makes the new set live.
        return mayShow ? views.want(view) : []
    }

    /// Returns `true` if another client report may be logged.
    mutating func takeReport() -> Bool {
        reported += 1
        return reported <= Self.reports
    }

    // MARK: Rules

    private mutating func judge(_ input: SessionInput) -> [SessionEffect] {
        switch input {
        case .rulesChanged: rules.changeQuestion()
        case .replace(let view): if mayShow { return views.want(view) }
        case .rulesFailed(let error): return awaitRules(error)
        case .rulesRefused(let error): if isOpen, !isAsking { return end(Self.refusal(error)) }
        case .answered(let question, let view):
            guard settle(question), phase == .open, let view else { break }
            return views.want(view)
        case .answerRefused(let question, let error): if settle(question) { return end(Self.refusal(error)) }
        case .askingEnded(let number):
            guard rules.availability == .unavailable(number) else { break }
            // Closed first: waiting requests must not be judged by outdated rules.
            phase = .closed
            rules.becomeKnown()
        default: break
        }
        return []
    }

    /// Stops sending until the rules answer. One asking at a time.
    private mutating func awaitRules(_ error: SluiceError) -> [SessionEffect] {
        guard isOpen, !isAsking else { return [] }
        return [.askRules(rules.becomeUnavailable(), error)] + views.stop()
    }

    /// Ends the asking if an answer is to the newest question. An older one may predate the newest rules.
    private mutating func settle(_ question: UInt64) -> Bool {
        guard isAsking, question == rules.question else { return false }
        rules.becomeKnown()
        return true
    }

    /// Returns the error for a client whose view the rules do not allow.
    private static func refusal(_ error: any Error) -> SluiceError {
        guard let error = SluiceError(of: error) else {
            return SluiceError(.resync, "The new rules gave no answer.", cause: ErrorCause(error))
        }
        guard error.code.isQueryError else { return error }
        let message = "The subscriptions do not fit the new rules: \(error.message)"
        return SluiceError(.resync, message, value: error.value, cause: error.cause)
    }

    // MARK: Tasks on the view

    private mutating func work(_ input: SessionInput) -> [SessionEffect] {
        switch input {
        case .ending(let number, let view): if views.number == number { views.ending(view) }
        // Also of a cancelled task, and of a closed session: the view is live now, whatever follows.
        case .live(let number, let view): if views.number == number { views.wentLive(view) }
        case .bootstrapFailed(let number): if views.number == number { views.bootstrapFailed() }
        case .workEnded(let number, let outcome, let isStale): if views.number == number { return ended(outcome, isStale: isStale) }
        default: break
        }
        return []
    }

    private mutating func ended(_ outcome: WorkOutcome, isStale: Bool) -> [SessionEffect] {
        var effects: [SessionEffect] = []
        switch outcome {
        case .done: break
        case .searched(let number): views.searchCompleted(number)
        // Another view replaces a cancelled one, so its error does not concern the client.
        case .bootstrapFailed(let error): if !views.isStopping { effects = end(error) }
        case .searchFailed(let error as SluiceError) where error.code.isPluginFailure: effects = awaitRules(error)
        case .searchFailed(let error):
            guard !views.isStopping else { break }
            let message = "The members of limited queries or included links cannot be resolved."
            effects = end(SluiceError(.resync, message, cause: ErrorCause(error)))
        }
        return effects + views.ended(mayStart: mayShow, isStale: isStale)
    }
}

// MARK: Steps of tasks

/// The tasks of `Session` take their next piece of work here.
extension SessionMachine {
    /// Returns `true` if a changeset is new, `false` if it is a resend.
    /// - Throws: `badClientFile` if numbers are missing.
    mutating func take(changeset number: UInt64) throws(SluiceError) -> Bool { try uploads.take(changeset: number) }

    /// Returns the changesets that the next flush covers; empty if none is left, or the session has ended. Flushes end then.
    mutating func nextFlush() -> [Acknowledgement] {
        guard isOpen else {
            uploads.stopFlushing()
            return []
        }
        return uploads.nextFlush()
    }

    mutating func compensationsSent() { uploads.compensationsSent() }

    mutating func batchAcknowledged() { ingest.acknowledged() }

    mutating func batchesEnded() { ingest.stopTaking() }

    /// Returns the barriers to answer together; empty if none is left, or the session has ended. The answering ends then.
    mutating func nextBarriers() -> [UInt64] {
        guard isOpen else {
            barriers.stopAnswering()
            return []
        }
        return barriers.next()
    }

    mutating func planned(_ plan: SessionPlan, for fields: QueryableFields) { rules.answered(plan, for: fields) }

    /// Returns the permissions, bound to a schema.
    mutating func permissions(for schema: AppSchema) -> SessionPermissions { rules.permissions(for: schema) }

    /// Compares the view of a review with the pending one.
    /// - Returns: `true` if the live view must stop and this one follow it, by `replace`.
    mutating func review(_ view: View) -> Bool {
        // A member search may have failed meanwhile. The session asks again then, and that answer counts.
        mayShow && views.review(view)
    }

    mutating func beginReading() -> UInt64 { views.beginReading() }

    mutating func found(_ view: View, isWatchClosed: Bool) -> Bool { views.found(view, isWatchClosed: isWatchClosed) }

    mutating func deferAnnouncement(of position: AwaitedPosition) { views.deferAnnouncement(of: position) }

    mutating func takeDeferred() -> AwaitedPosition? { views.takeDeferred() }

    /// Forgets the live view of a closed session, whose partitions are released.
    mutating func clear() { views.clear() }
}
