import SluiceCore
import SluiceMatch
import SluicePorts
import SluiceWire

/// A session's view that receives changes, live or staged.
struct Subscriber {
    let channel: any SessionChannel
    let view: View
    /// The client whose own changesets are attributed; nil for none.
    let client: ClientID?
    /// The staged changes during a bootstrap; nil once live. The subscriber to be replaced stays live meanwhile.
    var staged: StagedChanges?
    /// The changes of the current batch, packed by `Token`.
    var tokens: [Token] = []
    /// `true` if changesets of the client itself are among them.
    var hasOwn = false
    /// The position that the client waits for; nil if none.
    var wanted: LSN?

    /// Returns the client's own changeset number of a change; 0 for none.
    func changeset(of change: DecodedChange) -> UInt64 {
        guard let origin = change.origin, origin.client == client else { return 0 }
        return origin.changeset
    }
}

/// One change for one session, in eight bytes: 28 bits of record index, 28 bits of change index and 8 bits of event.
struct Token: Hashable {
    private var packed: UInt64

    init(record: Int, event: ViewEvent, change: Int) {
        packed = UInt64(record) << 36 | UInt64(change) << 8 | UInt64(event.rawValue)
    }

    var record: Int { Int(packed >> 36) }
    var change: Int { Int(packed >> 8) & 0xFFF_FFFF }
    var event: ViewEvent { ViewEvent(rawValue: UInt8(truncatingIfNeeded: packed)) ?? .updated }
}

/// The key of an encoded message. Sessions with equal keys receive the same frame; a masked session has a key of its own.
struct SharedKey: Hashable {
    var tokens: [Token]
    /// The subscriber whose messages are not shared; nil if they are.
    var alone: UInt32?
    /// `true` for subscribers in this process, whose messages name the changed properties.
    var isLocal = false
}

extension ViewEvent {
    init(transition: MatchResult.Transition, operation: ChangeOperation) {
        switch transition {
        case .entered: self = .entered
        case .updated: self = .updated
        case .left: self = operation == .delete ? .deleted : .leftQuery
        }
    }
}
