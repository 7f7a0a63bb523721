import Logging
import ServiceLifecycle
import SluiceCore
import SluiceNet
import SluicePipeline
import Synchronization

/// Runs a session for each WebSocket that is accepted, as a child of its own that cannot hurt the others.
final class SessionService: Service {
    private let services: SessionServices
    private let arrivals: AsyncStream<SocketChannel>
    private let door: AsyncStream<SocketChannel>.Continuation
    private let open = Mutex<[ObjectIdentifier: SocketChannel]>([:])
    private let maximum: Int

    /// Connections accepted and not yet running; more are refused with `too-many-requests`.
    static let waitingConnections = 1_024

    /// - Parameter maximum: sessions at once (LIM: 5,000 in the original; default 20,000).
    init(services: SessionServices, maximum: Int = 20_000) {
        self.services = services
        self.maximum = maximum
        (arrivals, door) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.waitingConnections))
    }

    var count: Int { open.withLock(\.count) }

    /// Decides on an upgrade request; called on an event loop.
    func accept(_ request: UpgradeRequest) -> UpgradeDecision {
        let channel = SocketChannel(services: services) { [weak self] channel in
            self?.open.withLock { $0[ObjectIdentifier(channel)] = nil }
        }
        let isFull = open.withLock { open in
            guard open.count < maximum else { return true }
            open[ObjectIdentifier(channel)] = channel
            return false
        }
        guard !isFull, case .enqueued = door.yield(channel) else {
            open.withLock { $0[ObjectIdentifier(channel)] = nil }
            return .refuse(SluiceError(.tooManyRequests, "This gateway has \(maximum) sessions open.", fix: "Try again, or add a gateway."))
        }
        return .accept(channel)
    }

    /// Ends every session of a user at once (SES-5, AUTH-5).
    func disconnect(user: String, _ error: SluiceError) async {
        for channel in open.withLock({ Array($0.values) }) { await channel.disconnect(user: user, error) }
    }

    func run() async throws {
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                for await channel in arrivals { group.addTask { await channel.run() } }
                group.cancelAll()
            }
        } onGracefulShutdown: {
            self.door.finish()
        }
    }
}
