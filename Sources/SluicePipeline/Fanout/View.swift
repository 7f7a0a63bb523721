import SluiceCore
package import SluiceQuery
import SluiceWire

/// What one session sees of one type: its subscriptions of the type, ORed, within what it may read.
package struct TypeView: Sendable {
    /// Index in `Schema.types`.
    package var type: Int
    package var predicate: Predicate
    /// By property index; nil is everything.
    package var mask: [Bool]?
    /// Stands for what the client is sent of a row: where it is read from, the properties that the client has, the mask.
    package var form: Fingerprint
    /// What was asked for, where the rules show less of it: an object that leaves and is still asked for was taken by the rules.
    package let asked: Predicate?
    private let askedProgram: Program?

    /// Why an object is not in it any more that is there as `after`.
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

/// What the rules said of a user and a subscription set.
struct Ruling: Hashable, Sendable {
    var plan: SessionPlan
    /// Stands for what they narrow the queries by.
    var cuts: Fingerprint
}

/// A subscription set bound to the schema and cut to the session's permissions.
package struct View: Sendable {
    package var version: UInt64
    package var types: [TypeView]
    /// The partitions of the log in which its changes lie, and those of `watched`.
    package var partitions: [LogPartition]
    /// What the session may write where that is more than it reads: a query's objects beyond its limit. By type.
    package var writable: [Int: Predicate]
    /// What decides which objects are among the first of a query, or are linked to: after a change of it the view is built anew.
    package var watched: [TypeView]
    /// What the rules said that it is made by; nil: nothing.
    var ruling: Ruling?

    package init(
        version: UInt64, types: [TypeView], partitions: [LogPartition], writable: [Int: Predicate] = [:], watched: [TypeView] = []
    ) {
        self.version = version
        self.types = types
        self.partitions = partitions
        self.writable = writable
        self.watched = watched
    }

    /// Whether it has the same objects as another, as far as the conditions say.
    func selectsSame(as other: View) -> Bool {
        types.elementsEqual(other.types) { $0.type == $1.type && $0.predicate == $1.predicate && $0.mask == $1.mask && $0.form == $1.form }
            && watched.elementsEqual(other.watched) { $0.type == $1.type && $0.predicate == $1.predicate }
    }

    package static let empty = View(version: 0, types: [], partitions: [])

    package func type(_ index: Int) -> TypeView? { types.first { $0.type == index } }
}
