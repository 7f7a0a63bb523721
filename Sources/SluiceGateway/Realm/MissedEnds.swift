import SluiceRealm

/// The ends of users that arrive while the user of a connection is not known.
struct MissedEnds: Sendable {
    /// The maximum number of users.
    static let most = 64

    private var byUser: [String: RealmConnectionEnd] = [:]

    /// Notes the newest end of a user.
    ///
    /// - Returns: The end of the connection if there is no room; nil otherwise. It is `shutDown`, after which the client connects again:
    ///   the end of another user could log this one out.
    mutating func note(_ end: RealmConnectionEnd, of user: String) -> RealmConnectionEnd? {
        guard byUser.count < Self.most || byUser[user] != nil else { return .shutDown }
        byUser[user] = end
        return nil
    }

    /// Returns the end of the connection's user, and forgets all.
    mutating func take(_ user: String) -> RealmConnectionEnd? {
        defer { byUser = [:] }
        return byUser[user]
    }
}
