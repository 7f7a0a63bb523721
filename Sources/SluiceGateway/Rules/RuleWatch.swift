import Logging
import SluiceCore
import SluicePipeline
import SluicePluginHost

/// Takes up rules that are edited in the app directory, and plugin files that are replaced, without a restart.
///
/// It looks every second. What it finds becomes a new generation of the rules, and every session goes on with what its user may
/// under it; those who may what they might before notice nothing. A directory that cannot be read, or plugins that refuse it, are
/// logged and counted, and the rules stay as they are. Of the directory it is what plugins are told that is taken up: its rules,
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

    func run() async throws {
        metrics.number(.ruleGeneration).set(Double(generations.number))
        // What was edited since the directory was read counts as well.
        var seen: FileStamps?
        var files = try await work.run { plugins.stamps(generations.app) }
        while !Task.isCancelled {
            let stamps = try await settledStamps(seen)
            if stamps != seen {
                seen = stamps
                files = await takeUp(files)
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

    /// - Parameter files: the plugin files of the generation in use.
    /// - Returns: those of the generation in use afterwards.
    private func takeUp(_ files: FileStamps) async -> FileStamps {
        do {
            let loaded = try await work.run { Result { () throws(SluiceError) in try AppConfiguration.load(directory) } }
            let app = try loaded.get()
            let stamps = try await work.run { plugins.stamps(app) }
            guard app.files != generations.app.files || stamps != files else { return files }
            let chain = try await work.run { Result { () throws(SluiceError) in try plugins.chain(app) } }.get()
            let before = try await generations.replace(by: chain, app: app, schema: schema)
            metrics.show(generations.missing)
            announce()
            // Whoever reads of it finds that all sessions have been told.
            metrics.number(.ruleGeneration).set(Double(generations.number))
            logger.notice("New rules are in use.", metadata: ["generation": "\(generations.number)"])
            await generations.retire(before)
            return stamps
        } catch {
            metrics.number(.rulesRefused).add()
            logger.error("The edited rules cannot be used; those before stay.", metadata: ["error": "\(error)"])
            return files
        }
    }
}
