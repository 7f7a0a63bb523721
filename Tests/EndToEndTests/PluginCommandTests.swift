import Foundation
import SluiceCore
import Testing

@Suite(.timeLimit(.minutes(2))) struct `The command sluice plugin` {
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
            lines.contains { $0.hasPrefix("plugins/OpenShops/libOpenShops.so: OpenShops 0.1: check_write_rows, configure, open_session") },
            "\(lines)")

        // A file that is another now is named, and the exit code tells.
        #expect(try Self.shell("printf x >> \(app)/plugins/OpenShops/libOpenShops.so", in: folder.path) == 0)
        let altered = try Program("sluice", ["plugin", "list", "--app", app])
        #expect(await altered.end() == .exit(1))
        #expect(await altered.remainingLines()?.contains { $0.contains("plugin-altered (508)") } == true)
    }
}
