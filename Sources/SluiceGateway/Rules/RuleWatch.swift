import SluiceCore
import SluicePluginHost
import SluicePorts

/// Reloads edited rules of the app directory and replaced plugin files without a restart.
///
/// It checks every second. A change starts a new generation of the rules. Each session then evaluates its user's rights again; sessions
/// with unchanged rights notice nothing.
///
/// If the directory is invalid or a plugin rejects it, the old rules stay, with a log line and a metric. The watch retries once the
/// schema has changed. If a plugin host or PostgreSQL failed, it retries after 1 s, 2 s and so on up to 60 s. The edit may revoke rights.
///
/// Rules, values and functions are reloaded. Providers need a restart. Classes and queryable fields need a restart or `sluice schema
/// apply`; in development mode, added ones are reloaded as well.
struct RuleWatch: Sendable {
    /// The parts of the gateway that take part in a reload.
    struct Hooks: Sendable {
        let schema: @Sendable () -> AppSchema
        /// Adds the classes and fields of an edited directory, given after the one in use; nil outside of development mode.
        let grow: (@Sendable (AppConfiguration, AppConfiguration) async throws -> Void)?
        /// Notifies every session of the new generation.
        let announce: @Sendable () -> Void
        /// Reports the outcome of an edit.
        let report: @Sendable (RuleReload) -> Void
    }

    let directory: String
    let generations: RuleGenerations
    let plugins: RulePlugins
    let hooks: Hooks
    let metrics: Metrics
    let environment: any Environment
    private let work = WorkQueue(label: "app directory", width: 1, waiting: 1)

    private static let pause: UInt64 = 1_000_000_000
    /// The time without change that makes files stable, in nanoseconds. Editors and deployments write files one after another.
    private static let settling: UInt64 = 200_000_000
    private static let longestPause: UInt64 = 60_000_000_000

    private enum Outcome {
        /// The plugin files of the generation in use.
        case inUse(FileStamps)
        case refused
        case failed
    }

    func run() async throws {
        metrics.number(.ruleGeneration).set(Double(generations.number))
        // nil makes the first pass reload: the directory may have changed since the start read it.
        var seen: FileStamps?
        var files = try await work.run { plugins.stamps(generations.app) }
        var retry: (at: UInt64, pause: UInt64)?
        /// The version of the schema that the plugins rejected the rules under. A later schema may have the missing names.
        var refusedBy: UInt64?
        while !Task.isCancelled {
            let stamps = try await settledStamps(seen)
            let isNew = stamps != seen || refusedBy.map { $0 != hooks.schema().version } == true
            if isNew || retry.map({ $0.at <= environment.monotonicNanoseconds() }) == true {
                seen = stamps
                let pause = isNew ? Self.pause : min((retry?.pause ?? Self.pause) * 2, Self.longestPause)
                (retry, refusedBy) = (nil, nil)
                // Before the attempt: a schema that grows during it causes another attempt.
                let version = hooks.schema().version
                switch await takeUp(files, isNew: isNew) {
                case .inUse(let stamps): files = stamps
                case .refused: refusedBy = version
                case .failed: retry = (environment.monotonicNanoseconds() + pause, pause)
                }
            }
            try await environment.sleep(nanoseconds: Self.pause)
        }
    }

    /// Returns the stamps once no file has changed for `settling`.
    private func settledStamps(_ seen: FileStamps?) async throws -> FileStamps {
        var stamps = try await look()
        while stamps != seen {
            try await environment.sleep(nanoseconds: Self.settling)
            let again = try await look()
            if again == stamps { break }
            stamps = again
        }
        return stamps
    }

    private func look() async throws -> FileStamps {
        try await work.run { FileStamps(under: directory).merging(plugins.stamps(generations.app)) }
    }

    /// Loads the directory and replaces the generation if rules or plugins have changed.
    ///
    /// - Parameters:
    ///   - files: The plugin files of the generation in use.
    ///   - isNew: `true` for the first attempt of an edit, which counts as one rejection.
    private func takeUp(_ files: FileStamps, isNew: Bool) async -> Outcome {
        do {
            // The app id of the start, which may come from the command line.
            let appID = generations.app.appID
            let loaded = try await work.run { Result { () throws(SluiceError) in try AppConfiguration.load(directory, appID: appID) } }
            let app = try loaded.get()
            let stamps = try await work.run { plugins.stamps(app) }
            // An edit that was reverted starts no generation.
            guard app.files != generations.app.files || stamps != files else { return .inUse(files) }
            let old = generations.app
            try await hooks.grow?(old, app)
            let chain = try await work.run { Result { () throws(SluiceError) in try plugins.chain(app) } }.get()
            let before = try await generations.replace(by: chain, app: app, schema: hooks.schema)
            metrics.show(generations.missing)
            hooks.announce()
            // After `announce`, so that a reader of the metric can rely on the sessions being notified.
            metrics.number(.ruleGeneration).set(Double(generations.number))
            hooks.report(.used(generation: generations.number, AppChanges(from: old, to: app, growsSchema: hooks.grow != nil)))
            // Sessions already use the new generation. This wait for old calls delays the next edit, by 75 s at most.
            await generations.retire(before)
            return .inUse(stamps)
        } catch let error as SluiceError where error.code.isPluginFailure || error.code.isPostgresFailure {
            if isNew { metrics.number(.rulesRefused).add() }
            hooks.report(.failed(error))
            return .failed
        } catch {
            metrics.number(.rulesRefused).add()
            hooks.report(.refused(SluiceError(of: error) ?? SluiceError(.internalError, "\(error)")))
            return .refused
        }
    }
}
