import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues
import Testing

/// What `sluice plugin new` makes, and `sluice plugin check`.
@Suite(.timeLimit(.minutes(5))) struct `The beginning of a plugin` {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..").standardized

    /// Runs a command in a folder; what it said when it fails.
    private static func run(_ command: String, in folder: URL) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-ec", command]
        process.currentDirectoryURL = folder
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let said = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(command): \(said)")
    }

    @Test func `in C builds with a C compiler alone, and keeps to the interface`() async throws {
        let folder = try Phone.Folder()
        try PluginTemplate(name: "OpenShops", language: .c, package: "").write(into: folder.url.path)
        let made = folder.url.appendingPathComponent("OpenShops")
        try Self.run(
            "cc -shared -fPIC -O2 -Wall -Wextra -Werror -I . -Wl,-z,defs -Wl,--version-script=exports.map -o libOpenShops.so plugin.c",
            in: made)
        let report = try await PluginInspection.check(
            made.appendingPathComponent("libOpenShops.so").path, directory: nil, config: (["types": ["Thing"]], "test"))
        #expect(report.isFit, "\(report.text)")
        #expect(report.text.hasPrefix("OpenShops 0.1: call_function, check_write, configure, open_session"))
        #expect(report.text.contains("leak nothing"))
    }

    @Test func `in Swift compiles with its test, and keeps to the interface`() async throws {
        let folder = try Phone.Folder()
        try PluginTemplate(name: "OwnThings", language: .swift, package: "../sluice").write(into: folder.url.path)
        let made = folder.url.appendingPathComponent("OwnThings")
        // As the package manager would, against the kit that is built with the tests.
        let kit = "-I \(Built.folder)/Modules -Xcc -fmodule-map-file=\(Built.folder)/CSluicePlugin.build/module.modulemap"
        try Self.run(
            """
            swiftc -swift-version 6 -enable-testing -emit-library -emit-module -module-name OwnThings \(kit) -o libOwnThings.so \
            -Xlinker -z -Xlinker defs -Xlinker --version-script=exports.map Sources/OwnThings/*.swift \
            \(Built.folder)/SluicePluginKit.build/*.o \(Built.folder)/SluiceValues.build/*.o \(Built.folder)/CSluicePlugin.build/*.o
            swiftc -swift-version 6 -typecheck -module-name OwnThingsTests \(kit) -I . Tests/OwnThingsTests/*.swift \
            -plugin-path "$(dirname "$(readlink -f "$(which swiftc)")")/../lib/swift/host/plugins/testing"
            swift package dump-package >/dev/null
            """, in: made)
        let report = try await PluginInspection.check(made.appendingPathComponent("libOwnThings.so").path, directory: nil, config: nil)
        #expect(report.isFit, "\(report.text)")
    }

    @Test func `has the header of this release`() throws {
        let template = try PluginTemplate(name: "x", language: .c, package: "")
        for name in ["sluice_plugin.h", "sluice_rows.h"] {
            let header = try String(contentsOf: Self.root.appendingPathComponent("Sources/CSluicePlugin/include/\(name)"), encoding: .utf8)
            #expect(template.files[name] == header, "\(name) is not the file that CSluicePlugin has.")
        }
    }

    @Test func `is not made over something, nor with a name that is none`() throws {
        let folder = try Phone.Folder()
        let template = try PluginTemplate(name: "Twice", language: .c, package: "")
        try template.write(into: folder.url.path)
        #expect(throws: SluiceError.self) { try template.write(into: folder.url.path) }
        for name in ["", "1st", "a b", "ä"] {
            #expect(throws: SluiceError.self) { try PluginTemplate(name: name, language: .c, package: "") }
        }
    }
}

