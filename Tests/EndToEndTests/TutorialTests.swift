import Foundation
import SluiceCore
import SluiceValues
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.serialized, .timeLimit(.minutes(10))) struct `The tutorial` {
    @Test func `has the program that is built`() throws {
        var names: [String] = []
        for case .file(let path, let text) in try TutorialPage().steps where path.contains("/Sources/") {
            let name = try #require(path.split(separator: "/").last)
            names.append(String(name))
            let built = TutorialPage.root.appendingPathComponent("Examples/TeamTasks/\(name)")
            #expect(try String(contentsOf: built, encoding: .utf8) == text, "docs/tutorial.md and \(built.path) differ")
        }
        #expect(names == ["Models.swift", "main.swift"])
    }

    @Test func `has no output where an empty block says so`() throws {
        #expect(TutorialPage.difference([], from: []) == nil && TutorialPage.difference([], from: ["a"]) != nil)
        #expect(TutorialPage.difference(["a …", "c"], from: ["a b", "x", "c"]) == nil)
        #expect(TutorialPage.difference(["c", "a"], from: ["a", "c"]) == "a")
        let empty = try TutorialPage().steps.filter { if case .script(_, let output) = $0 { output == [] } else { false } }
        #expect(empty.count == 1)
    }

    @Test func `has a package that SwiftPM reads, with the product that Sluice has`() async throws {
        let folder = try DataFolder()
        for case .file(let path, let text) in try TutorialPage().steps where path.hasSuffix("Package.swift") {
            try text.write(toFile: folder.path + "/Package.swift", atomically: true, encoding: .utf8)
        }
        let program = try Program("/usr/bin/env", ["swift", "package", "--package-path", folder.path, "dump-package"])
        let out = await program.remainingLines(within: 180) ?? []
        #expect(await program.end() == .exit(0), "\(program.said)")
        let package = try JSON.parse(out.joined(separator: "\n"))
        #expect(package["targets"]?.array?.first?["name"] == "TeamTasks")
        #expect(package["targets"]?.array?.first?["dependencies"]?.array?.first?["product"]?.array?.first == "RealmSwift")
    }

    /// The ports are replaced, as tests have no fixed ones, and `swift run` runs the program that the first test compares.
    @Test func `runs as printed`() async throws {
        let folder = try DataFolder()
        let ports = ["8090": "\(try LocalSocket.portToComeBackTo())", "8091": "\(try LocalSocket.portToComeBackTo())"]
        try Self.writePrograms(to: folder.path + "/bin", admin: ports["8091"] ?? "")
        var run = Run(folder: folder.path, ports: ports)
        defer { run.end() }
        var count = 0
        for step in try TutorialPage().steps {
            switch step {
            case .file(let path, let text): try MigratedApp.put(Array(text.utf8), "\(folder.path)/\(path)")
            case .script(let script, let output):
                try await run.run(script, output)
                count += 1
            }
        }
        #expect(count >= 12)
    }

    /// Writes programs that run those of the build.
    ///
    /// - Parameter admin: The port in place of 8091, which `why` and `explain` ask by default.
    private static func writePrograms(to folder: String, admin: String) throws {
        let build = Program.folder.path
        let programs = [
            "sluice": """
            case $1 in why | explain) set -- "$@" --admin http://127.0.0.1:\(admin) ;; esac
            exec '\(build)/sluice' "$@"
            """,
            "swift": """
            [ "$1 $2 $3 $4" = "run --package-path TeamTasks TeamTasks" ] || { echo "unexpected: swift $*" >&2; exit 64; }
            shift 4
            exec '\(build)/team-tasks' "$@"
            """,
        ]
        for (name, text) in programs {
            try MigratedApp.put(Array("#!/bin/bash\n\(text)\n".utf8), "\(folder)/\(name)")
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: "\(folder)/\(name)")
        }
    }

    /// The scripts of the page, in one folder and with the variables of earlier ones.
    private struct Run {
        let folder: String
        let ports: [String: String]
        private var definitions: [String] = []
        private var server: Program?

        init(folder: String, ports: [String: String]) {
            self.folder = folder
            self.ports = ports
        }

        mutating func run(_ printed: String, _ expected: [String]?) async throws {
            let script = replaced(printed)
            if script.hasPrefix("sluice dev ") { return try await start(script, expected) }
            let program = try launch(script)
            let output = await program.remainingLines(within: 180) ?? []
            #expect(await program.end() == .exit(0), "\(script)\n\(output)\n\(program.said)\n\(log)")
            let missing = expected.flatMap { TutorialPage.difference($0.map(replaced), from: output) }
            #expect(missing == nil, "\(script)\nhas not \(missing ?? "") in\n\(output.joined(separator: "\n"))\n\(program.said)")
            definitions += script.split(separator: "\n").map(String.init).filter { $0.hasPrefix("export ") }
        }

        private mutating func start(_ script: String, _ expected: [String]?) async throws {
            let options = "--port \(ports["8090"] ?? "0") --admin-port \(ports["8091"] ?? "0")"
            let started = try launch(script.replacing("sluice dev", with: "sluice dev \(options)"))
            server = started
            let isReady = try await eventually { log.contains("Ctrl-C stops") || !started.isRunning }
            #expect(isReady && started.isRunning, "\(log)")
            let said = log.split(separator: "\n").map(String.init)
            let missing = expected.flatMap { TutorialPage.difference($0.map(replaced), from: said) }
            #expect(missing == nil, "\(missing ?? "") is not in \(log)")
        }

        /// Ends `sluice dev` as Ctrl-C does.
        func end() {
            guard let server else { return }
            for child in ProcessState.children(of: server.identifier) { kill(child.id, SIGINT) }
        }

        private var log: String { (try? String(contentsOfFile: folder + "/dev.log", encoding: .utf8)) ?? "" }

        private func replaced(_ text: String) -> String {
            ports.reduce(text) { $0.replacing(":\($1.key)", with: ":\($1.value)") }
        }

        private func launch(_ script: String) throws -> Program {
            let path = "\(folder)/bin:\(ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")"
            let lines = ["set -euo pipefail", "cd '\(folder)'"] + definitions + [script]
            let environment = ["PATH": path, "SLUICE_URL": "http://127.0.0.1:\(ports["8090"] ?? "")"]
            return try Program("/bin/bash", ["-c", lines.joined(separator: "\n")], environment: environment)
        }
    }
}
