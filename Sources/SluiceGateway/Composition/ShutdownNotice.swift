import Logging
import ServiceLifecycle
import SluiceCore
import SluiceNet

/// The first stage of a graceful shutdown: `/ready` returns 503 while the gateway still serves.
///
/// It must be the last service of the group, as services end in the opposite order.
struct ShutdownNotice: Service {
    /// The interval between two looks at the connections.
    private static let interval: UInt64 = 50_000_000

    let readiness: Readiness
    let clients: NetServer
    let grace: GracePeriod
    let environment: any Environment
    let logger: Logger

    /// Waits for the shutdown, and then until the notice is over or the client port has no connection.
    func run() async throws {
        do { try await gracefulShutdown() } catch { return }
        readiness.set(
            "gateway",
            SluiceError(.shuttingDown, "The gateway is stopping.", fix: "Send clients to another gateway until this one starts again."))
        logger.info(
            "The gateway is stopping.", metadata: ["grace_ms": "\(grace.milliseconds)", "connections": "\(clients.connectionCount)"])
        let end = environment.monotonicNanoseconds() + UInt64(grace.noticeMilliseconds) * 1_000_000
        while clients.connectionCount > 0, environment.monotonicNanoseconds() < end {
            guard (try? await environment.sleep(nanoseconds: Self.interval)) != nil else { return }
        }
    }
}
