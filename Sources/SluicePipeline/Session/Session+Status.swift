package import SluiceCore
import SluicePorts
package import SluiceQuery
import SluiceWire

/// The client and the subscription set of an open session.
package struct SessionSummary: Sendable {
    package var user: String
    package var client: ClientID
    /// The SDK and the app as the client names them, in printable characters.
    package var sdk: String
    /// The version of the set requested last; 0 before the first.
    package var version: UInt64
    /// `true` if the view of that version is live.
    package var isLive: Bool
    /// The number of queries in the set.
    package var queries: Int
}

/// The subscriptions of a session on one class and the resulting view, for explanations.
package struct SessionStatus: Sendable {
    package var summary: SessionSummary
    /// The queries of the set on the class.
    package var queries: [String]
    /// The questions to the rules about the whole set.
    package var inquiry: [(type: String, query: String)]
    /// The indices in `inquiry` of the queries on the class.
    package var own: [Int]
    /// The index in `inquiry` of the question about the class as a link target; nil if no query includes it.
    package var included: Int?
    /// The predicate of the client's objects of the class; nil for none.
    package var view: Predicate?
}

extension Session {
    /// The client and its subscription set; nil unless the session is open.
    package var summary: SessionSummary? {
        guard machine.isOpen, let user, let file else { return nil }
        let (views, set) = (machine.views, machine.views.subscriptions)
        return SessionSummary(
            user: user.user.id, client: file.id, sdk: sdk, version: set.version,
            isLive: !views.isWorking && set.version > 0 && views.live.version == set.version, queries: set.message.queries.count)
    }

    /// Returns the status for one class.
    /// - Parameter type: The index in the schema.
    /// - Returns: nil if the session belongs to another user or is not open.
    /// - Throws: a query error if the set does not fit the current schema.
    package func status(of type: Int, named name: String, user: String) throws -> SessionStatus? {
        guard let summary, summary.user == user else { return nil }
        let (views, set) = (machine.views, machine.views.subscriptions)
        let inquiry = try ViewBuilder.inquiry(about: set.message, services.authority.current())
        let about = inquiry.all.indices.filter { inquiry.all[$0].type == name }
        let queries = set.message.queries.count
        return SessionStatus(
            summary: summary, queries: set.message.queries.filter { $0.type == name }.map(\.text), inquiry: inquiry.all,
            own: about.filter { $0 < queries }, included: about.first { $0 >= queries && $0 < queries + inquiry.included.count },
            view: views.live.type(type)?.predicate)
    }
}
