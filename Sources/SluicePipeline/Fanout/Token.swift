import SluiceCore
import SluiceMatch
import SluiceWire

/// One change for one session, in eight bytes.
struct Token: Hashable {
    private var packed: UInt64

    init(record: Int, event: ViewEvent, change: Int) {
        packed = UInt64(record) << 36 | UInt64(change) << 8 | UInt64(event.rawValue)
    }

    var record: Int { Int(packed >> 36) }
    var change: Int { Int(packed >> 8) & 0xFFF_FFFF }
    var event: ViewEvent { ViewEvent(rawValue: UInt8(truncatingIfNeeded: packed)) ?? .updated }
}

/// What makes two sessions' messages equal. Sessions with field masks never share.
struct SharedKey: Hashable {
    var tokens: [Token]
    /// The subscriber whose messages nobody else gets.
    var alone: UInt32?
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
