import Foundation
import SluiceCore
import SluiceValues
import Testing

@Suite(.timeLimit(.minutes(10))) struct `The command sluice plugin` {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized

    /// Sluice's package with the kit alone: the whole one would have the package manager fetch everything that the gateway is made of.
    private static func writeKit(to folder: URL) throws {
        let manifest = try String(contentsOf: root.appendingPathComponent("Package.swift"), encoding: .utf8)
        let lines = manifest.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex { $0.hasPrefix("let package = Package(") })
        let targets = ["CSluicePlugin", "SluiceValues", "SluicePluginKit"]
        func line(_ beginning: String) throws -> Substring {
            try #require(lines.first { $0.drop { $0 == " " }.hasPrefix(beginning) }, "Package.swift has no line \(beginning)")
        }
        let kit = try [
            ["let package = Package(", "    name: \"sluice\",", "    products: ["],
            [line(#".library(name: "SluicePluginKit""#)],
            ["    ],", "    targets: ["],
            targets.map { try line(#".target(name: "\#($0)""#) },
            ["    ],", line("swiftLanguageModes:"), ")", ""],
        ].joined()
        try FileManager.default.createDirectory(at: folder.appendingPathComponent("Sources"), withIntermediateDirectories: true)
        for target in targets {
            let path = "Sources/\(target)"
            try FileManager.default.copyItem(at: root.appendingPathComponent(path), to: folder.appendingPathComponent(path))
        }
        try (lines[..<start] + kit).joined(separator: "\n")
            .write(to: folder.appendingPathComponent("Package.swift"), atomically: true, encoding: .utf8)
    }

    /// What the package manager keeps, it keeps in the test's folder.
    @Test func `makes a plugin in Swift whose tests pass and whose library a gateway would load`() async throws {
        let folder = try DataFolder()
        try Self.writeKit(to: URL(fileURLWithPath: folder.path + "/sluice"))
        let sluice = Program.folder.appendingPathComponent("sluice").path
        let options =
            "--jobs 1 --disable-xctest -debug-info-format none --cache-path ../cache --config-path ../config --security-path ../security"
        #expect(
            try Self.shell(
                """
                \(sluice) plugin new OwnThings --language swift 2>/dev/null
                cd OwnThings
                swift test \(options) >../said 2>&1 || { cat ../said >&2; exit 1; }
                """, in: folder.path) == 0)
        let said = try String(contentsOfFile: folder.path + "/said", encoding: .utf8)
        #expect(said.contains("Test run with 3 tests in 1 suite passed"), "\(said.suffix(2_000))")
        let check = try Program("sluice", ["plugin", "check", "\(folder.path)/OwnThings/.build/debug/libOwnThings.so", "--json"])
        let checked = try JSON.parse(Array((try #require(await check.line(within: 60), "\(check.said)")).utf8))
        #expect(checked["fit"] == true && checked["name"] == "OwnThings")
        #expect(await check.end() == .exit(0), "\(check.said)")
    }

    private static func shell(_ command: String, in folder: String) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-ec", command]
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }

    @Test func `goes from an empty folder to a plugin that a gateway would load`() async throws {
        let folder = try DataFolder()
        let sluice = Program.folder.appendingPathComponent("sluice").path
        let app = try folder.app().path
        try #"{ "types": ["Airport"] }"#.write(toFile: folder.path + "/config.json", atomically: true, encoding: .utf8)
        #expect(
            try Self.shell(
                "\(sluice) plugin new OpenShops --language c 2>/dev/null && make -s -C OpenShops libOpenShops.so", in: folder.path) == 0)
        let library = "\(folder.path)/OpenShops/libOpenShops.so"
        let check = try Program("sluice", ["plugin", "check", library, "--app", app, "--config", folder.path + "/config.json", "--json"])
        let checked = try JSON.parse(Array((try #require(await check.line(within: 60), "\(check.said)")).utf8))
        #expect(checked["fit"] == true && checked["name"] == "OpenShops")
        #expect(await check.end() == .exit(0))
        let add = try Program("sluice", ["plugin", "add", "--app", app, library, "--config", folder.path + "/config.json"])
        #expect(await add.end() == .exit(0), "\(add.said)")
        let list = try Program("sluice", ["plugin", "list", "--app", app])
        #expect(await list.end() == .exit(0), "\(list.said)")
        let lines = await list.remainingLines() ?? []
        #expect(lines.contains { $0.hasPrefix("libAppServicesRules.so: AppServicesRules 1.0") }, "\(lines)")
        #expect(
            lines.contains {
                $0.hasPrefix("plugins/OpenShops/libOpenShops.so: OpenShops 0.1: call_function, check_write, configure, open_session")
            },
            "\(lines)")

        // A file that is another now is named, and the exit code tells.
        #expect(try Self.shell("printf x >> \(app)/plugins/OpenShops/libOpenShops.so", in: folder.path) == 0)
        let altered = try Program("sluice", ["plugin", "list", "--app", app])
        #expect(await altered.end() == .exit(1))
        #expect(await altered.remainingLines()?.contains { $0.contains("plugin-altered (508)") } == true)
    }
}
