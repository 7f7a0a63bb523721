import Logging
package import SluiceCore
package import SluiceGateway
package import SluicePluginHost
package import SluiceValues

/// Loads plugins without a gateway, for `sluice plugin check` and `sluice plugin list`.
package enum PluginInspection {
    /// An example schema with a top-level and an asymmetric class.
    private static let example = Schema([
        ObjectType(
            name: "Thing",
            properties: [
                Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "owner_id", type: .string, isOptional: true),
                Property(id: 3, name: "size", type: .int, isOptional: true), Property(id: 4, name: "done", type: .bool),
                Property(id: 5, name: "at", type: .timestamp, isOptional: true),
                Property(id: 6, name: "tags", type: .string, collection: .list),
            ]),
        ObjectType(
            name: "Reading", kind: .asymmetric,
            properties: [Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "value", type: .double, isOptional: true)]),
    ])

    /// Runs the conformance suite against a plugin.
    ///
    /// - Parameters:
    ///   - directory: The app directory with schema, rules and the plugin's configuration; nil for the example.
    ///   - config: The configuration instead of the listed one, with its file for errors.
    /// - Throws: The error that prevents loading or configuring the plugin.
    package static func check(
        _ file: String, directory: String?, config: (json: JSON, file: String)?
    ) async throws(SluiceError) -> Report {
        let app = try directory.map { directory throws(SluiceError) in try AppConfiguration.load(directory) }
        let plugin = try PluginFile(file)
        // A rebuilt plugin has another digest but still the listed name.
        let name = file.split(separator: "/").last
        let listed = app?.plugins.first { $0.sha256 == plugin.sha256 } ?? app?.plugins.first { $0.file.split(separator: "/").last == name }
        var spec = try RuleFiles(directory: directory).spec(plugin, listed)
        // In a process of its own, so that a crash of the plugin does not end this program.
        spec.mode = .process
        if let config { (spec.config, spec.configFile) = (config.json, config.file) }
        let schema = app?.schema ?? example
        let description = AppDescription.json(
            appID: app?.appID ?? "example", directory: app?.files ?? [:], schema: schema,
            queryableFields: app?.queryableFields ?? QueryableFields(global: ["owner_id", "size"]))
        let (info, outcomes) = try await PluginConformance.check(
            spec, app: description, schema: schema, hostExecutable: try InstalledFiles.pluginHost(), logger: quiet)
        return Report(info: info, outcomes: outcomes)
    }

    /// The result of a check.
    package struct Report: Sendable {
        fileprivate let info: PluginInfo
        fileprivate let outcomes: [PluginConformance.Outcome]

        package var isFit: Bool { !outcomes.contains { $0.failure != nil } }

        package var json: JSON {
            let checks = outcomes.map { outcome -> JSON in
                [
                    "name": .string(outcome.name), "failure": outcome.failure.map { .string($0) } ?? .null, "note": .string(outcome.note),
                ]
            }
            return ["name": .string(info.name), "version": .string(info.version), "fit": .bool(isFit), "checks": .array(checks)]
        }

        package var text: String {
            let lines = outcomes.map { outcome in
                let more = outcome.failure ?? outcome.note
                return "\(outcome.failure == nil ? "  ok  " : "FAILED") \(outcome.name)\(more.isEmpty ? "" : ": \(more)")"
            }
            return ([info.line] + lines).joined(separator: "\n")
        }
    }

    /// A plugin of a list with its load result.
    package struct Entry: Sendable {
        package fileprivate(set) var file: String
        /// The path of the file; its name in the list if no file is known.
        package fileprivate(set) var path: String
        /// The identity of the plugin; nil if it cannot be loaded.
        package fileprivate(set) var info: PluginInfo?
        /// The error that prevents loading; nil if there is none.
        package fileprivate(set) var problem: SluiceError?
        package fileprivate(set) var isSigned: Bool
        /// The missing parts of its sandbox.
        package var missing: [String] { info?.missing ?? [] }

        package var json: JSON {
            [
                "file": .string(file), "name": info.map { .string($0.name) } ?? .null, "version": info.map { .string($0.version) } ?? .null,
                "hooks": .array(info?.hooks.map(\.name).sorted().map { .string($0) } ?? []), "signed": .bool(isSigned),
                "problem": problem.map { .string($0.description) } ?? .null,
            ]
        }

        package var text: String {
            guard let info else { return "\(file): \(problem?.description ?? "")" }
            return "\(file)\(isSigned ? " (signed)" : ""): \(info.line)"
        }
    }

    /// Loads each plugin of an app separately, in the order of the chain.
    package static func list(_ directory: String, keys: [PluginKey]) async throws(SluiceError) -> [Entry] {
        try await entries(of: try AppConfiguration.load(directory), RuleFiles(directory: directory, keys: keys))
    }

    /// Loads each plugin of an app separately, in the order of the chain.
    ///
    /// - Parameters:
    ///   - others: The files of the command line.
    ///   - configures: `true` to send the app to each plugin as well, except to that for roles, which `RuleCheck` configures.
    package static func entries(
        of app: AppConfiguration, _ plugins: RuleFiles, beside others: [String] = [], configures: Bool = false
    ) async throws(SluiceError) -> [Entry] {
        let host = try InstalledFiles.pluginHost()
        let description = AppDescription.json(
            appID: app.appID, directory: app.files, schema: app.schema, queryableFields: app.queryableFields)
        let roles = InstalledFiles.file(ofPlugin: "AppServicesRules")
        var entries: [Entry] = []
        for member in plugins.each(app, beside: others) {
            var entry = Entry(file: member.name, path: member.path, isSigned: member.isSigned)
            do throws(SluiceError) {
                let chain = PluginChain(plugins: [try member.spec.get()], hostExecutable: host, logger: quiet)
                try await chain.start()
                entry.info = chain.plugins.first
                if configures, !member.name.hasSuffix(roles) {
                    do throws(SluiceError) { try await chain.configure(app: description) } catch { entry.problem = error }
                }
                await chain.stop()
            } catch { entry.problem = error }
            entries.append(entry)
        }
        return entries
    }

    private static var quiet: Logger {
        var logger = ProcessLogger.make()
        logger.logLevel = .error
        return logger
    }
}

extension PluginInfo {
    fileprivate var line: String { "\(name) \(version): \(hooks.map(\.name).sorted().joined(separator: ", "))" }
}
