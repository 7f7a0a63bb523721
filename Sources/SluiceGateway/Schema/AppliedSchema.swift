import SluiceCore
import SluicePostgres
import Synchronization

/// The schema that the app has had until now, as the database remembers it, beside the one of an app directory.
final class AppliedSchema: Sendable {
    private let store: AppSchemaStore
    /// The version that this gateway works with, or has looked at.
    private let known = Mutex<UInt64>(0)

    init(store: AppSchemaStore) { self.store = store }

    /// The newest; nil when none has been recorded.
    func newest() async throws -> (version: UInt64, record: AppSchemaRecord)? {
        guard let (version, definition) = try await store.newest() else { return nil }
        return (version, try AppSchemaRecord(definition))
    }

    /// - Throws: `breakingSchemaChange` naming all that the app directory takes away.
    func requireNoBreak(_ app: AppConfiguration) async throws {
        guard let (version, record) = try await newest() else { return }
        if let refusal = SchemaComparison(from: record, to: AppSchemaRecord(app)).refusal(version: version) { throw refusal }
    }

    /// Records the app directory's schema when it adds something. Gateways that start at once agree: who comes later finds it there.
    func record(_ app: AppConfiguration) async throws {
        let new = AppSchemaRecord(app)
        while true {
            let newest = try await newest()
            if let newest {
                let comparison = SchemaComparison(from: newest.record, to: new)
                if let refusal = comparison.refusal(version: newest.version) { throw refusal }
                guard !comparison.changes.isEmpty else { return known.withLock { $0 = newest.version } }
            }
            if let version = try await store.record(new.json, after: newest?.version ?? 0) { return known.withLock { $0 = version } }
        }
    }

    func newestVersion() async throws -> UInt64 { try await store.newestVersion() }

    /// A schema that was recorded since this gateway last looked; each is told once.
    func news() async throws -> (version: UInt64, record: AppSchemaRecord)? {
        guard try await newestVersion() > known.withLock({ $0 }), let newest = try await newest() else { return nil }
        return newest
    }

    /// Makes a version no news any more.
    func took(_ version: UInt64) { known.withLock { $0 = max($0, version) } }

    /// Whether this gateway works with a version, or has looked at it.
    func knows(_ version: UInt64) -> Bool { known.withLock { $0 >= version } }
}
