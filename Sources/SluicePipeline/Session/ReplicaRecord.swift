import SluiceCore
import SluicePorts
import SluiceWire

/// A session's knowledge of its client replica: the rows that it has, and the rows that it has staged.
struct ReplicaRecord {
    /// The client view record; nil if unknown.
    var held: ClientViewRecord?
    /// The offer of the client's Hello; nil once a bootstrap has begun, or if its history is unproven.
    var offer: ResumeOffer?
    /// The staged rows of unfinished bootstraps.
    var progress = BootstrapProgress()
    var seen = ClientViewHistory()
}

/// A client's offer to resume its last session from the log.
struct ResumeOffer {
    var held: PBHeld
    /// The position that the replica shows.
    var applied: LSN
    /// A transaction that proves the history of `applied`.
    var anchor: HistoryAnchor
}
