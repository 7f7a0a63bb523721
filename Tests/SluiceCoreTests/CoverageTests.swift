import Foundation
import SluiceCore
import Testing

/// That each code and each rule has a test: what nobody tries may be anything.
@Suite struct `What the tests try` {
    private static var root: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized
    }

    /// The sources of all tests but this one.
    private static var tests: String {
        get throws {
            let folder = root.appendingPathComponent("Tests")
            let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
            return try files.filter { $0.hasSuffix(".swift") && !$0.hasSuffix("CoverageTests.swift") }
                .map { try String(contentsOf: folder.appendingPathComponent($0), encoding: .utf8) }.joined(separator: "\n")
        }
    }

    /// The words that come after a dot.
    private static func members(in text: String) -> Set<Substring> {
        Set(text.matches(of: /\.([a-z][A-Za-z0-9]*)/).map(\.1))
    }

    @Test func `is every error code, by its name`() throws {
        let members = Self.members(in: try Self.tests)
        let untried = ErrorCode.allCases.map { "\($0)" }.filter { !members.contains($0[...]) }
        #expect(untried == [], "Write a test that expects the error, and name the code in it.")
        #expect(ErrorCode.allCases.count > 70)
    }

    /// Every rule of merging that has a number, and every cause for undoing a write: `docs/merging.md` says where it is tried.
    @Test func `is every rule of merging and every cause of an undone write, as docs/merging.md says`() throws {
        let (tests, page) = (try Self.tests, try String(contentsOf: Self.root.appendingPathComponent("docs/merging.md"), encoding: .utf8))
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
