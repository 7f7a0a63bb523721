package import SluiceCore
import SluiceQuery

/// An object that the server removed from the device.
package struct LeftObject: Hashable, Sendable {
    package enum Reason: Int64, Hashable, Sendable {
        case deleted = 1
        case leftQuery = 2
        case lostPermission = 3
        /// It is not in the view of a bootstrap, for an unknown one of the other reasons.
        case leftView = 0
    }

    /// The maximum number of objects reported for one commit.
    package static let most = 20_000

    package var object: ObjectKey
    package var reason: Reason

    package init(object: ObjectKey, reason: Reason) {
        self.object = object
        self.reason = reason
    }
}

/// The reason for an object's removal, for the case that neither the server nor a pending write has it.
enum Leaving {
    /// The app learns of it by other means.
    case untold
    case known(LeftObject.Reason)
    /// The bootstrap of the set did not contain it.
    case unstaged(StoredSubscriptionSet)
}

/// Determines the reason that a bootstrap does not contain an object, as far as the device can: the last known row may no longer match
/// the subscriptions.
struct LeavingReason {
    /// `nil` if the subscriptions of the class cannot be evaluated on the device.
    private let programs: [Program]?

    init(_ set: StoredSubscriptionSet, _ layout: TableLayout, in schema: Schema) {
        // The queries of a superseded set are no longer stored.
        guard set.state != .superseded else {
            programs = nil
            return
        }
        let queries = set.subscriptions.filter { $0.type == layout.type.name }
        programs = try? queries.map { try Query.parse($0.query).predicate(on: layout.type, in: schema).compile() }
    }

    func of(_ row: Row) -> LeftObject.Reason {
        var buffer = RowBuffer()
        let stored = buffer.append(row)
        return buffer.withView(stored) { of($0) }
    }

    func of(_ row: RowView) -> LeftObject.Reason {
        // A row that still matches was deleted, or the user lost permission; the bootstrap did not send which.
        guard let programs, !programs.contains(where: { $0.matches(row) }) else { return .leftView }
        return .leftQuery
    }
}
