import Logging
import ServiceLifecycle
import SluiceCore
import SluiceNet
import SluicePipeline
import Synchronization

/// Runs a session for each WebSocket that is accepted; whenever it has something to do, as a child of its own that cannot hurt
/// the others.
final class SessionService: Service {
    private let services: SessionServices
    private let watch: SessionWatch
    /// Those that have something to do and nobody yet who does it: each at most once.
    private let calls: AsyncStream<SocketChannel>
    private let caller: AsyncStream<SocketChannel>.Continuation
    private let open = Mutex<[ObjectIdentifier: SocketChannel]>([:])
    private let isEnabled: Bool
    private let maximum: Int

    /// - Parameters:
    ///   - isEnabled: whether the app is synced; clients are sent away otherwise, and come back later (LIFE-1).
    ///   - maximum: sessions at once (LIM: 5,000 in the original; default 20,000).
    init(services: SessionServices, watch: SessionWatch, isEnabled: Bool, maximum: Int = 20_000) {
        self.isEnabled = isEnabled
        self.services = services
        self.watch = watch
        self.maximum = maximum
        (calls, caller) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    var count: Int { open.withLock(\.count) }

    /// Bytes that wait for clients to read.
    var outboxBytes: Int { open.withLock { $0.values.reduce(0) { $0 + $1.bufferedBytes } } }

    /// Decides on an upgrade request; called on an event loop.
    func accept(_ request: UpgradeRequest) -> UpgradeDecision {
        guard isEnabled else { return .refuse(SluiceError(.sessionDisabled, "Sync of this app is disabled.")) }
        let channel = SocketChannel(services: services, egress: watch.egress, onWork: { [caller] in caller.yield($0) }) {
            [weak self, watch] channel in
            watch.ended.add()
            self?.open.withLock { $0[ObjectIdentifier(channel)] = nil }
        }
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

    /// Ends every session of a user at once (SES-5, AUTH-5); nil: all there are.
    func disconnect(user: String?, _ error: SluiceError) async {
        for channel in open.withLock({ Array($0.values) }) { await channel.disconnect(user: user, error) }
    }

    /// What a user's sessions ask for of a class, the oldest device first.
    /// - Throws: an error of the query language when a session's set does not fit the schema as it is now.
    func statuses(of type: Int, named name: String, user: String) async throws -> [SessionStatus] {
        var statuses: [SessionStatus] = []
        for channel in open.withLock({ Array($0.values) }) {
            if let status = try await channel.status(of: type, named: name, user: user) { statuses.append(status) }
        }
        return statuses.sorted { $0.client.rawValue < $1.client.rawValue }
    }

    /// Has sessions take up what has changed: the data of a user, or the rules of all.
    func reconsider(user: String?) {
        for channel in open.withLock({ Array($0.values) }) { channel.reconsider(user: user) }
    }

    func run() async throws {
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                for await channel in calls { group.addTask { await channel.work() } }
                group.cancelAll()
                for channel in open.withLock({ Array($0.values) }) { group.addTask { await channel.end() } }
            }
        } onGracefulShutdown: {
            self.caller.finish()
        }
    }
}
