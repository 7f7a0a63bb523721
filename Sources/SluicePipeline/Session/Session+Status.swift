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
    /// The objects of the class that the client has; nil: none.
    package var view: Predicate?
}

extension Session {
    /// - Parameter type: its index in the schema.
    /// - Returns: nil when the session belongs to somebody else, or has not begun.
    package func status(of type: Int, named name: String, user: String) -> SessionStatus? {
        guard state.phase == .open, self.user?.user.id == user, let file else { return nil }
        return SessionStatus(
            client: file.id, version: set.version, isLive: !isBuilding && set.version > 0 && view.version == set.version,
            queries: set.queries.filter { $0.type == name }.map(\.text), view: view.type(type)?.predicate)
    }
}
