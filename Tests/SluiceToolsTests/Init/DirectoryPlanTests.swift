import Foundation
import SluiceCore
import SluiceTools
import TestSupport
import Testing

/// The files of `sluice init` beside those that exist.
struct DirectoryPlanTests {
    private static func with(_ files: [String: String], _ body: (String) throws -> Void) async throws {
        try await ExportCheckTests.with(files) { root in
            try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
            try body(root)
        }
    }

    @Test func `new files are written, equal ones are noted, and others are kept with their difference`() async throws {
        try await Self.with(["same.json": "1\n", "data/kept.json": "a\nb\nc\n"]) { root in
            let plan = try DirectoryPlan(["same.json": "1\n", "data/kept.json": "a\nB\nc\n", "data/new/x.json": "x"], in: root)
            #expect(plan.new == ["data/new/x.json": "x"] && plan.equal == ["same.json"])
            #expect(plan.differences == ["data/kept.json": ["  a", "- b", "+ B", "  c", "  "]])
            try plan.write()
            #expect(try String(contentsOfFile: root + "/data/new/x.json", encoding: .utf8) == "x")
            #expect(try String(contentsOfFile: root + "/data/kept.json", encoding: .utf8) == "a\nb\nc\n")
            let again = try DirectoryPlan(["data/new/x.json": "x"], in: root)
            #expect(again.new.isEmpty && again.equal == ["data/new/x.json"])
        }
    }

    @Test func `links are not written beside a kept schema that differs`() async throws {
        let texts = ["a/schema.json": "new", "a/relationships.json": "a", "b/schema.json": "same", "b/relationships.json": "b"]
        try await Self.with(["a/schema.json": "own", "b/schema.json": "same"]) { root in
            let plan = try DirectoryPlan(texts, in: root)
            #expect(plan.new == ["b/relationships.json": "b"] && plan.withheld == ["a/relationships.json": "a"])
        }
        // Links that exist are kept like any other file.
        try await Self.with(["a/schema.json": "own", "a/relationships.json": "own"]) { root in
            let plan = try DirectoryPlan(texts, in: root)
            #expect(plan.withheld.isEmpty && plan.differences.keys.sorted() == ["a/relationships.json", "a/schema.json"])
        }
    }

    @Test func `a file that appears before the write is kept`() async throws {
        try await Self.with([:]) { root in
            let plan = try DirectoryPlan(["x.json": "planned"], in: root)
            try Data("theirs".utf8).write(to: URL(fileURLWithPath: root + "/x.json"))
            #expect(throws: SluiceError.self) { try plan.write() }
            #expect(try String(contentsOfFile: root + "/x.json", encoding: .utf8) == "theirs")
        }
    }

    @Test func `a directory that has its app named by another file gets no second one`() async throws {
        try await Self.with(["root_config.json": "{}"]) { root in
            let plan = try DirectoryPlan(["realm_config.json": "{}", "x.json": ""], in: root)
            #expect(plan.new == ["x.json": ""])
        }
    }

    @Test func `a path that is a file is refused`() async throws {
        try await Self.with(["file": ""]) { root in
            #expect(
                throws: SluiceError(.configInvalid, "\(root)/file is a file.", fix: "Name a directory, or one that does not exist yet.")
            ) {
                try DirectoryPlan([:], in: root + "/file")
            }
        }
    }

    /// Applying the marks to the first text gives the second one.
    @Test(arguments: seeds(40)) func `differences lead from one text to the other`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        func text() -> String { (0..<random.below(12)).map { _ in random.pick(["a", "b", "c"]) }.joined(separator: "\n") }
        let (old, new) = (text(), text())
        try await Self.with(["f": old]) { root in
            let plan = try DirectoryPlan(["f": new], in: root)
            guard old != new else {
                #expect(plan.equal == ["f"], "seed \(seed)")
                return
            }
            // Texts this short with a difference in every few lines are shown whole, or without lines that both have.
            let shown = try #require(plan.differences["f"])
            func side(_ mark: Character) -> [String] { shown.filter { $0.first == mark }.map { String($0.dropFirst(2)) } }
            func count(_ lines: [String]) -> [String: Int] { lines.reduce(into: [:]) { $0[$1, default: 0] += 1 } }
            func lines(_ text: String) -> [String] { text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) }
            let change = count(side("+")).merging(count(side("-")).mapValues(-)) { $0 + $1 }.filter { $0.value != 0 }
            let expected = count(lines(new)).merging(count(lines(old)).mapValues(-)) { $0 + $1 }.filter { $0.value != 0 }
            #expect(change == expected, "seed \(seed): \(old) → \(new)")
        }
    }
}
