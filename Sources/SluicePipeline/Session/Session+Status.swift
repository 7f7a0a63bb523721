package import SluiceCore
package import SluiceQuery
import SluiceWire

/// What a session asks for of a class, and what it is given: for explanations.
package struct SessionStatus: Sendable {
    package var client: ClientID
    /// Of the set that was asked for last, 0 before the first.
    package var version: UInt64
    /// Whether the view of that version is live.
    package var isLive: Bool
    /// The set's queries on the class.
    package var queries: [String]
    /// What the rules are asked about all of the set.
    package var inquiry: [(type: String, query: String)]
    /// Where in it the queries on the class are.
    package var own: [Int]
    /// Where in it the class is asked about because objects of it come along by links; nil when none do.
    package var included: Int?
    /// The objects of the class that the client has; nil: none.
    package var view: Predicate?
}

extension Session {
    /// - Parameter type: its index in the schema.
    /// - Returns: nil when the session belongs to somebody else, or has not begun.
    /// - Throws: an error of the query language when the set does not fit the schema as it is now.
    package func status(of type: Int, named name: String, user: String) throws -> SessionStatus? {
        guard state.phase == .open, self.user?.user.id == user, let file else { return nil }
        let inquiry = try ViewBuilder.inquiry(about: set, services.authority.current())
        let about = inquiry.all.indices.filter { inquiry.all[$0].type == name }
        let queries = set.queries.count
        return SessionStatus(
            client: file.id, version: set.version, isLive: !isBuilding && set.version > 0 && view.version == set.version,
            queries: set.queries.filter { $0.type == name }.map(\.text), inquiry: inquiry.all, own: about.filter { $0 < queries },
            included: about.first { $0 >= queries && $0 < queries + inquiry.included.count }, view: view.type(type)?.predicate)
    }
}
