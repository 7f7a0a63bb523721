import Logging
import SluiceCore
import SluicePipeline
import SluicePluginHost

/// Takes up rules that are edited in the app directory, and plugin files that are replaced, without a restart.
///
/// It looks every second. What it finds becomes a new generation of the rules, and every session goes on with what its user may
/// under it; those who may what they might before notice nothing. A directory that cannot be read, or plugins that refuse it, are
/// logged and counted, and the rules stay as they are; they are tried again when the schema has grown.
/// Where it was a plugin's host that failed, or PostgreSQL, and not the files, the same edit is tried again, after 1 s, 2 s and so on up to 60 s: it may be one that takes somebody's rights away. Of the directory it is what plugins are told that is taken up: its rules,
/// values and functions; providers and schemas are for the next start and for `sluice schema apply`.
struct RuleWatch: Sendable {
    let directory: String
    let generations: RuleGenerations
    let plugins: RulePlugins
    let schema: @Sendable () -> AppSchema
    /// Has every session take up the new generation.
    let announce: @Sendable () -> Void
    let metrics: Metrics
    let environment: any Environment
    let logger: Logger
    private let work = WorkQueue(label: "app directory", width: 1, waiting: 1)

    private static let pause: UInt64 = 1_000_000_000
    /// Files are written one after another: what is still changing is left until it has not changed for so long.
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
        // What was edited since the directory was read counts as well.
        var seen: FileStamps?
        var files = try await work.run { plugins.stamps(generations.app) }
        var retry: (at: UInt64, pause: UInt64)?
        /// The schema that refused rules were held against: one that has grown may have what they name.
        var refusedBy: UInt64?
        while !Task.isCancelled {
            let stamps = try await settledStamps(seen)
            let isNew = stamps != seen || refusedBy.map { $0 != schema().version } == true
            if isNew || retry.map({ $0.at <= environment.monotonicNanoseconds() }) == true {
                seen = stamps
                let pause = isNew ? Self.pause : min((retry?.pause ?? Self.pause) * 2, Self.longestPause)
                (retry, refusedBy) = (nil, nil)
                // Before the look: what comes during it is looked at again.
                let version = schema().version
                switch await takeUp(files, isNew: isNew) {
                case .inUse(let stamps): files = stamps
                case .refused: refusedBy = version
                case .failed: retry = (environment.monotonicNanoseconds() + pause, pause)
                }
            }
            try await environment.sleep(nanoseconds: Self.pause)
        }
    }

    /// How the directory and the plugins look when nobody is writing them.
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

    /// - Parameters:
    ///   - files: the plugin files of the generation in use.
    ///   - isNew: whether the edit is tried for the first time.
    private func takeUp(_ files: FileStamps, isNew: Bool) async -> Outcome {
        do {
            let loaded = try await work.run { Result { () throws(SluiceError) in try AppConfiguration.load(directory) } }
            let app = try loaded.get()
            let stamps = try await work.run { plugins.stamps(app) }
            guard app.files != generations.app.files || stamps != files else { return .inUse(files) }
            let chain = try await work.run { Result { () throws(SluiceError) in try plugins.chain(app) } }.get()
            let before = try await generations.replace(by: chain, app: app, schema: schema)
            metrics.show(generations.missing)
            announce()
            // Whoever reads of it finds that all sessions have been told.
            metrics.number(.ruleGeneration).set(Double(generations.number))
            logger.notice("New rules are in use.", metadata: ["generation": "\(generations.number)"])
            await generations.retire(before)
            return .inUse(stamps)
        } catch let error as SluiceError
            where error.code.isPluginFailure || error.code == .postgresUnreachable || error.code == .timeout
        {
            if isNew { metrics.number(.rulesRefused).add() }
            logger.error("The edited rules cannot be used yet; those before stay meanwhile.", metadata: ["error": "\(error)"])
            return .failed
        } catch {
            metrics.number(.rulesRefused).add()
            logger.error("The edited rules cannot be used; those before stay.", metadata: ["error": "\(error)"])
            return .refused
        }
    }
}
