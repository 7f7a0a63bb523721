import SluiceCore
package import SluicePorts
package import SluiceQuery
import SluiceWire

/// One session's view of one class: its subscriptions of the class, ORed, within its permissions.
package struct TypeView: Sendable {
    /// The index in `Schema.types`.
    package var type: Int
    package var predicate: Predicate
    /// The visible properties, by index; nil shows all.
    package var mask: [Bool]?
    /// A hash of the form of rows sent to the client: source, the client's properties and mask.
    package var form: Fingerprint
    /// The requested predicate, if the rules narrow it; nil otherwise. An object that leaves but still matches it was hidden by the
    /// rules.
    package let asked: Predicate?
    private let askedProgram: Program?

    /// Returns the reason why an object with the new image `after` is no longer in the view.
    func reason(after: RowView) -> ViewEvent { askedProgram?.matches(after) == true ? .lostPermission : .leftQuery }

    package init(type: Int, predicate: Predicate, mask: [Bool]?, form: Fingerprint = Fingerprint(), asked: Predicate? = nil) {
        self.type = type
        self.predicate = predicate
        self.mask = mask
        self.form = form
        self.asked = asked
        askedProgram = asked?.compile()
    }
}

/// The rules' answer for a user and a subscription set.
struct PermissionSnapshot: Hashable, Sendable {
    var plan: SessionPlan
    /// A hash of the predicates that narrow the queries.
    var cuts: Fingerprint
}

/// A subscription set, bound to the schema and restricted to the session's permissions.
package struct View: Sendable {
    package var version: UInt64
    package var types: [TypeView]
    /// The log partitions that carry its changes and those of `watched`.
    package var partitions: [LogPartition]
    /// The writable predicates that exceed the readable ones, by class: a limited query without its limit.
    package var writable: [Int: Predicate]
    /// The objects that determine the members of limited queries and included links. A change to one of them rebuilds the view.
    package var watched: [TypeView]
    /// The rules' answer that the view was built from; nil for none.
    var ruling: PermissionSnapshot?

    package init(
        version: UInt64, types: [TypeView], partitions: [LogPartition], writable: [Int: Predicate] = [:], watched: [TypeView] = []
    ) {
        self.version = version
        self.types = types
        self.partitions = partitions
        self.writable = writable
        self.watched = watched
    }

    /// Returns `true` if both views select the same objects, judged by their predicates.
    func selectsSame(as other: View) -> Bool {
        types.elementsEqual(other.types) { $0.type == $1.type && $0.predicate == $1.predicate && $0.mask == $1.mask && $0.form == $1.form }
            && watched.elementsEqual(other.watched) { $0.type == $1.type && $0.predicate == $1.predicate }
    }

    package static let empty = View(version: 0, types: [], partitions: [])

    package func type(_ index: Int) -> TypeView? { types.first { $0.type == index } }
}
