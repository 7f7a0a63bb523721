import SluiceCore
import SluiceQuery

/// Why an object goes of which the server has nothing and the app nothing pending.
enum Leaving {
    /// The app knows it otherwise.
    case untold
    case known(LeftObject.Reason)
    /// It is not in what the bootstrap of the set brought.
    case unstaged(StoredSubscriptionSet)
}

/// Why an object is not in what a bootstrap brought, as far as the device can tell: what it last knew of the object does not meet
/// the subscriptions any more.
struct LeavingReason {
    /// Nil when the subscriptions of the class cannot be asked here.
    private let programs: [Program]?

    init(_ set: StoredSubscriptionSet, _ layout: TableLayout) {
        // A set that another has replaced meanwhile is not known any more.
        guard set.state != .superseded else {
            programs = nil
            return
        }
        let queries = set.subscriptions.filter { $0.type == layout.type.name }
        programs = try? queries.map { try Query.parse($0.query).bind(to: layout.type).compile() }
    }

    func of(_ row: Row) -> LeftObject.Reason {
        var buffer = RowBuffer()
        let stored = buffer.append(row)
        return buffer.withView(stored) { of($0) }
    }

    func of(_ row: RowView) -> LeftObject.Reason {
        guard let programs, !programs.contains(where: { $0.matches(row) }) else { return .leftView }
        return .leftQuery
    }
}
