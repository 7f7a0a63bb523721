import Foundation
import Testing

/// The completion scripts and the man pages of the program.
@Suite(.timeLimit(.minutes(5))) struct `The manual` {
    private struct Ran {
        var code: Program.Ending
        var out: String
        var err: String
    }

    private static func run(_ name: String, _ words: [String]) async throws -> Ran {
        let program = try Program(name, words)
        let lines = await program.remainingLines(within: 120) ?? []
        return Ran(code: await program.end(), out: lines.joined(separator: "\n"), err: program.said)
    }

    private static var sluice: String { Program.folder.appendingPathComponent("sluice").path }

    private static func has(_ program: String) async throws -> Bool {
        try await run("/usr/bin/env", ["bash", "-c", "command -v \(program)"]).code == .exit(0)
    }

    @Test func `has the pages that the commands give`() async throws {
        let check = try await Self.run(
            "/usr/bin/env", ["python3", "\(TutorialPage.root.path)/dev/generate-manual", "--check", Self.sluice])
        #expect(check.code == .exit(0), "\(check)")
    }

    @Test func `has pages that groff formats without a warning`() async throws {
        guard try await Self.has("groff") else { return }
        let folder = TutorialPage.root.appendingPathComponent("docs/man").path
        let pages = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".1") }.sorted()
        #expect(pages.count > 20 && pages.contains("sluice-serve.1"))
        let ran = try await Self.run("/usr/bin/env", ["groff", "-man", "-ww", "-z", "-Tutf8"] + pages.map { "\(folder)/\($0)" })
        #expect(ran.code == .exit(0) && ran.err.isEmpty, "\(ran.err)")
    }

    @Test(arguments: [
        ("bash", "-n", "bash-completion/completions/sluice"), ("zsh", "-n", "zsh/site-functions/_sluice"),
        ("fish", "-n", "fish/vendor_completions.d/sluice.fish"),
    ])
    func `is installed with completion scripts that their shells parse`(shell: String, option: String, path: String) async throws {
        let folder = try DataFolder()
        let installed = try await Self.run(
            "/usr/bin/env", ["bash", "\(TutorialPage.root.path)/dev/install-manual", Self.sluice, folder.path])
        #expect(installed.code == .exit(0), "\(installed.err)")
        let script = "\(folder.path)/share/\(path)"
        #expect(try String(contentsOfFile: script, encoding: .utf8).contains("admin-token"))
        #expect(FileManager.default.fileExists(atPath: "\(folder.path)/share/man/man1/sluice-init.1"))
        guard try await Self.has(shell) else { return }
        let parsed = try await Self.run("/usr/bin/env", [shell, option, script])
        #expect(parsed.code == .exit(0) && parsed.err.isEmpty, "\(parsed.err)")
    }

    @Test func `completes the commands in bash`() async throws {
        let folder = try DataFolder()
        let script = try await Self.run("sluice", ["--generate-completion-script", "bash"])
        try script.out.write(toFile: folder.path + "/sluice.bash", atomically: true, encoding: .utf8)
        let lines = """
            source '\(folder.path)/sluice.bash'
            COMP_WORDS=(sluice sch); COMP_CWORD=1; COMP_LINE='sluice sch'; COMP_POINT=10
            \(script.out.matches(of: /complete .*-F (\w+) sluice/).last.map { String($0.1) } ?? "false") sluice sch sluice
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let ran = try await Self.run("/usr/bin/env", ["bash", "-c", lines])
        #expect(ran.out.split(separator: "\n").contains { $0.hasPrefix("schema") }, "\(ran)")
    }
}
