import Dispatch
import SluiceReplica
import Synchronization

extension SyncSession {
    /// The progress of a transfer.
    public struct Progress: Sendable, Hashable {
        /// The progress from 0 to 1. It does not decrease before it reaches 1.
        public let progressEstimate: Double
        /// The bytes sent of an upload, counted since the last time that nothing was pending. Always 0 for a download.
        public internal(set) var transferredBytes = 0
        /// The bytes to send of an upload, including those already sent. Always 0 for a download.
        public internal(set) var transferrableBytes = 0
        /// `true` if the transfer is complete.
        public var isTransferComplete: Bool { progressEstimate >= 1 }
        @available(*, deprecated, renamed: "progressEstimate")
        public var fractionTransferred: Double { progressEstimate }
    }

    public enum ProgressDirection: Sendable { case upload, download }

    public enum ProgressMode: Sendable {
        /// Reports until the token is released. The progress falls below 1 again when there is more to transfer.
        case reportIndefinitely
        /// Reports until the work that was pending at the start is complete, ending with 1.
        case forCurrentlyOutstandingWork
    }

    /// Keeps progress reports active until it is released or invalidated.
    public typealias ProgressNotificationToken = NotificationToken
    typealias ProgressBlock = @Sendable (Progress) -> Void
}

/// The queue of progress blocks: serial, and separate from the threads that transfer data.
private let progressQueue = DispatchQueue(label: "sluice.progress", qos: .utility)

/// A registered progress block.
final class ProgressListener: Sendable {
    let mode: SyncSession.ProgressMode
    private let block: SyncSession.ProgressBlock
    private let token: WeakToken
    private let last = Mutex<Double?>(nil)

    private final class WeakToken: @unchecked Sendable {  // Sendable because: a weak reference that is set once may be read on any thread.
        weak var token: NotificationToken?
        init(_ token: NotificationToken) { self.token = token }
    }

    init(_ mode: SyncSession.ProgressMode, _ token: NotificationToken, _ block: @escaping SyncSession.ProgressBlock) {
        self.mode = mode
        self.token = WeakToken(token)
        self.block = block
    }

    /// Reports a step. Equal estimates, and lower ones before 1 is reached, are dropped.
    /// - Returns: `true` if the listener needs further reports.
    func report(_ estimate: Double, sent: UInt64 = 0, of all: UInt64 = 0) -> Bool {
        guard let token = token.token, token.isValid else { return false }
        // The comparison and the update are one step: two threads may report at the same time.
        let step = last.withLock { last -> Double? in
            let isBack = last.map { $0 < 1 && estimate < $0 } ?? false
            if isBack || estimate == last { return nil }
            last = estimate
            return estimate
        }
        if let step {
            let progress = SyncSession.Progress(
                progressEstimate: step, transferredBytes: Int(clamping: sent), transferrableBytes: Int(clamping: all))
            progressQueue.async { [block] in if token.isValid { block(progress) } }
        }
        return mode == .reportIndefinitely || estimate < 1
    }
}

/// The download progress of the subscriptions.
final class DownloadProgress: Sendable {
    private struct Waiting {
        let listener: ProgressListener
        /// The subscription set that the listener waits for. The end of an older one does not complete it.
        var version: UInt64

        func report(_ estimate: Double, of version: UInt64) -> Bool {
            listener.report(version < self.version ? min(estimate, 0.99) : estimate)
        }
    }

    private struct State {
        /// The subscription set of the estimate.
        var version: UInt64 = 0
        /// Nil until the progress of the newest subscriptions is known.
        var estimate: Double?
        var waiting: [Waiting] = []
    }

    /// Held during the calls of listeners, which only enqueue their blocks.
    /// Otherwise a new listener could miss the last step, and two steps could arrive in the wrong order.
    private let state = Mutex(State())

    /// Adds a listener.
    /// - Parameter pending: The newest subscription set if the server has not answered it; otherwise nil.
    func add(_ listener: ProgressListener, pending: UInt64?) {
        state.withLock { state in
            // The end of an older set is not the progress of the pending one.
            if let pending, pending > state.version, state.estimate == 1 { state.estimate = nil }
            let waiting = Waiting(listener: listener, version: pending ?? 0)
            if let estimate = state.estimate, !waiting.report(estimate, of: state.version) { return }
            state.waiting.append(waiting)
        }
    }

