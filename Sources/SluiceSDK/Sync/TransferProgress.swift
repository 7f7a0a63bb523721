import Dispatch
import SluiceReplica
import Synchronization

extension SyncSession {
    /// How far a transfer is.
    public struct Progress: Sendable, Hashable {
        /// From 0 to 1. It does not go back before it is 1.
        public let progressEstimate: Double
        /// Bytes of an upload that have been sent, of those that were to be sent since nothing was. A download is measured in rows: 0.
        public internal(set) var transferredBytes = 0
        /// Bytes of an upload that were to be sent, those that have been included. Of a download: 0.
        public internal(set) var transferrableBytes = 0
        /// Whether everything has been transferred.
        public var isTransferComplete: Bool { progressEstimate >= 1 }
        @available(*, deprecated, renamed: "progressEstimate")
        public var fractionTransferred: Double { progressEstimate }
    }

    public enum ProgressDirection: Sendable { case upload, download }

    public enum ProgressMode: Sendable {
        /// Goes on for as long as the token lives: back below 1 when there is more to do.
        case reportIndefinitely
        /// Ends with 1, when everything that was to be done at the beginning is done.
        case forCurrentlyOutstandingWork
    }

    /// Keeps the news of a transfer coming.
    public typealias ProgressNotificationToken = NotificationToken
    typealias ProgressBlock = @Sendable (Progress) -> Void
}

/// Where news of transfers are told: one after the other, and away from what they are news of.
private let progressQueue = DispatchQueue(label: "sluice.progress", qos: .utility)

/// One who wants to hear how far a transfer is.
final class ProgressListener: Sendable {
    let mode: SyncSession.ProgressMode
    private let block: SyncSession.ProgressBlock
    private let token: WeakToken
    private let last = Mutex<Double?>(nil)

    // Sendable because: a weak reference that is set once may be read anywhere.
    private final class WeakToken: @unchecked Sendable {
        weak var token: NotificationToken?
        init(_ token: NotificationToken) { self.token = token }
    }

    init(_ mode: SyncSession.ProgressMode, _ token: NotificationToken, _ block: @escaping SyncSession.ProgressBlock) {
        self.mode = mode
        self.token = WeakToken(token)
        self.block = block
    }

