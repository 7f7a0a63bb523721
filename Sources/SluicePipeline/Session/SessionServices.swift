package import Logging
package import SluiceCore

/// What every session of a gateway works with.
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
    /// Whether a client may upload in a client reset what it had not uploaded before.
    package var isRecoveryAllowed: Bool
    package var observer: any SessionObserver
    /// Seals what clients keep of their views.
    package var sealer: any Sealer
    package let files = FileSessions()
    /// After a change of the rules so many sessions at a time ask the plugins anew, whose queues are bounded.
    package let reviews = Turnstile(width: 16)

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

/// How the types of the present schema lie in the log.
package protocol LayoutProvider: Sendable {
    /// Makes missing topics; cheap when there are none.
    func layout(of schema: AppSchema) async throws -> Partitioning
}
