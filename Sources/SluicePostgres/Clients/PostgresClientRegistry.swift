package import SluiceCore
package import SluicePorts

/// The client replicas in the companion schema.
package struct PostgresClientRegistry: ClientRegistry {
    private let clients: ClientStore
    private let rejected: WriteRejectionStore

    package init(pool: PostgresPool, bound: ReplicaBound = ReplicaBound()) {
        clients = ClientStore(pool: pool, bound: bound)
        rejected = WriteRejectionStore(pool: pool)
    }

    package func allot(user: String) async throws -> ClientFile {
        var generator = SystemRandomNumberGenerator()
        let secret = (0..<2).flatMap { _ in unsafe withUnsafeBytes(of: generator.next() as UInt64) { unsafe Array($0) } }
        return try await clients.allot(user: user, secret: secret)
    }

    package func open(id: ClientID, secret: [UInt8], user: String, oldestBase: LSN, seen: SeenHistory) async throws -> ClientFile {
        try await clients.open(id: id, secret: secret, user: user, oldestBase: oldestBase, seen: seen)
    }

    package func recordIngest(id: ClientID, number: UInt64, answer: [UInt8]?) async throws {
        try await clients.recordIngest(id: id, number: number, answer: answer)
    }

    package func recordIngest(
        id: ClientID, number: UInt64, rejected: [WriteRejection]
    ) async throws -> [(id: UInt64, writes: [WriteRejection])] {
        try await clients.recordIngest(id: id, number: number, rejected: rejected)
    }

    package func ingestAnswer(id: ClientID, number: UInt64) async throws -> [UInt8]? {
        try await clients.ingestAnswer(id: id, number: number)
    }

    package func openCompensations(id: ClientID, after last: UInt64) async throws -> [(id: UInt64, writes: [WriteRejection])] {
        try await rejected.open(client: id, after: last).map { ($0.compensation, $0.writes) }
    }

    package func acknowledgeCompensations(id: ClientID, upTo: UInt64) async throws {
        try await rejected.acknowledge(client: id, upTo: upTo)
    }

    package func keepReported(id: ClientID, _ writes: [WriteRejection]) async throws {
        try await rejected.keepReported(client: id, writes)
    }
}
