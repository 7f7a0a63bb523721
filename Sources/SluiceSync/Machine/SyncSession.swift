import SluiceCore
import SluiceReplica
import SluiceWire

/// What the machine knows of one session, from Hello to the end of the connection.
struct SyncSession: Sendable {
    /// Bytes of changesets sent and not acknowledged.
    static let uploadWindow = 4 << 20
    /// Bytes of changesets in one message, and in one read.
    static let uploadMessage = 512 << 10
    /// Bytes of an unfinished run of commits. Beyond: the session starts again from a bootstrap.
    static let partialBytes = 256 << 20

    struct Upload: Sendable {
        var number: UInt64
        var bytes: Int
    }

    struct Bootstrap: Sendable {
        var version: UInt64
        var expected: UInt64
        var rows: UInt64 = 0
        var types: Set<Int> = []
    }

    var local: LocalState
    /// Nil until Welcome.
    var schema: ServerSchema?
    var maximumMessageBytes = Limits.messageBytes
    /// The gateway's clock at Welcome, and ours; nil when it did not say.
    var clock: (gateway: Int64, own: UInt64)?
    var lastReceived: UInt64
    var lastPing: UInt64
    /// Something other than Welcome and errors came: the connection is worth having.
    var isProven = false

    // Reading the file.
    var asked: LocalQuery?
    /// A read under way is out of date: its changesets are not to be used.
    var isStale = false
    var mustReadSets = true
    var mustReadChangesets = true
    var mustReadIngest = true

    // Changesets.
    /// Read and not sent, ascending.
    var queue: [(message: PBChangeset, bytes: Int)] = []
    var readThrough: UInt64 = 0
    var sentThrough: UInt64 = 0
    /// The last read found nothing after `readThrough`.
    var isExhausted = false
    var inFlight: [Upload] = []

    // Asymmetric objects.
    var ingestThrough: UInt64 = 0
    /// The gateway has batches of these numbers; the file may not know of them, when it was restored from a backup.
    var ingestTaken: UInt64 = 0
    var ingestInFlight: [UInt64] = []
    var isIngestExhausted = false

    // Subscriptions.
    /// The active set and every later one, ascending; empty until the first read.
    var sets: [StoredSubscriptionSet] = []
    /// Versions refused in this session; a read that was under way may still call them pending.
    var refused: Set<UInt64> = []
    /// The highest version sent.
    var subscribed: UInt64 = 0
    /// Versions that were sent and have neither their bootstrap nor an error, ascending.
    var unanswered: [UInt64] = []
    /// The version whose view the gateway uses in this session.
    var settled: UInt64 = 0

    // Downloads.
    var bootstrap: Bootstrap?
    var partial: ReplicaBatch?
    var marksSent: Set<UInt64> = []
    /// Waits since whose beginning the sets have been read, or are being read: until then a set that was made before them may be unknown.
    var marksRead: Set<UInt64> = []
    var marksReading: Set<UInt64> = []

    init(local: LocalState, now: UInt64) {
        self.local = local
        lastReceived = now
        lastPing = now
    }

    /// The version whose answer uploads wait for (SUB-7); when it is refused, an older one that is still to come.
    var awaiting: UInt64? { unanswered.last }

    var inFlightBytes: Int { inFlight.reduce(0) { $0 + $1.bytes } }

    /// The latest set has not been sent and can be.
    var hasUnsentSet: Bool {
        guard let latest = sets.last else { return false }
        return latest.version > subscribed && !isRefused(latest)
    }

    /// Whether a bootstrap of the version may come: it is the view's own, or a later one that was sent.
    func isAsked(for version: UInt64) -> Bool { (settled...max(settled, subscribed)).contains(version) && !refused.contains(version) }

    private func isRefused(_ set: StoredSubscriptionSet) -> Bool {
        if case .error = set.state { true } else { refused.contains(set.version) }
    }

    /// What to do next: the set to be in, and the last changeset to send in it.
    struct Target {
        /// Nil when there is no acceptable set.
        var set: StoredSubscriptionSet?
        var limit: UInt64
    }

    /// A changeset is uploaded in the view of the set that the app had made before it (SUB-3): outside of it the gateway
    /// would refuse it. Sets in which nothing is left to upload are passed over, down to the latest (SUB-9).
    /// - Returns: nil while only a read can tell.
    var target: Target? {
        let floor = awaiting ?? settled
        let usable = sets.filter { !isRefused($0) && $0.version > 0 && $0.version >= floor }
        guard let next = queue.first?.message.number else {
            return isExhausted ? Target(set: usable.last, limit: .max) : nil
        }
        guard !usable.isEmpty else { return Target(set: nil, limit: sets.last?.version == 0 ? .max : 0) }
        let owner = usable.lastIndex { $0.changesetsBefore < next } ?? 0
        return Target(set: usable[owner], limit: owner + 1 < usable.count ? usable[owner + 1].changesetsBefore : .max)
    }

    /// Whether everything that the app wrote is on the gateway.
    var isUploaded: Bool {
        isExhausted && queue.isEmpty && inFlight.isEmpty && isIngestExhausted && ingestInFlight.isEmpty && asked == nil
            && !mustReadChangesets && !mustReadIngest
    }

    /// Forgets what was read and not sent: the file has changed beneath it.
    mutating func rereadChangesets() {
        queue = []
        readThrough = sentThrough
        isExhausted = false
        mustReadChangesets = true
        isStale = asked != nil
    }
}
