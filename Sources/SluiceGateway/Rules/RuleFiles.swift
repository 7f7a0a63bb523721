package import SluiceCore
package import SluicePluginHost
import SluiceValues

/// Resolves the plugins of an app to files and load settings.
package struct RuleFiles {
    let directory: String?
    let keys: [PluginKey]
    let inProcess: Bool

    package init(directory: String?, keys: [PluginKey] = [], inProcess: Bool = false) {
        self.directory = directory
        self.keys = keys
        self.inProcess = inProcess
    }

    /// Returns the plugin for roles if the app directory has roles and no list names the plugin.
    ///
    /// - Throws: `pluginMissing` if it is not installed.
    package func rolesPlugin(_ app: AppConfiguration, beside others: [String] = []) throws(SluiceError) -> String? {
        let hasRules = app.files.keys.contains { $0.hasSuffix("rules.json") || $0.hasSuffix("default_rule.json") }
        let named = (app.plugins.map(\.file) + others).map { $0.split(separator: "/").last.map(String.init) ?? $0 }
        // By the file's own name: a folder of that name may hold other plugins.
        guard hasRules, !named.contains(InstalledFiles.file(ofPlugin: "AppServicesRules")) else { return nil }
        guard let rules = InstalledFiles.plugin("AppServicesRules") else {
            throw SluiceError(
                .pluginMissing, "The app directory has roles, but the plugin AppServicesRules is not installed.",
                fix:
                    "Install \(InstalledFiles.file(ofPlugin: "AppServicesRules")) beside sluice, or in ../lib/sluice/plugins of its folder."
            )
        }
        return rules
    }

    /// `true` for the plugin for roles that ships with this gateway.
    private func isRolesPlugin(_ path: String, _ listed: AppConfiguration.ListedPlugin?) -> Bool {
        listed?.isShipped != false && path == InstalledFiles.plugin("AppServicesRules")
    }

    func path(of listed: AppConfiguration.ListedPlugin) throws(SluiceError) -> String {
        if listed.file.hasPrefix("/") { return listed.file }
        if !listed.isShipped { return "\(directory ?? ".")/\(listed.file)" }
        guard let path = InstalledFiles.plugin(file: listed.file) else {
            throw SluiceError(
                .pluginMissing, "No plugin \(listed.file) ships with this gateway.",
                fix: "Give the path of the file, as plugins/\(listed.file) in the app directory.")
        }
        return path
    }

    package func spec(_ file: PluginFile, _ listed: AppConfiguration.ListedPlugin? = nil) throws(SluiceError) -> PluginSpec {
        var spec = PluginSpec(
            path: file.path, image: try file.image(), folder: ownFolder(file.path, listed), config: listed?.config ?? .null,
            configFile: PluginListReader.file, mode: inProcess || listed?.isInProcess == true ? .inProcess : .process)
        spec.seesSecrets = isRolesPlugin(file.path, listed)
        if let deadline = listed?.deadline { spec.deadline = deadline }
        if let deadlines = listed?.deadlines { spec.deadlines = deadlines }
        if let bytes = listed?.memoryBytes { spec.memoryBytes = bytes }
        return spec
    }

    /// Returns the plugin's own folder below `plugins`; nil for any other file. The app directory holds the app's secrets, and all
    /// plugins share the installation folder.
    private func ownFolder(_ path: String, _ listed: AppConfiguration.ListedPlugin?) -> String? {
        guard let listed, listed.file.hasPrefix("plugins/"), listed.file.split(separator: "/").count > 2 else { return nil }
        return path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    }

    /// A plugin of the chain.
    package struct Member {
        /// The name in the list, or the path of the command line.
        package let name: String
        /// The path of the file; the name if no file is known.
        package let path: String
        package let isSigned: Bool
        package let spec: Result<PluginSpec, SluiceError>

        init(_ name: String, path: String? = nil, isSigned: Bool = false, _ spec: Result<PluginSpec, SluiceError>) {
            self.name = name
            self.path = path ?? name
            self.isSigned = isSigned
            self.spec = spec
        }
    }

    /// Loads each plugin separately, in the order of the chain. A failure is part of the result.
    ///
    /// - Parameter others: The files of the command line, which must be listed, too.
    package func each(_ app: AppConfiguration, beside others: [String] = []) -> [Member] {
        var all: [Member] = []
        do throws(SluiceError) {
            if let rules = try rolesPlugin(app, beside: others) { all.append(Member(rules, .success(try spec(PluginFile(rules))))) }
        } catch { all.append(Member("AppServicesRules", .failure(error))) }
        var digests: Set<String> = []
        for listed in app.plugins {
            let spec: Result<PluginSpec, SluiceError>
            do throws(SluiceError) {
                let file = try PluginFile(try path(of: listed))
                digests.insert(file.sha256)
                try file.check(listed, keys: keys)
                spec = .success(try self.spec(file, listed))
            } catch { spec = .failure(error) }
            all.append(Member(listed.file, path: try? path(of: listed), isSigned: listed.signature != nil, spec))
        }
        for path in others {
            do throws(SluiceError) {
                // A file that the list names too is loaded once, with its listed settings.
                guard digests.insert(try PluginFile(path).sha256).inserted else { continue }
                all.append(Member(path, .failure(Self.unlisted(path))))
            } catch { all.append(Member(path, .failure(error))) }
        }
        return all
    }

    /// Returns the error of a file of the command line that the app's list lacks.
    static func unlisted(_ path: String) -> SluiceError {
        SluiceError(.pluginUnlisted, "\(path) is not in the app's plugins.json.", fix: "List it with `sluice plugin add --app … \(path)`.")
    }
}
