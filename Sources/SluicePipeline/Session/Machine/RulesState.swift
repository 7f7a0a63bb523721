import SluiceCore
import SluicePorts

/// The rules' last answer for a session, and the state of the question for the next one.
struct RulesState: Sendable {
    enum Availability: Hashable, Sendable {
        /// The last answer holds.
        case known
        /// A plugin gave no answer. The session sends nothing of its view, and requests of the client wait. The task of this number asks
        /// again.
        case unavailable(UInt64)
    }

    private(set) var availability = Availability.known
    /// The number of the newest question: it changes with the rules, the user's data and the subscription set.
    /// An answer to an older question may predate the newest rules.
    private(set) var question: UInt64 = 0
    /// The number of tasks so far that asked again.
    private var askings: UInt64 = 0
    /// The permissions that the rules returned last.
    private(set) var plan = SessionPlan(types: [:])
    /// The number of answers so far. A view built during a change of it mixes two answers.
    private(set) var answers: UInt64 = 0
    /// The queryable fields for which the rules were asked.
    private(set) var planned = QueryableFields()
    /// `plan`, bound to the schema of its last use; nil before the first.
    private var bound: SessionPermissions?

    /// Records permissions that the rules returned for classes with these queryable fields.
    mutating func answered(_ plan: SessionPlan, for fields: QueryableFields) {
        self.plan = plan
        planned = fields
        answers += 1
        bound = nil
    }

    /// Records that the question has changed.
    mutating func changeQuestion() { question += 1 }

    /// - Returns: the number of the task that asks again.
    mutating func becomeUnavailable() -> UInt64 {
        askings += 1
        availability = .unavailable(askings)
        return askings
    }

    mutating func becomeKnown() { availability = .known }

    /// Returns the permissions, bound to a schema.
    mutating func permissions(for schema: AppSchema) -> SessionPermissions {
        // In development mode, the queryable fields change while the classes stay.
        if var known = bound, known.schema.schema == schema.schema {
            known.schema = schema
            return known
        }
        let permissions = SessionPermissions(plan, schema: schema)
        bound = permissions
        return permissions
    }
}
