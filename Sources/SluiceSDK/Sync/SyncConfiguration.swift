import Foundation

/// The part of a Realm's configuration that makes it a synced one.
public struct SyncConfiguration: Sendable {
    public let user: User
    /// What is done when the server does not know the file any more.
    public var clientResetMode: ClientResetMode
    /// Ends an opening that waits for the server when the connection fails, instead of trying on.
    public var cancelAsyncOpenOnNonFatalErrors: Bool
    public var initialSubscriptions: InitialSubscriptionsConfiguration?
    /// Nil: what is synced is chosen by subscriptions.
    public var partitionValue: AnyBSON? { nil }
}

/// The subscriptions that a file begins with.
public final class InitialSubscriptionsConfiguration: Sendable {
    public let callback: @Sendable (SyncSubscriptionSet) -> Void
    /// Runs the callback at every first open of the file in a process, not only when the file is new.
    public let rerunOnOpen: Bool

    public init(callback: @escaping @Sendable (SyncSubscriptionSet) -> Void, rerunOnOpen: Bool = false) {
        self.callback = callback
        self.rerunOnOpen = rerunOnOpen
    }
}

extension User {
    /// The configuration of this user's synced Realm; set its `objectTypes` before opening.
    /// - Parameters:
    ///   - clientResetMode: what is done when the server does not know the file any more.
    ///   - cancelAsyncOpenOnNonFatalErrors: ends an opening that waits for the server when the connection fails.
    public func flexibleSyncConfiguration(
        clientResetMode: ClientResetMode = .recoverUnsyncedChanges(), cancelAsyncOpenOnNonFatalErrors: Bool = false
    ) -> Realm.Configuration {
        configuration(clientResetMode, cancelAsyncOpenOnNonFatalErrors, nil)
    }

    /// The same with subscriptions that a new file begins with.
    /// - Parameters:
    ///   - initialSubscriptions: runs inside of an update of the subscription set.
    ///   - rerunOnOpen: run it at the first open in every process.
    public func flexibleSyncConfiguration(
        clientResetMode: ClientResetMode = .recoverUnsyncedChanges(), cancelAsyncOpenOnNonFatalErrors: Bool = false,
        initialSubscriptions: @escaping @Sendable (SyncSubscriptionSet) -> Void,
        rerunOnOpen: Bool = false
    ) -> Realm.Configuration {
        configuration(
            clientResetMode, cancelAsyncOpenOnNonFatalErrors,
            InitialSubscriptionsConfiguration(callback: initialSubscriptions, rerunOnOpen: rerunOnOpen))
    }

    @available(*, unavailable, message: "Use flexibleSyncConfiguration() with a subscription to the objects that have the value.")
    public func configuration(
        partitionValue: (any BSON)?, clientResetMode: ClientResetMode = .recoverUnsyncedChanges(),
        cancelAsyncOpenOnNonFatalErrors: Bool = false
    ) -> Realm.Configuration { flexibleSyncConfiguration() }

    @available(*, unavailable, message: "Use flexibleSyncConfiguration(), and the syncSession of the Realm that is opened with it.")
    public func session(forPartitionValue partitionValue: any BSON) -> SyncSession? { nil }

    private func configuration(
        _ mode: ClientResetMode, _ cancels: Bool, _ initial: InitialSubscriptionsConfiguration?
    ) -> Realm.Configuration {
        Realm.Configuration(
            fileURL: folder.appendingPathComponent("flx_sync_default.realm"),
            syncConfiguration: SyncConfiguration(
                user: self, clientResetMode: mode, cancelAsyncOpenOnNonFatalErrors: cancels, initialSubscriptions: initial))
    }

    /// Where this user's local files lie. Not in a folder `mongodb-realm`, as RealmSwift's are: a file that it has left there is of another
    /// format.
    var folder: URL { app.storage.appendingPathComponent(StorageLocation.component(id)) }
}