    /// Records the rows of a set that have arrived.
    /// - Parameters:
    ///   - version: The subscription set of the rows.
    ///   - expected: The server's estimate of the number of rows; 0 if there is none.
    func reached(version: UInt64, rows: UInt64, of expected: UInt64) {
        let share = Self.share(rows, of: expected)
        // A new download starts at 0; within one download the estimate never decreases.
        report(version) { estimate in max(estimate.map { $0 < 1 ? $0 : 0 } ?? 0, share) }
    }

    /// The estimate for a number of rows. The expected number is nine tenths.
    /// Further rows take an ever smaller part of the rest, since their number is unknown; the result stays below 1.
    static func share(_ rows: UInt64, of expected: UInt64) -> Double {
        let part = Double(rows) / Double(max(expected, 1))
        return part <= 1 ? 0.9 * part : min(1 - 0.1 / part, 0.99)
    }

    /// Records the end of a set's download.
    func ended(version: UInt64) { report(version) { _ in 1 } }

    /// Records changes that arrive after the download of a set.
    func receiving(_ changes: UInt64) { reportChanges(Self.share(changes, of: 0)) }

    /// Records that the file has these changes.
    func received() { reportChanges(1) }

    /// Reports to the listeners with `reportIndefinitely`, unless a set is being downloaded.
    /// Listeners for a later set are skipped, since changes of an older set are not part of it.
    private func reportChanges(_ estimate: Double) {
        state.withLock { state in
            if let known = state.estimate, known < 1 { return }
            let version = state.version
            state.waiting.removeAll {
                $0.listener.mode == .reportIndefinitely && $0.version <= version && !$0.listener.report(estimate)
            }
        }
    }

    /// Redirects the listeners of a rejected set, and of those before it, to the next set.
    func refused(version: UInt64) {
        state.withLock { state in
            for index in state.waiting.indices where state.waiting[index].version <= version { state.waiting[index].version = 0 }
        }
    }

    private func report(_ version: UInt64, _ next: (Double?) -> Double) {
        state.withLock { state in
            let estimate = next(state.estimate)
            state.version = version
            state.estimate = estimate
            state.waiting.removeAll { !$0.report(estimate, of: version) }
        }
    }
}

/// The upload progress of the app's writes.
final class UploadProgress: Sendable {
    private struct Watched {
        let listener: ProgressListener
        /// The writes that count; nil if all do.
        let mark: UploadCursor?
        /// The bytes to send since the last time that nothing was pending, and the part that is unsent.
        var total: UInt64
        var left: UInt64
    }

    /// At most one check runs at a time. `mustLook` requests another one after it.
    private struct State {
        var watched: [Watched] = []
        var isLooking = false
        var mustLook = false
    }

    private let replica: Replica
    private let state = Mutex(State())

    init(replica: Replica) { self.replica = replica }

    func add(_ listener: ProgressListener) {
        _Concurrency.Task {  // Unstructured because: the caller has no task; it reads the file twice and ends.
            let mark = listener.mode == .forCurrentlyOutstandingWork ? try? await replica.uploadMark() : nil
            state.withLock { $0.watched.append(Watched(listener: listener, mark: mark, total: 0, left: 0)) }
            look()
        }
    }

    /// Checks for progress after a write or an acknowledgement. Costs a lock if there are no listeners.
    func look() {
        let begins = state.withLock { state in
            if state.watched.isEmpty { return false }
            if state.isLooking { state.mustLook = true }
            defer { state.isLooking = true }
            return !state.isLooking
        }
        guard begins else { return }
        _Concurrency.Task {  // Unstructured because: the writing thread does not wait for it; it ends when no check is requested.
            repeat { await lookOnce() } while goesOn()
        }
    }

    /// Ends the check, or claims the next one if it has been requested.
    private func goesOn() -> Bool {
        // One step under the lock: a request can neither be lost nor start a second task.
        state.withLock { state in
            defer { state.mustLook = false }
            state.isLooking = state.mustLook
            return state.mustLook
        }
    }

    private func lookOnce() async {
        for watched in state.withLock({ $0.watched }) {
            // An unreadable file is reported by other reads.
            guard let left = try? await replica.unsentBytes(upTo: watched.mark) else { continue }
            var now = watched
            // More unsent bytes than before were written since: they extend the total.
            now.total = left == 0 ? 0 : left > now.left ? now.total + (left - now.left) : now.total
            now.left = left
            let all = left == 0 ? watched.total : now.total
            let goesOn = now.listener.report(left == 0 ? 1 : min(1 - Double(left) / Double(now.total), 0.99), sent: all - left, of: all)
            state.withLock { state in
                guard let index = state.watched.firstIndex(where: { $0.listener === now.listener }) else { return }
                if goesOn { state.watched[index] = now } else { state.watched.remove(at: index) }
            }
        }
    }
}
