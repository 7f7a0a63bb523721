import Foundation
import SluiceCore
import Testing

/// That each code and each rule has a test: what nobody tries may be anything.
@Suite struct `What the tests try` {
    private static var root: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized
    }

    private static func sources(in name: String, without left: Set<String> = []) throws -> String {
        let folder = root.appendingPathComponent(name)
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
        return try files.filter { $0.hasSuffix(".swift") && !left.contains(URL(fileURLWithPath: $0).lastPathComponent) }
            .map { try String(contentsOf: folder.appendingPathComponent($0), encoding: .utf8) }.joined(separator: "\n")
    }

    /// The words that come after a dot, without those of errors that a test makes itself, for others to handle.
    private static func members(in text: String) -> Set<Substring> {
        let lines = text.split(separator: "\n").map { line in
            guard line.contains("SluiceError(."), !line.contains("#expect"), !line.contains("#require"), !line.contains("throws:") else {
                return line
            }
            return line.replacing(/SluiceError\(\.[a-zA-Z0-9]+/, with: "")
        }
        return Set(lines.joined(separator: "\n").matches(of: /\.([a-z][A-Za-z0-9]*)/).map(\.1))
    }

    @Test func `is every error code, by its name`() throws {
        // What apps are told of each code is a table of all of them, which expects none.
        let members = Self.members(in: try Self.sources(in: "Tests", without: ["CoverageTests.swift", "SyncErrorTests.swift"]))
        let untried = ErrorCode.allCases.map { "\($0)" }.filter { !members.contains($0[...]) }
        #expect(untried.isEmpty, "Write a test that expects the error, and name the code in it.")
        #expect(ErrorCode.allCases.count > 70)
    }

    /// Every rule of merging that has a number, and every cause for undoing a write: `docs/merging.md` says where it is tried.
    @Test func `is every rule of merging and every cause of an undone write, as docs/merging.md says`() throws {
        let (tests, page) = (
            try Self.sources(in: "Tests", without: ["CoverageTests.swift"]),
            try String(contentsOf: Self.root.appendingPathComponent("docs/merging.md"), encoding: .utf8)
        )
        for rule in (1...26).map({ "CR-\($0)" }) + ["CR-30", "CR-32"] + (1...7).map({ "CW-\($0)" }) {
            let row = page.split(separator: "\n").first { $0.hasPrefix("| \(rule) |") }
            let cells = try #require(row, "\(rule) is not in docs/merging.md").split(separator: "|").map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            let names = cells.last?.matches(of: /`([^`]+)`/).map { String($0.1) } ?? []
            #expect(!names.isEmpty, "\(rule) has no test in docs/merging.md")
            for name in names { #expect(tests.contains(name), "\(rule): no test says “\(name)”") }
        }
    }
}
