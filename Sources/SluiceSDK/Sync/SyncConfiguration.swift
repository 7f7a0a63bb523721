import Foundation

/// The sync options of a Realm's configuration.
public struct SyncConfiguration: Sendable {
    /// The user whose data the Realm syncs.
    public let user: User
    /// The handling of a file that the server does not know.
    public var clientResetMode: ClientResetMode
    /// `true` if an opening that waits for the server fails on a connection error instead of retrying. Default `false`.
    public var cancelAsyncOpenOnNonFatalErrors: Bool
    /// The subscriptions that a new file starts with; nil if there are none.
    public var initialSubscriptions: InitialSubscriptionsConfiguration?
    /// Always nil: subscriptions determine the data of a Realm.
    public var partitionValue: AnyBSON? { nil }
}

/// The initial subscriptions of a file.
public final class InitialSubscriptionsConfiguration: Sendable {
    /// Adds subscriptions. It runs within an update of the set, on the thread that opens the Realm.
    public let callback: @Sendable (SyncSubscriptionSet) -> Void
    /// `true` to run the callback at the first opening in each process, not only for a new file. Default `false`.
    public let rerunOnOpen: Bool

    public init(callback: @escaping @Sendable (SyncSubscriptionSet) -> Void, rerunOnOpen: Bool = false) {
        self.callback = callback
        self.rerunOnOpen = rerunOnOpen
    }
}

extension User {
    /// Returns the configuration of this user's synced Realm. Set its `objectTypes` before opening.
    /// - Parameters:
    ///   - clientResetMode: The handling of a file that the server does not know.
    ///   - cancelAsyncOpenOnNonFatalErrors: `true` if an opening that waits for the server fails on a connection error.
    public func flexibleSyncConfiguration(
        clientResetMode: ClientResetMode = .recoverUnsyncedChanges(), cancelAsyncOpenOnNonFatalErrors: Bool = false
    ) -> Realm.Configuration {
        configuration(clientResetMode, cancelAsyncOpenOnNonFatalErrors, nil)
    }

    /// Returns the configuration with initial subscriptions for a new file.
    /// - Parameters:
    ///   - initialSubscriptions: Adds the subscriptions. It runs within an update of the set, during the opening.
    ///   - rerunOnOpen: `true` to run it at the first opening in each process.
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

    /// The folder of this user's local files. It differs from RealmSwift's `mongodb-realm`, whose files have another format.
    var folder: URL { app.storage.appendingPathComponent(StorageLocation.component(id)) }
}
