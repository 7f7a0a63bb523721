/// An event in the life of a user's account.
package struct UserEvent: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The user has registered, and the address is to be confirmed. There is no account yet.
        case registered
        /// The account exists. A registration that needs a confirmation makes it with the confirmation.
        case created
        case loggedIn = "logged in"
        case disabled
        case enabled
        case deleted
    }

    /// The number of the event. Of two events of a user, the later has the greater one.
    package var id: Int64
    package var kind: Kind
    /// The account at the time of the event, without its password. That of a deletion is the last one.
    package var account: UserAccount
    /// The provider of the login, or of the account.
    package var provider: String
    /// The time of the event, in milliseconds since 1970.
    package var milliseconds: Int64

    // The progress of the event's triggers.
    /// The triggers that have run.
    package var done: [String] = []
    /// The failed attempts of the next trigger.
    package var attempts = 0

    package init(id: Int64, kind: Kind, account: UserAccount, provider: String, milliseconds: Int64) {
        self.id = id
        self.kind = kind
        self.account = account
        self.provider = provider
        self.milliseconds = milliseconds
    }
}

/// The receivers of users' events. An app may have none, one or both.
package enum UserEventDestination: Hashable, Sendable, CaseIterable {
    case topic, triggers
}

/// The events that wait for delivery, as the port of their relay. The store adds an event in the transaction that causes it.
package protocol UserEventQueue: Sendable {
    /// Takes the oldest event of each of some users, of those whose triggers have not run. No other caller gets an event of these users,
    /// until the event is finished or postponed, or the lease has expired.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of events.
    ///   - seconds: The time of the lease.
    func take(_ limit: Int, leaseSeconds seconds: Int) async throws -> [UserEvent]
    /// Takes the oldest event of each of some users, of those that the topic does not have. Triggers may have it at the same time.
    /// No other caller gets an event of these users for the topic, until it is finished or the lease has expired.
    func takeUnpublished(_ limit: Int, leaseSeconds seconds: Int) async throws -> [UserEvent]
    /// Ends the lease of events that the topic did not take, after a time.
    func keep(unpublished ids: [Int64], seconds: Int) async throws
    /// Stores the progress of an event's triggers, and keeps it from them for a time.
    func postpone(_ event: UserEvent, seconds: Int) async throws
    /// Stores a call of a trigger that is given up. The caller stores the event's progress.
    func bury(_ event: UserEvent, trigger: String, reason: String) async throws
    /// Notes that events have reached a destination. Removes those that have reached all destinations of the app.
    ///
    /// An event that another gateway holds for a destination that this app does not have stays: that gateway has another configuration.
    /// - Parameter destinations: The destinations of the app.
    /// - Returns: The removed events.
    func finish(_ ids: [Int64], at destination: UserEventDestination, of destinations: Set<UserEventDestination>) async throws -> Set<Int64>
    /// Removes the oldest events that have reached all destinations of the app, as `finish` does.
    ///
    /// - Returns: The number of removed events, by kind.
    func discard(_ limit: Int, of destinations: Set<UserEventDestination>) async throws -> [UserEvent.Kind: Int]
    /// Returns the age of the oldest event, in seconds; 0 if none waits.
    func lag() async throws -> Double
}
