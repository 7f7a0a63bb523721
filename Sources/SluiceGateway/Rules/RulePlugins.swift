import Logging
import SluiceCore
import SluicePluginHost

/// Selects the plugins of an app: the plugin for roles if needed, those of `plugins.json`, and those of the command line.
///
/// The gateway loads the bytes that it has checked, not the file, which may have changed since. In development mode it also loads
/// unlisted or altered files, with a warning.
struct RulePlugins: Sendable {
    private let configuration: GatewayConfiguration.Plugins
    /// The folder that relative paths in the list refer to.
    private let directory: String?
    /// The plugins that run the functions of the gateway's start. Edits of functions take effect after a restart.
    private let functionPlugins: Set<String>
    private let isDevelopment: Bool
    private let records: PluginRecords
    private let services: PluginServices
    private let telemetry: Telemetry
    private let logger: Logger

    init(_ configuration: GatewayConfiguration, records: PluginRecords, services: PluginServices, telemetry: Telemetry, logger: Logger) {
        self.configuration = configuration.plugins
        directory = configuration.directory
        functionPlugins = Set(configuration.app.functionPlugins.map(\.plugin))
        isDevelopment = configuration.isDevelopment
        self.records = records
        self.services = services
        self.telemetry = telemetry
        self.logger = logger
    }

    /// Returns a chain that is not started yet. Reads the files, so it blocks.
    ///
    /// - Throws: `pluginMissing`, also if the app has roles and the plugin for them is not installed; `pluginAltered`; `pluginUnlisted`.
    func chain(_ app: AppConfiguration) throws(SluiceError) -> PluginChain {
        let records = records
        return PluginChain(
            plugins: try specs(app), functionPlugins: functionPlugins.union(app.functionPlugins.map(\.plugin)),
            hostExecutable: try InstalledFiles.pluginHost(), logger: logger,
            observer: telemetry.metrics.pluginObserver(tracer: telemetry.tracer), services: services.host,
            keep: { (kept) async throws(SluiceError) in try await records.keep(kept) })
    }

    private func specs(_ app: AppConfiguration) throws(SluiceError) -> [PluginSpec] {
        let files = RuleFiles(directory: directory, keys: configuration.keys, inProcess: configuration.inProcess)
        var specs: [PluginSpec] = []
        if let rules = try files.rolesPlugin(app, beside: configuration.files) { specs.append(try files.spec(PluginFile(rules))) }
        var digests: Set<String> = []
        for listed in app.plugins {
            let file = try PluginFile(try files.path(of: listed))
            digests.insert(file.sha256)
            do throws(SluiceError) { try file.check(listed, keys: configuration.keys) } catch {
                guard isDevelopment else { throw error }
                warn("A plugin differs from its list entry. Outside of development it is not loaded.", file, error)
            }
            specs.append(try files.spec(file, listed))
        }
        for path in configuration.files {
            let file = try PluginFile(path)
            // A file that the list names too is loaded once, with its listed settings.
            guard digests.insert(file.sha256).inserted else { continue }
            let error = RuleFiles.unlisted(path)
            guard isDevelopment else { throw error }
            warn("A plugin is not listed. Outside of development it is not loaded.", file, error)
            specs.append(try files.spec(file))
        }
        return specs
    }

    /// Returns the stamps of the plugin files, to detect changes. Files that cannot be resolved are left out.
    func stamps(_ app: AppConfiguration) -> FileStamps {
        let files = RuleFiles(directory: directory)
        let listed = app.plugins.compactMap { try? files.path(of: $0) }
        let rules = (try? files.rolesPlugin(app, beside: configuration.files)) ?? nil
        return FileStamps(of: listed + configuration.files + [rules].compactMap { $0 })
    }

    private func warn(_ message: Logger.Message, _ file: PluginFile, _ error: SluiceError) {
        logger.warning(message, metadata: ["file": .string(file.path), "reason": .string(error.operatorText)])
    }
}
