import Logging
import SluiceCore
import SluicePipeline
import SluicePostgres
import Synchronization

/// Takes up what is added to the schema elsewhere: nobody has to restart, and no session ends.
///
/// It looks every second whether a schema has been applied, and at once when the gateway publishes and the log announces one.
/// One that takes something away is for gateways that start with its app directory; this one says so and goes on as it is.
final class SchemaWatch: Sendable {
    private let applied: AppliedSchema
    private let schema: GatewaySchema
    private let environment: any Environment
    private let logger: Logger
    /// The version for which publishing does not wait any more.
    private let givenUp = Mutex<UInt64>(0)

    private static let pause: UInt64 = 1_000_000_000
    /// A pause for what comes at any moment.
    private static let instant: UInt64 = 5_000_000
    /// How long publishing waits for a schema that cannot be taken up.
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
            } catch let error as SluiceError where error.code == .postgresUnreachable || error.code == .timeout {
                logger.debug("The applied schema could not be asked for.", metadata: ["error": "\(error)"])
            } catch let error as SluiceError {
                logger.error("The applied schema cannot be taken up; it is tried again.", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Takes up what the log announces before rows that may have it are published.
    ///
    /// What cannot be taken up is waited for ten seconds, once; then its rows are published as far as they are known.
    /// - Throws: when PostgreSQL cannot be asked.
    func catchUp(announced: [String]) async throws {
        let announcements = announced.compactMap { SchemaAnnouncement($0) }
        if schema.current().isDevelopment { return await extend(announcements) }
        let wanted = announcements.compactMap(\.version).max() ?? 0
        let deadline = environment.monotonicNanoseconds() + Self.patience
        while true {
            var trouble: SluiceError?
            do {
                try await look()
            } catch let error as SluiceError where error.code != .postgresUnreachable && error.code != .timeout {
                trouble = error
            }
            // The log may tell of a commit in the instant before queries see it.
            if trouble == nil, applied.knows(wanted) { return }
            let newest = max(wanted, try await applied.newestVersion())
            let isGivenUp = givenUp.withLock { $0 >= newest }
            if isGivenUp { return }
            guard environment.monotonicNanoseconds() < deadline else {
                logger.error(
                    "An applied schema cannot be taken up; what it adds is not sent.",
                    metadata: ["version": "\(newest)", "error": "\(trouble.map { "\($0)" } ?? "it is not recorded")"])
                return givenUp.withLock { $0 = newest }
            }
            try await environment.sleep(nanoseconds: trouble == nil ? Self.instant : Self.pause)
        }
    }

    /// Grows by what clients brought to other gateways in development.
    private func extend(_ announcements: [SchemaAnnouncement]) async {
        for announcement in announcements {
            do {
                try await schema.extend(as: AppSchemaRecord(announcement.definition))
            } catch {
                logger.error("An announced schema cannot be taken up; what it adds is not sent.", metadata: ["error": "\(error)"])
            }
        }
    }

    private func look() async throws {
        guard let (version, record) = try await applied.news() else { return }
        do {
            try await schema.adopt(record, version: version)
            logger.notice("An applied schema was taken up.", metadata: ["version": "\(version)"])
        } catch let error as SluiceError where error.code == .breakingSchemaChange {
            logger.error("A schema was applied that this gateway can only take up by a restart.", metadata: ["error": "\(error)"])
        }
        applied.took(version)
    }
}
