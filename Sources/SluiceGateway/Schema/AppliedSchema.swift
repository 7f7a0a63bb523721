import SluiceCore
package import SluicePostgres
import Synchronization

/// The recorded schemas of the app, compared with app directories.
package final class AppliedSchema: Sendable {
    private let store: AppSchemaStore
    /// The newest version that this gateway uses or has tried to adopt.
    private let known = Mutex<UInt64>(0)

    package init(store: AppSchemaStore) { self.store = store }

    /// Returns the newest recorded schema; nil if there is none.
    package func newest() async throws -> (version: UInt64, record: AppSchemaRecord)? {
        guard let (version, definition) = try await store.newest() else { return nil }
        return (version, try AppSchemaRecord(definition))
    }

    /// Checks that an app directory removes nothing.
    ///
    /// - Throws: `breakingSchemaChange` with all removals.
    func requireNoBreak(_ app: AppConfiguration) async throws {
        guard let (version, record) = try await newest() else { return }
        if let refusal = SchemaComparison(from: record, to: AppSchemaRecord(app)).refusal(version: version) { throw refusal }
    }

    /// Records the app directory's schema if it adds something. If several gateways start at once, one records it and the others find it
    /// recorded.
    ///
    /// - Throws: `breakingSchemaChange`.
    func record(_ app: AppConfiguration) async throws {
        let new = AppSchemaRecord(app)
        while true {
            let newest = try await newest()
            if let newest {
                let comparison = SchemaComparison(from: newest.record, to: new)
                if let refusal = comparison.refusal(version: newest.version) { throw refusal }
                guard !comparison.changes.isEmpty else { return known.withLock { $0 = newest.version } }
            }
            // nil if another gateway has recorded a schema since: the loop compares again with that one.
            if let version = try await store.record(new.json, after: newest?.version ?? 0) { return known.withLock { $0 = version } }
        }
    }

    func newestVersion() async throws -> UInt64 { try await store.newestVersion() }

    /// Returns the newest schema if this gateway has not passed its version to `took` yet.
    func news() async throws -> (version: UInt64, record: AppSchemaRecord)? {
        guard try await newestVersion() > known.withLock({ $0 }), let newest = try await newest() else { return nil }
        return newest
    }

    /// Marks a version as processed.
    func took(_ version: UInt64) { known.withLock { $0 = max($0, version) } }

    /// `true` if this gateway has processed the version.
    func knows(_ version: UInt64) -> Bool { known.withLock { $0 >= version } }
}
