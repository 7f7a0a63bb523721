import SluiceCore
import SluiceReplica
import SluiceWire

/// The machine's state of one session, from `Hello` to the end of the connection.
struct SyncSession: Sendable {
    /// The bound of changesets sent and not acknowledged, in bytes. A single larger changeset is sent alone.
    static let uploadWindow = 4 << 20
    /// The size of the changesets in one message, and in one read, in bytes.
    static let uploadMessage = 512 << 10
    /// The bound of an unfinished run of commits, in bytes. Beyond it the session fails and the next one begins anew.
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
    /// `nil` until `Welcome`.
    var schema: ServerSchema?
    var maximumMessageBytes = Limits.messageBytes
    /// The gateway's clock at `Welcome` and the machine's. `nil` if the gateway did not send its clock.
    var clock: (gateway: Int64, own: UInt64)?
    var lastReceived: UInt64
    var lastPing: UInt64
    /// `true` once a message other than `Welcome` or an error has arrived.
    var isProven = false

    // Reading the replica.
    var asked: LocalQuery?
    /// `true` if the read under way is out of date. Its changesets must not be used.
    var isStale = false
    var mustReadSets = true
    var mustReadChangesets = true
    var mustReadIngest = true

    // Changesets.
    /// Read and not sent, ascending.
    var queue: [(message: PBChangeset, bytes: Int)] = []
    var readThrough: UInt64 = 0
    var sentThrough: UInt64 = 0
    /// `true` if the last read found nothing after `readThrough`.
    var isExhausted = false
    var inFlight: [Upload] = []

    // Asymmetric objects.
    var ingestThrough: UInt64 = 0
    /// The highest batch that the gateway has. A replica restored from a backup may not know of it.
    var ingestTaken: UInt64 = 0
    var ingestInFlight: [UInt64] = []
    var isIngestExhausted = false

    // Subscriptions.
    /// The active set and every later one, ascending. Empty until the first read.
    var sets: [StoredSubscriptionSet] = []
    /// The versions that the gateway rejected in this session. A read that was under way may still return them as pending.
    var refused: Set<UInt64> = []
    /// The highest version sent.
    var subscribed: UInt64 = 0
    /// The sets that were sent and have neither their bootstrap nor an error, in the order of their versions.
    var unanswered: [StoredSubscriptionSet] = []
    /// The version of the view that the gateway uses in this session.
    var settled: UInt64 = 0

    // Downloads.
    var bootstrap: Bootstrap?
    var partial: ReplicaBatch?
    var marksSent: Set<UInt64> = []
    /// The download waits that began before the last read of the sets. For later waits, the latest set may still be unknown.
    var marksRead: Set<UInt64> = []
    var marksReading: Set<UInt64> = []

    init(local: LocalState, now: UInt64) {
        self.local = local
        lastReceived = now
        lastPing = now
    }

    /// The version whose answer uploads wait for. If it is rejected, the next older one without an answer.
    var awaiting: UInt64? { unanswered.last?.version }

    var inFlightBytes: Int { inFlight.reduce(0) { $0 + $1.bytes } }

    /// `true` if the latest set was not sent and is acceptable.
    var hasUnsentSet: Bool {
        guard let latest = sets.last else { return false }
        return latest.version > subscribed && !isRefused(latest)
    }

    /// `true` if the gateway may send a bootstrap of the version: the view's own, or a later one that was sent.
    func isAsked(for version: UInt64) -> Bool { (settled...max(settled, subscribed)).contains(version) && !refused.contains(version) }

    private func isRefused(_ set: StoredSubscriptionSet) -> Bool {
        if case .error = set.state { true } else { refused.contains(set.version) }
    }

    /// The next step: the set to subscribe to, and the last changeset to send in it.
    struct Target {
        /// `nil` if there is no acceptable set.
        var set: StoredSubscriptionSet?
        var limit: UInt64
    }

    /// The set that the next changeset belongs to: the last one that the app committed before it. In another view the gateway would
    /// reject the changeset. Sets without pending changesets are skipped, up to the latest.
    /// - Returns: `nil` while only a read of the replica can decide.
    var target: Target? {
        // In one session, the gateway accepts no version below one that it was sent.
        let floor = awaiting ?? settled
        let usable = sets.filter { !isRefused($0) && $0.version > 0 && $0.version >= floor }
        guard let next = queue.first?.message.number else {
            return isExhausted ? Target(set: usable.last, limit: .max) : nil
        }
        // Without any set, changesets need no view. If every set was rejected, none can be sent.
        guard !usable.isEmpty else { return Target(set: nil, limit: sets.last?.version == 0 ? .max : 0) }
        // A set owns the changesets after its `changesetsBefore`, up to that of the next set.
        let owner = usable.lastIndex { $0.changesetsBefore < next } ?? 0
        return Target(set: usable[owner], limit: owner + 1 < usable.count ? usable[owner + 1].changesetsBefore : .max)
    }

    /// `true` if the gateway has everything that the app wrote.
    var isUploaded: Bool {
        isExhausted && queue.isEmpty && inFlight.isEmpty && isIngestExhausted && ingestInFlight.isEmpty && asked == nil
            && !mustReadChangesets && !mustReadIngest
    }

    /// Drops the changesets that were read and not sent, because the replica has changed them.
    mutating func rereadChangesets() {
        queue = []
        readThrough = sentThrough
        isExhausted = false
        mustReadChangesets = true
        // A read under way has seen the old changesets.
        isStale = asked != nil
    }
}
