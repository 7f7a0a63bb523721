import SluiceCore
import SluiceWire

/// The subscription set of a session and the pending objects that it names.
struct SubscriptionSet: Sendable {
    let message: PBSubscribe
    let pending: PendingObjects

    /// The set before the first Subscribe, with version 0.
    init() {
        message = PBSubscribe()
        pending = PendingObjects()
    }

    /// - Throws: The errors of `PendingObjects.init`.
    init(_ message: PBSubscribe) throws(SluiceError) {
        self.message = message
        pending = try PendingObjects(message)
    }

    var version: UInt64 { message.version }
}

/// A position of which the client is notified once delivery has passed it.
struct AwaitedPosition: Hashable, Sendable {
    var lsn: LSN
    /// `true` if a commit is at `lsn`, so that the position advances without a heartbeat.
    var isCommit: Bool

    /// Returns one position that covers both.
    func joined(with other: AwaitedPosition?) -> AwaitedPosition {
        guard let other else { return self }
        return AwaitedPosition(lsn: max(lsn, other.lsn), isCommit: isCommit && other.isCommit)
    }
}

/// The views of a session and the one task that works on them.
///
/// ```
///              want                          ended, members changed
///   none ───────────▶ bootstrapping(n) ─────────────────▶ searching(m)
///    ▲                      │ want, stop                       │ want, stop
///    │        ended         ▼                                  │
///    └────────────── stopping(n, next) ◀───────────────────────┘
/// ```
///
/// Two tasks must never replace the same subscriber. So a new view cancels the task before it and begins at its end. Each task has a
/// number, which its results carry: results of another number are ignored.
struct ViewState: Sendable {
    enum Work: Sendable {
        case none
        /// The task makes `target` live.
        case bootstrapping(UInt64)
        /// The task finds the members of the live view, and makes a view with other members live.
        case searching(UInt64)
        /// The task is cancelled. `next` is made live once it has ended.
        case stopping(UInt64, next: View?)
    }

    private(set) var subscriptions = SubscriptionSet()
    /// The view that the client receives; empty before the first.
    private(set) var live = View.empty
    /// The view that is live or will be.
    private(set) var target = View.empty
    /// The view that the client may know. It judges writes. It changes before `live`: just before the end of the bootstrap is sent.
    private(set) var known = View.empty
    /// `true` once a view of this session is live. Before, the client's rows are from an earlier session, and no position may claim more.
    private(set) var isInStep = false
    private(set) var work = Work.none
    /// The position to announce once a view is live.
    private var deferred: AwaitedPosition?
    /// The number of the newest task or search.
    private(set) var generation: UInt64 = 0
    /// The number of the last completed search.
    private var searched: UInt64 = 0

    var isWorking: Bool { if case .none = work { false } else { true } }

    /// `true` if the running task is cancelled. Its errors do not concern the client.
    var isStopping: Bool { if case .stopping = work { true } else { false } }

    /// The number of the running task; nil if none runs.
    var number: UInt64? {
        switch work {
        case .none: nil
        case .bootstrapping(let number), .searching(let number), .stopping(let number, _): number
        }
    }

    mutating func subscribe(_ set: SubscriptionSet) { subscriptions = set }

    // MARK: Tasks

    /// Makes a view live, in place of the live or pending one. Of several views, the last one wins.
    mutating func want(_ view: View) -> [SessionEffect] {
        target = view
        switch work {
        case .none: return [bootstrap(view)]
        case .bootstrapping(let number), .searching(let number):
            work = .stopping(number, next: view)
            return [.cancelWork]
        case .stopping(let number, _):
            work = .stopping(number, next: view)
            return []
        }
    }

    /// Cancels the task and drops the view that would follow it.
    mutating func stop() -> [SessionEffect] {
        guard let number else { return [] }
        let wasStopping = isStopping
        work = .stopping(number, next: nil)
        return wasStopping ? [] : [.cancelWork]
    }

    /// Handles the end of the task.
    /// - Parameters:
    ///   - mayStart: `false` if nothing of a view may be sent now.
    ///   - isStale: `true` if a change may have affected the members of the live view.
    mutating func ended(mayStart: Bool, isStale: Bool) -> [SessionEffect] {
        defer { if !mayStart { work = .none } }
        guard mayStart else { return [] }
        switch work {
        case .none: return []
        case .stopping(_, let next):
            work = .none
            // Without `next`, the caller of `stop` decides what follows.
            return next.map { [bootstrap($0)] } ?? []
        case .bootstrapping, .searching:
            work = .none
            return findMembers(isStale: isStale)
        }
    }

    /// Starts a search for the members if one is due and no task is running.
    mutating func findMembers(isStale: Bool) -> [SessionEffect] {
        guard isStale, !isWorking else { return [] }
        generation += 1
        work = .searching(generation)
        return [.search(generation)]
    }

    private mutating func bootstrap(_ view: View) -> SessionEffect {
        generation += 1
        work = .bootstrapping(generation)
        return .bootstrap(generation, view)
    }

    // MARK: Results

    /// Records that a bootstrap is about to end: the client may know the view from here on.
    mutating func ending(_ view: View) { known = view }

    /// Records that a bootstrap has failed. The client keeps the previous view.
    mutating func bootstrapFailed() { known = live }

    mutating func wentLive(_ view: View) {
        live = view
        known = view
        isInStep = true
    }

    /// Compares a view under new rules with the pending one.
    /// - Returns: `true` if it must replace that one.
    mutating func review(_ next: View) -> Bool {
        guard next.selectsSame(as: target), next.writable == target.writable else {
            target = next
            return true
        }
        // Later members are found under these rules.
        if next.selectsSame(as: live) { live.ruling = next.ruling }
        return false
    }

    // MARK: Searches

    /// Records that a search begins to read. Changes from here on need another search.
    /// - Returns: the number of the search.
    mutating func beginReading() -> UInt64 {
        generation += 1
        return generation
    }

    /// Compares a found view with the live one.
    /// - Parameter isWatchClosed: `true` if the changes of the live view's members pass unseen.
    /// - Returns: `true` if it must be made live.
    mutating func found(_ next: View, isWatchClosed: Bool) -> Bool {
        guard !next.selectsSame(as: live) || isWatchClosed else { return false }
        target = next
        return true
    }

    mutating func searchCompleted(_ number: UInt64) { searched = number }

    /// Returns `true` if the members reflect everything delivered before `generation` was `number`.
    /// One search that began after that suffices, however many follow.
    func isSettled(since number: UInt64, isStale: Bool) -> Bool { !isWorking && !isStale || searched > number }

    // MARK: Positions

    /// Keeps a position until a view is live.
    mutating func deferAnnouncement(of position: AwaitedPosition) { deferred = position.joined(with: deferred) }

    /// Removes and returns the kept position; nil if none is kept or no view is live yet.
    mutating func takeDeferred() -> AwaitedPosition? { isInStep ? deferred.take() : nil }

    mutating func clear() { live = .empty }
}
