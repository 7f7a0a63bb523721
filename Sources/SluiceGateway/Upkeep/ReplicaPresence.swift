import Logging
import SluiceCore
import SluicePostgres

/// Records the use of connected client replicas, so that none gives way to a new one (`ReplicaBound`) or is forgotten.
struct ReplicaPresence: Sendable {
    /// Four records fit into the time after which a replica may give way, so that one that fails does no harm.
    private static let interval = UInt64(Limits.replicaIdleSeconds) / 4 * 1_000_000_000

    let clients: ClientStore
    let files: PostgresRealmClients
    /// Returns the client replicas with a session on this gateway, and the open client files of Realm's protocol.
    let connected: @Sendable () async -> (clients: [ClientID], files: [UInt64])
    let environment: any Environment
    let logger: Logger

    func run() async throws {
        while !Task.isCancelled {
            try await environment.sleep(nanoseconds: Self.interval)
            await record()
        }
    }

    /// Records the use once.
    func record() async {
        let connected = await connected()
        do {
            try await clients.recordUse(of: connected.clients)
            try await files.recordUse(of: connected.files)
        } catch {
            guard !Task.isCancelled else { return }
            logger.warning(
                "The use of connected client replicas could not be recorded. The gateway retries in half an hour.",
                metadata: ["error": "\(error)"])
        }
    }
}