@Suite(.timeLimit(.minutes(2))) struct `Checking a plugin` {
    private func check(_ name: String, _ config: JSON = .null) async throws -> PluginInspection.Report {
        try await PluginInspection.check(Built.plugin(name), directory: nil, config: (config, "test.json"))
    }

    @Test(arguments: ["DenyAllC", "WeatherIngest", "AppServicesRules"])
    func `finds those that ship with the gateway fit`(name: String) async throws {
        let report = try await check(name)
        #expect(report.isFit, "\(report.text)")
    }

    @Test func `finds an answer in another form`() async throws {
        let report = try await check("FaultyC", ["word": "configured-to-misspell"])
        #expect(!report.isFit)
        #expect(report.text.contains("FAILED open_session of the app's types: plugin-bad-answer"), "\(report.text)")
    }

    @Test func `finds a plugin that takes any configuration`() async throws {
        let report = try await check("FaultyC")
        #expect(report.text.contains("FAILED configure rejects an invalid configuration"), "\(report.text)")
    }

    @Test(arguments: [
        ("configured-to-miscount", "check_write of none, and of an insert", "2 verdicts instead of 3"),
        ("configured-to-waver", "open_session decides the same twice", "answered in two ways"),
        ("configured-to-tire", "check_write of 1000 writes", "plugin-timeout"),
        ("configured-to-need-a-user", "open_session survives empty input", "plugin-crashed"),
        ("configured-strictly", "configure once more changes nothing", "open_session answers something else afterwards"),
        ("configured-strictly configured-to-stay configured-to-leak", "2000 sessions leak nothing", "KiB more after 2000 calls"),
        ("configured-strictly configured-to-stay configured-to-differ", "another host decides the same", "in a new process"),
    ])
    func `finds what it does wrong, and nothing else`(word: String, probe: String, said: String) async throws {
        let report = try await check("FaultyC", ["word": .string(word)])
        let failed = report.text.split(separator: "\n").filter { $0.hasPrefix("FAILED") }
        #expect(!report.isFit && failed.count == 1, "\(report.text)")
        #expect(failed.first?.hasPrefix("FAILED \(probe)") == true && failed.first?.contains(said) == true, "\(report.text)")
    }

    @Test func `finds nothing at a plugin that keeps to the interface in the same places`() async throws {
        let report = try await check("FaultyC", ["word": "configured-strictly configured-to-stay"])
        #expect(report.isFit, "\(report.text)")
    }

    @Test func `names a plugin of another version, and which side to upgrade`() async throws {
        await #expect {
            _ = try await check("OtherVersionC")
        } throws: { error in
            guard let error = error as? SluiceError else { return false }
            return error.code == .pluginABIMismatch && error.message.contains("the gateway is to be upgraded")
        }
    }

    @Test func `holds the configuration against what the plugin declares`() async throws {
        await #expect {
            _ = try await check("DenyAllC", try JSON.parse(Array(#"{ "alow": [] }"#.utf8)))
        } throws: { error in
            (error as? SluiceError)?.code == .configUnknownKey && "\(error)".contains("test.json:1:3: DenyAllC: 'alow' is not a known key")
        }
    }

    private static func app(_ files: [String: String]) throws -> Phone.Folder {
        let folder = try Phone.Folder()
        for (path, text) in files {
            let file = folder.url.appendingPathComponent(path)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        return folder
    }

    /// As a gateway would load it, though the file has been built anew since it was listed: with its configuration, and without secrets.
    @Test func `configures it as the app lists it, and tells it what a gateway tells`() async throws {
        let folder = try Self.app(ShopApp.files.merging(["secrets.json": #"{ "word": "do-fail" }"#]) { $1 })
        var list = try PluginList(of: folder.url.path)
        _ = try list.add(Built.plugin("FaultyC"), config: ["word": "configured-strictly configured-to-stay"])
        let file = folder.url.appendingPathComponent("plugins/FaultyC/libFaultyC.so")
        try (try Data(contentsOf: file) + [0]).write(to: file)
        let report = try await PluginInspection.check(file.path, directory: folder.url.path, config: nil)
        #expect(report.isFit, "\(report.text)")
    }

    @Test func `lists what a gateway would load, and what keeps it from that`() async throws {
        let folder = try Self.app(ShopApp.files)
        var list = try PluginList(of: folder.url.path)
        _ = try list.add(Built.plugin("DenyAllC"))
        _ = try list.add(Built.plugin("FaultyC"))
        let file = folder.url.appendingPathComponent("plugins/FaultyC/libFaultyC.so")
        try (try Data(contentsOf: file) + [0]).write(to: file)
        let entries = try await PluginInspection.list(folder.url.path, keys: [])
        #expect(entries.map(\.problem?.code) == [nil, nil, .pluginAltered])
        #expect(entries[0].text.contains("AppServicesRules 1.0: check_write, configure, open_session"))
        #expect(entries[1].text.hasPrefix("plugins/DenyAllC/libDenyAllC.so: DenyAllC 1.0"))
    }
}
