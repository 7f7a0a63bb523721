import Foundation
import Testing

/// The files and commands of `docs/tutorial.md`, in their order.
struct TutorialPage {
    enum Step {
        /// A file and its content. The paragraph before the block ends with the path.
        case file(path: String, text: String)
        /// A script, with the lines that its output must have in their order. `…` stands for any text. Without a line the output must be
        /// empty, and nil means any output.
        case script(String, output: [String]?)
    }

    let steps: [Step]

    static var root: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized
    }

    init() throws {
        let text = try String(contentsOf: Self.root.appendingPathComponent("docs/tutorial.md"), encoding: .utf8)
        var steps: [Step] = []
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)[...]
        var paragraph = ""
        while let line = lines.popFirst() {
            guard line.hasPrefix("```") else {
                if line.isEmpty { continue }
                paragraph = line.hasPrefix("#") ? "" : paragraph + " " + line
                continue
            }
            let block = lines.prefix { $0 != "```" }
            lines = lines.dropFirst(block.count + 1)
            switch line.dropFirst(3) {
            case "sh": steps.append(.script(block.joined(separator: "\n"), output: nil))
            case "text":
                guard case .script(let script, _)? = steps.popLast() else { throw Unreadable(text: "output without a script: \(block)") }
                steps.append(.script(script, output: block.map(String.init)))
            default:
                let path = try #require(paragraph.matches(of: /`([^`]+\/[^`]+\.(?:json|swift))`/).last?.1, "\(paragraph)")
                steps.append(.file(path: String(path), text: block.map { $0 + "\n" }.joined()))
            }
            paragraph = ""
        }
        self.steps = steps
    }

    struct Unreadable: Error {
        var text: String
    }

    /// Returns the first expected line that the output does not have after the one before it, or the line of an output that must be
    /// empty; nil if it is as expected.
    static func difference(_ expected: [String], from output: [String]) -> String? {
        if expected.isEmpty { return output.first.map { "no line, but “\($0)”" } }
        var rest = output[...]
        for line in expected {
            let parts = line.split(separator: "…", omittingEmptySubsequences: false).map(String.init)
            guard let index = rest.firstIndex(where: { fits($0, parts) }) else { return line }
            rest = rest[(index + 1)...]
        }
        return nil
    }

    private static func fits(_ line: String, _ parts: [String]) -> Bool {
        guard parts.count > 1 else { return line == parts[0] }
        guard line.hasPrefix(parts[0]), line.hasSuffix(parts[parts.count - 1]) else { return false }
        var rest = line.dropFirst(parts[0].count)
        for part in parts.dropFirst().dropLast() where !part.isEmpty {
            guard let range = rest.firstRange(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        return true
    }
}
