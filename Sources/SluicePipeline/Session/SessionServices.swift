package import Logging
package import SluiceCore
package import SluicePorts

/// The services shared by all sessions of a gateway.
package struct SessionServices: Sendable {
    package private(set) var authenticator: any Authenticator
    package let clients: any ClientRegistry
    package let authority: any SchemaAuthority
    package let rules: any Rules
    package let snapshots: any SnapshotStore
    package let committer: Committer
    package let ingest: any IngestIntake
    package let feed: Feed
    package let fanout: Fanout
    package let resume: LogResume
    package let layout: any LayoutProvider
    package private(set) var frames: any FrameMaker
    package let environment: any Environment
    package let logger: Logger
    /// `true` if a client may upload its pending changesets after a client reset.
    package let isRecoveryAllowed: Bool
    package let observer: any SessionObserver
    /// Seals the view records that clients keep.
    package let sealer: any Sealer
    package let files = ClientSessions()
    package let users: UserSessions
    /// Limits the sessions that ask the plugins concurrently after a rule change, because the plugins' queues are bounded.
    package let reviews = AsyncSemaphore(width: 16)

    /// The services that decide on the client and its rights.
    package struct Access: Sendable {
        package var authenticator: any Authenticator
        package var authority: any SchemaAuthority
        package var rules: any Rules
        /// Seals the view records that clients keep.
        package var sealer: any Sealer
        package var users: UserSessions

        package init(
            authenticator: any Authenticator, authority: any SchemaAuthority, rules: any Rules, sealer: any Sealer = NoSealer(),
            users: UserSessions = UserSessions()
        ) {
            self.users = users
            self.authenticator = authenticator
            self.authority = authority
            self.rules = rules
            self.sealer = sealer
        }
    }

    /// The services that store writes and read snapshots.
    package struct Storage: Sendable {
        package var clients: any ClientRegistry
        package var snapshots: any SnapshotStore
        package var committer: Committer
        package var ingest: any IngestIntake

        package init(clients: any ClientRegistry, snapshots: any SnapshotStore, committer: Committer, ingest: any IngestIntake) {
            self.clients = clients
            self.snapshots = snapshots
            self.committer = committer
            self.ingest = ingest
        }
    }

    /// The services that bring changes to the client.
    package struct Delivery: Sendable {
        package var feed: Feed
        package var fanout: Fanout
        package var resume: LogResume
        package var layout: any LayoutProvider
        package var frames: any FrameMaker

        package init(feed: Feed, fanout: Fanout, resume: LogResume, layout: any LayoutProvider, frames: any FrameMaker) {
            self.feed = feed
            self.fanout = fanout
            self.resume = resume
            self.layout = layout
            self.frames = frames
        }
    }

    package init(
        access: Access, storage: Storage, delivery: Delivery, environment: any Environment, logger: Logger,
        isRecoveryAllowed: Bool = true, observer: any SessionObserver = NoSessionObserver()
    ) {
        authenticator = access.authenticator
        authority = access.authority
        rules = access.rules
        users = access.users
        sealer = access.sealer
        clients = storage.clients
        snapshots = storage.snapshots
        committer = storage.committer
        ingest = storage.ingest
        feed = delivery.feed
        fanout = delivery.fanout
        resume = delivery.resume
        layout = delivery.layout
        frames = delivery.frames
        self.environment = environment
        self.logger = logger
        self.isRecoveryAllowed = isRecoveryAllowed
        self.observer = observer
    }

    /// Returns the services for sessions whose reader is in this process.
    package func local(_ authenticator: any Authenticator) -> SessionServices {
        var services = self
        services.authenticator = authenticator
        services.frames = MessageFrames()
        return services
    }
}

/// Provides the mapping of the current schema's classes to topics and partitions.
package protocol LayoutProvider: Sendable {
    /// Creates missing topics and returns the layout. Cheap if no topic is missing.
    func layout(of schema: AppSchema) async throws -> Partitioning
}
