import Logging
import ServiceLifecycle
import SluiceCore
import SluiceNet
import SluicePipeline
import SluicePorts
import Synchronization

/// Runs a session for each accepted WebSocket. The work of a session runs in a child task of its own, so a failure ends no other session.
final class SessionService: Service {
    private let services: SessionServices
    private let watch: SessionWatch
    /// The channels with work and no task to do it, each at most once.
    private let calls: AsyncStream<SocketChannel>
    private let caller: AsyncStream<SocketChannel>.Continuation
    private let open = Mutex<[ObjectIdentifier: SocketChannel]>([:])
    private let isEnabled: Bool
    private let maximum: Int

    /// - Parameters:
    ///   - isEnabled: `true` if the app is synced. Otherwise the gateway rejects clients, which retry later.
    ///   - maximum: The maximum number of open sessions, 20,000 by default.
    init(services: SessionServices, watch: SessionWatch, isEnabled: Bool, maximum: Int = 20_000) {
        self.isEnabled = isEnabled
        self.services = services
        self.watch = watch
        self.maximum = maximum
        (calls, caller) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    var count: Int { open.withLock(\.count) }

    /// The bytes queued for all clients.
    var outboxBytes: Int { open.withLock { $0.values.reduce(0) { $0 + $1.bufferedBytes } } }

    /// Decides on an upgrade request. Called on an event loop.
    func accept(_ request: UpgradeRequest) -> UpgradeDecision {
        guard isEnabled else { return .refuse(SluiceError(.sessionDisabled, "Sync of this app is disabled.")) }
        let channel = SocketChannel(services: services, egress: watch.egress, onWork: { [caller] in caller.yield($0) }) {
            // Weak: the service owns the channel until the end of its connection.
            [weak self, watch] channel in
            watch.ended.add()
            self?.open.withLock { $0[ObjectIdentifier(channel)] = nil }
        }
        // The count and the insert share one lock, so concurrent upgrades cannot exceed the maximum.
        let isFull = open.withLock { open in
            guard open.count < maximum else { return true }
            open[ObjectIdentifier(channel)] = channel
            return false
        }
        if isFull {
            return .refuse(SluiceError(.tooManyRequests, "This gateway has \(maximum) sessions open.", fix: "Try again, or add a gateway."))
        }
        watch.started.add()
        return .accept(channel)
    }

    /// Ends sessions at once.
    func disconnect(_ scope: SessionScope, _ error: SluiceError) async {
        for channel in open.withLock({ Array($0.values) }) { await channel.disconnect(scope, error) }
    }

    /// Returns a user's sessions with their queries for a class, sorted by client id.
    ///
    /// - Throws: An error of the query language if a session's subscription set does not fit the current schema.
    func statuses(of type: Int, named name: String, user: String) async throws -> [ClientSession] {
        var sessions: [ClientSession] = []
        for channel in open.withLock({ Array($0.values) }) {
            guard let status = try await channel.status(of: type, named: name, user: user) else { continue }
            sessions.append(ClientSession(client: SessionClient(sluice: status.summary.sdk), status: status))
        }
        return sessions.sorted { $0.status.summary.client.rawValue < $1.status.summary.client.rawValue }
    }

    /// The connections of which `newest` reads the sessions. Others have not begun one yet.
    private static let looked = 200

    /// Returns the newest sessions, newest first.
    func newest(_ limit: Int) async -> [ListedSession] {
        var listed: [ListedSession] = []
        let channels = open.withLock { Array($0.values) }.sorted { $0.began > $1.began }
        for channel in channels.prefix(Self.looked) where listed.count < limit {
            guard let summary = await channel.summary else { continue }
            listed.append(ListedSession(client: SessionClient(sluice: summary.sdk), summary: summary, began: channel.began))
        }
        return listed
    }

    /// Notifies sessions of changed user data, or of changed rules if `user` is nil.
    func reconsider(user: String?) {
        for channel in open.withLock({ Array($0.values) }) { channel.reconsider(user: user) }
    }

    func run() async throws {
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                for await channel in calls { group.addTask { await channel.work() } }
                // The loop starts no more work. Idle channels end here; a busy one ends in its own task.
                group.cancelAll()
                for channel in open.withLock({ Array($0.values) }) { group.addTask { await channel.end() } }
            }
        } onGracefulShutdown: {
            self.caller.finish()
        }
    }
}
