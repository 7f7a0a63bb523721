import ArgumentParser
import Foundation
import SluiceCore
import SluiceTools
import SluiceValues

struct PluginCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plugin",
        abstract: "Create, check and list rule plugins.",
        discussion: """
            'new' makes the beginning of a plugin, 'check' tries whether one keeps to the interface, 'add' lists one in an app directory's \
            plugins.json, 'list' shows what a gateway would load, and 'running' what has become of the plugins of one that runs. A \
            gateway loads nothing that is not listed.
            """,
        subcommands: [PluginNew.self, PluginCheck.self, PluginAdd.self, PluginListing.self, PluginRunning.self])
}

struct PluginNew: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "new", abstract: "Create the files of a plugin: a rule, its test, and a build script.")

    @Argument(help: "The name, such as OfficeHours. A folder of that name is created.")
    var name: String

    @Option(help: "swift or c.")
    var language: PluginTemplate.Language = .swift

    @Option(
        help: ArgumentHelp("Sluice's package, for a plugin in Swift: a folder, or the URL of a repository.", valueName: "package"))
    var sluice = "../sluice"

    func run() async throws {
        try await reporting {
            let template = try PluginTemplate(name: name, language: language, package: sluice)
            try template.write(into: FileManager.default.currentDirectoryPath)
            StandardError.write("sluice: read \(name)/README.md for the next steps\n")
        }
    }
}

extension PluginTemplate.Language: ExpressibleByArgument {}

struct PluginCheck: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Load a plugin as a gateway does, and test that it conforms to the interface.",
        discussion: "Exit codes: 0; 1 if the plugin does not conform; 78 if its configuration is not valid.")

    @Argument(help: "The plugin's library.")
    var file: String

    @Option(
        help: ArgumentHelp(
            "An app directory: its schema, its rules, and what its plugins.json configures the plugin with.", valueName: "directory"))
    var app: String?

    @Option(help: ArgumentHelp("A JSON file to configure the plugin with.", valueName: "file"))
    var config: String?

    @Flag(help: "Print one line of JSON.")
    var json = false

    func run() async throws {
        try await reporting {
            let report = try await PluginInspection.check(file, directory: app, config: try config.map(PluginConfigFile.json))
            print(json ? report.json.text : report.text)
            if !report.isFit { throw ExitCode(1) }
        }
    }
}

struct PluginAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "List a plugin in an app directory, with its present SHA-256.",
        discussion: """
            Writes the file's SHA-256 into plugins.json, in the place of an entry of the same file or at the end of the chain. A file outside of \
            the app directory is copied to plugins/NAME/ in it. Gateways that run take it up within seconds.
            """)

    @Argument(help: "The plugin's library.")
    var file: String

    @Option(help: ArgumentHelp("The app directory.", valueName: "directory"))
    var app: String

    @Option(help: ArgumentHelp("A JSON file to configure the plugin with; without it an entry keeps its own.", valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp("An Ed25519 key to sign the file with, as 'openssl genpkey -algorithm ed25519' writes it.", valueName: "file"))
    var sign: String?

    func run() async throws {
        try await reporting {
            let config = try config.map(PluginConfigFile.json)
            let key = try sign.map(PluginConfigFile.key)
            var list = try PluginList(of: app)
            print(try list.add(file, signedWith: key, config: config?.json).indented)
        }
    }
}

struct PluginListing: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Show the plugins that a gateway would load for an app, and the obstacles.",
        discussion: "Loads each plugin by itself. Exit codes: 0; 1 if one cannot be loaded.")

    @Option(help: ArgumentHelp("The app directory.", valueName: "directory"))
    var app: String

    @Option(name: .customLong("plugin-key"), help: ArgumentHelp("A public Ed25519 key, as with 'sluice serve'.", valueName: "key"))
    var keys: [String] = []

    @Flag(help: "Print one line of JSON.")
    var json = false

    func run() async throws {
        try await reporting {
            let entries = try await PluginInspection.list(app, keys: try keys.map(PluginOptions.key))
            if json {
                print(JSON.object([JSON.Member("plugins", .array(entries.map(\.json)))]).text)
            } else {
                for entry in entries { print(entry.text) }
            }
            if entries.contains(where: { $0.problem != nil }) { throw ExitCode(1) }
        }
    }
}