    /// Tells a step: one that is none, or that goes back before the end, is not told.
    /// - Returns: whether there is more to tell.
    func tell(_ estimate: Double, sent: UInt64 = 0, of all: UInt64 = 0) -> Bool {
        guard let token = token.token, token.isValid else { return false }
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

/// How far the download of what the subscriptions ask for is.
final class DownloadProgress: Sendable {
    private struct Waiting {
        let listener: ProgressListener
        /// The subscription set that is waited for: the end of an older one is not the end.
        var version: UInt64

        func tell(_ estimate: Double, of version: UInt64) -> Bool { listener.tell(version < self.version ? min(estimate, 0.99) : estimate) }
    }

    private struct State {
        /// The subscription set that the estimate is of.
        var version: UInt64 = 0
        /// Nil before anything is known of the newest subscriptions.
        var estimate: Double?
        var waiting: [Waiting] = []
    }

    /// Held while listeners are told, which only puts the news on their queue: else one that is added could miss the last step, and two
    /// steps come in the wrong order.
    private let state = Mutex(State())

    /// - Parameter pending: the newest subscription set, where the server has not answered it as far as the file knows.
    func add(_ listener: ProgressListener, pending: UInt64?) {
        state.withLock { state in
            if let pending, pending > state.version, state.estimate == 1 { state.estimate = nil }
            let waiting = Waiting(listener: listener, version: pending ?? 0)
            if let estimate = state.estimate, !waiting.tell(estimate, of: state.version) { return }
            state.waiting.append(waiting)
        }
    }

    /// - Parameters:
    ///   - version: the subscription set that the rows are of.
    ///   - expected: what the server takes the number of rows to be; 0: nothing is known, or none.
    func reached(version: UInt64, rows: UInt64, of expected: UInt64) {
        let share = Self.share(rows, of: expected)
        tell(version) { estimate in max(estimate.map { $0 < 1 ? $0 : 0 } ?? 0, share) }
    }

    /// As many rows as expected are nine tenths; what comes beyond them takes an ever smaller part of what is left, since nobody
    /// knows how much more it is.
    static func share(_ rows: UInt64, of expected: UInt64) -> Double {
        let part = Double(rows) / Double(max(expected, 1))
        return part <= 1 ? 0.9 * part : min(1 - 0.1 / part, 0.99)
    }

    func ended(version: UInt64) { tell(version) { _ in 1 } }

    /// Takes note of changes that come after the download of a set.
    func receiving(_ changes: UInt64) { tellOfChanges(Self.share(changes, of: 0)) }

    /// Takes note that the file has them.
    func received() { tellOfChanges(1) }

    /// Tells the listeners that go on for good. While a set is being downloaded, its end is the end. A listener for a set that has not
    /// begun to come is not told: changes of an older set are not part of it.
    private func tellOfChanges(_ estimate: Double) {
        state.withLock { state in
            if let known = state.estimate, known < 1 { return }
            let version = state.version
            state.waiting.removeAll {
                $0.listener.mode == .reportIndefinitely && $0.version <= version && !$0.listener.tell(estimate)
            }
        }
    }

    /// The server has refused a set, and another is on its way: whoever waited for it, or for one before it, waits for that.
    func refused(version: UInt64) {
        state.withLock { state in
            for index in state.waiting.indices where state.waiting[index].version <= version { state.waiting[index].version = 0 }
        }
    }

    private func tell(_ version: UInt64, _ next: (Double?) -> Double) {
        state.withLock { state in
            let estimate = next(state.estimate)
            state.version = version
            state.estimate = estimate
            state.waiting.removeAll { !$0.tell(estimate, of: version) }
        }
    }
}

/// How far the upload of what the app has written is.
final class UploadProgress: Sendable {
    private struct Watched {
        let listener: ProgressListener
        /// What counts; nil: everything.
        let mark: UploadMark?
        /// Bytes that were to be sent in all since nothing was, and that are not yet sent.
        var total: UInt64
        var left: UInt64
    }

    private struct State {
        var watched: [Watched] = []
        var isLooking = false
        var mustLook = false
    }

    private let replica: Replica
    private let state = Mutex(State())

    init(replica: Replica) { self.replica = replica }

    func add(_ listener: ProgressListener) {
        // Unstructured because: the caller has no task; it is two reads of the file.
        _Concurrency.Task {
            let mark = listener.mode == .forCurrentlyOutstandingWork ? try? await replica.uploadMark() : nil
            state.withLock { $0.watched.append(Watched(listener: listener, mark: mark, total: 0, left: 0)) }
            look()
        }
    }

    /// Something was written or sent. Costs nothing when nobody wants to know.
    func look() {
        let begins = state.withLock { state in
            if state.watched.isEmpty { return false }
            if state.isLooking { state.mustLook = true }
            defer { state.isLooking = true }
            return !state.isLooking
        }
        guard begins else { return }
        // Unstructured because: whoever wrote does not wait for it; it ends when nothing is new.
        _Concurrency.Task {
            repeat { await lookOnce() } while goesOn()
        }
    }

    private func goesOn() -> Bool {
        state.withLock { state in
            defer { state.mustLook = false }
            state.isLooking = state.mustLook
            return state.mustLook
        }
    }

    private func lookOnce() async {
        for watched in state.withLock({ $0.watched }) {
            // A file that cannot be read is reported by those who need it.
            guard let left = try? await replica.unsentBytes(upTo: watched.mark) else { continue }
            var now = watched
            now.total = left == 0 ? 0 : left > now.left ? now.total + (left - now.left) : now.total
            now.left = left
            let all = left == 0 ? watched.total : now.total
            let goesOn = now.listener.tell(left == 0 ? 1 : min(1 - Double(left) / Double(now.total), 0.99), sent: all - left, of: all)
            state.withLock { state in
                guard let index = state.watched.firstIndex(where: { $0.listener === now.listener }) else { return }
                if goesOn { state.watched[index] = now } else { state.watched.remove(at: index) }
            }
        }
    }
}
