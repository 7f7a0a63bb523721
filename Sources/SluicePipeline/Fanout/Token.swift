import SluiceCore
import SluiceMatch
import SluiceWire

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
