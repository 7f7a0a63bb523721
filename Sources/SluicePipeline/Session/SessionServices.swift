package import Logging
package import SluiceCore
package import SluicePorts

/// The services shared by all sessions of a gateway.
package struct SessionServices: Sendable {
    package var app: String
    package var authenticator: any Authenticator
    package var clients: any ClientRegistry
    package var authority: any SchemaAuthority
    package var rules: any Rules
    package var snapshots: any SnapshotStore
    package var committer: Committer
    package var ingest: any IngestIntake
    package var feed: Feed
    package var fanout: Fanout
    package var resume: LogResume
    package var layout: any LayoutProvider
    package var frames: any FrameMaker
    package var environment: any Environment
    package var logger: Logger
    /// `true` if a client may upload its pending changesets after a client reset.
    package var isRecoveryAllowed: Bool
    package var observer: any SessionObserver
    /// Seals the view records that clients keep.
    package var sealer: any Sealer
    package let files = ClientSessions()
    /// Limits the sessions that ask the plugins concurrently after a rule change, because the plugins' queues are bounded.
    package let reviews = AsyncSemaphore(width: 16)

    package init(
        app: String, authenticator: any Authenticator, clients: any ClientRegistry, authority: any SchemaAuthority,
        rules: any Rules, snapshots: any SnapshotStore, committer: Committer, ingest: any IngestIntake, feed: Feed,
        fanout: Fanout, resume: LogResume, layout: any LayoutProvider, frames: any FrameMaker, environment: any Environment, logger: Logger,
        isRecoveryAllowed: Bool = true, observer: any SessionObserver = NoSessionObserver(), sealer: any Sealer = NoSealer()
    ) {
        self.app = app
        self.authenticator = authenticator
        self.clients = clients
        self.authority = authority
        self.rules = rules
        self.snapshots = snapshots
        self.committer = committer
        self.ingest = ingest
        self.feed = feed
        self.fanout = fanout
        self.resume = resume
        self.layout = layout
        self.frames = frames
        self.environment = environment
        self.logger = logger
        self.isRecoveryAllowed = isRecoveryAllowed
        self.observer = observer
        self.sealer = sealer
    }
}

/// Provides the mapping of the current schema's classes to topics and partitions.
package protocol LayoutProvider: Sendable {
    /// Creates missing topics and returns the layout. Cheap if no topic is missing.
    func layout(of schema: AppSchema) async throws -> Partitioning
}
