import Logging
import SluiceCore
import SluicePorts
import SluicePostgres
import Synchronization

/// Adopts schema additions that were applied elsewhere, without a restart and without ending a session.
///
/// It checks for an applied schema every second, and at once when the publisher reads an announcement. A schema that removes something
/// needs a restart with its app directory. This gateway logs that and continues with its own schema.
final class SchemaWatch: Sendable {
    private let applied: AppliedSchema
    private let schema: GatewaySchema
    private let environment: any Environment
    private let logger: Logger
    /// The highest version that publishing no longer waits for.
    private let givenUp = Mutex<UInt64>(0)

    private static let pause: UInt64 = 1_000_000_000
    /// The pause before another attempt if the schema should be visible at any moment, in nanoseconds.
    private static let instant: UInt64 = 5_000_000
    /// The longest time that publishing waits for a schema that cannot be adopted, in nanoseconds.
    private static let patience: UInt64 = 10_000_000_000

    init(applied: AppliedSchema, schema: GatewaySchema, environment: any Environment, logger: Logger) {
        self.applied = applied
        self.schema = schema
        self.environment = environment
        self.logger = logger
    }

    func run() async throws {
        while !Task.isCancelled {
            try await environment.sleep(nanoseconds: Self.pause)
            do {
                try await look()
            } catch let error as SluiceError where error.code.isPostgresFailure {
                logger.debug("The applied schema could not be read.", metadata: ["error": "\(error)"])
            } catch let error as SluiceError {
                logger.error("The applied schema cannot be used yet. The gateway tries again.", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Adopts the announced schemas before rows that may need them are published.
    ///
    /// If a schema cannot be adopted, publishing waits for it once, for ten seconds. Its rows are then published as far as their
    /// properties are known.
    ///
    /// - Throws: `postgresUnreachable` or `timeout` if PostgreSQL does not answer.
    func catchUp(announced: [String]) async throws {
        let announcements = announced.compactMap { SchemaAnnouncement($0) }
        if schema.current().isDevelopment { return await extend(announcements) }
        let wanted = announcements.compactMap(\.version).max() ?? 0
        let deadline = environment.monotonicNanoseconds() + Self.patience
        while true {
            var trouble: SluiceError?
            do {
                try await look()
            } catch let error as SluiceError where !error.code.isPostgresFailure {
                trouble = error
            }
            // The WAL may announce a commit in the instant before queries see it.
            if trouble == nil, applied.knows(wanted) { return }
            let newest = max(wanted, try await applied.newestVersion())
            let isGivenUp = givenUp.withLock { $0 >= newest }
            if isGivenUp { return }
            guard environment.monotonicNanoseconds() < deadline else {
                logger.error(
                    "An applied schema cannot be used. Its additions are not sent.",
                    metadata: ["version": "\(newest)", "error": "\(trouble.map { "\($0)" } ?? "it is not recorded")"])
                return givenUp.withLock { $0 = newest }
            }
            try await environment.sleep(nanoseconds: trouble == nil ? Self.instant : Self.pause)
        }
    }

    /// Adds the classes that clients added on other gateways in development mode.
    private func extend(_ announcements: [SchemaAnnouncement]) async {
        for announcement in announcements {
            do {
                try await schema.extend(as: AppSchemaRecord(announcement.definition))
            } catch {
                logger.error("An announced schema cannot be applied. Its additions are not sent.", metadata: ["error": "\(error)"])
            }
        }
    }

    private func look() async throws {
        guard let (version, record) = try await applied.news() else { return }
        do {
            try await schema.adopt(record, version: version)
            logger.notice("The gateway uses the applied schema.", metadata: ["version": "\(version)"])
        } catch let error as SluiceError where error.code == .breakingSchemaChange {
            logger.error("The applied schema requires a restart of this gateway.", metadata: ["error": "\(error)"])
        }
        // Also after a rejection: a breaking schema is logged once, not every second.
        applied.took(version)
    }
}
