import Foundation
import SluiceCore
import Testing

@Suite struct `The documents` {
    private static var root: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized
    }

    /// Of every page in `docs`, by its path below it.
    private static var pages: [String] {
        get throws {
            try FileManager.default.subpathsOfDirectory(atPath: root.appendingPathComponent("docs").path).filter { $0.hasSuffix(".md") }
        }
    }

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    private static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: root.appendingPathComponent(path).path) }

    /// What stands between backticks.
    private static func code(in text: String) -> Set<String> { Set(text.matches(of: /`([^`\n]+)`/).map { String($0.1) }) }

    // MARK: Files

    @Test(arguments: [("docs/data-path.md", 15), ("docs/limits.md", 40)])
    func `name only files that are there`(page: String, atLeast: Int) throws {
        let paths = Self.code(in: try Self.text(page)).filter { $0.hasPrefix("Sources/") }
        #expect(paths.count >= atLeast)
        for path in paths { #expect(Self.exists(path), "\(path) is not there") }
    }

    /// A row of the data path: `| step | action | `file` | `function` |`.
    @Test func `name functions of the data path that are in their files`() throws {
        var steps = 0
        for line in try Self.text("docs/data-path.md").split(separator: "\n") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: [" ", "`"]) }
            guard cells.count == 4, Int(cells[0]) != nil else { continue }
            steps += 1
            let source = try Self.text(cells[2])
            #expect(source.contains("func \(cells[3])("), "step \(cells[0]): \(cells[2]) has no function \(cells[3])")
        }
        #expect(steps >= 18)
    }

    /// A row of the threat model: `| attack | what holds | tests |`. Tests are files, or targets of the Makefile.
    @Test func `name tests that are there for every attack`() throws {
        let tests = Set(
            try FileManager.default.subpathsOfDirectory(atPath: Self.root.appendingPathComponent("Tests").path)
                .filter { $0.hasSuffix(".swift") }.compactMap { $0.split(separator: "/").last?.dropLast(".swift".count) })
        let targets = Set(try Self.text("Makefile").matches(of: /(?m)^([a-z]+):/).map { "make \($0.1)" })
        let text = try Self.text("docs/security.md")
        var attacks = 0
        for line in text.split(separator: "\n") where line.hasPrefix("|") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: [" "]) }
            guard cells.count == 3, cells[0] != "attack", !cells[0].hasPrefix("---") else { continue }
            attacks += 1
            let shown = Self.code(in: cells[2])
            #expect(!shown.isEmpty, "\(cells[0]): no test is named")
            let missing = shown.filter { !tests.contains($0[...]) && !targets.contains($0) }
            #expect(missing.isEmpty, "\(cells[0])")
        }
        #expect(attacks >= 50)
        let missing = text.matches(of: /`(\w+(?:Tests|Scenarios))`/).map(\.1).filter { !tests.contains($0) }
        #expect(missing.isEmpty)
    }

    /// A row of the glossary: `| term | meaning | `type or table` | page |`.
    @Test func `define terms by types and tables that exist`() throws {
        // The folders by themselves: beside them are those of builds, with a hundred thousand files.
        let sources = try ["Sources", "Plugins"].flatMap { folder in
            try FileManager.default.subpathsOfDirectory(atPath: Self.root.appendingPathComponent(folder).path)
                .filter { $0.hasSuffix(".swift") }.map { "\(folder)/\($0)" }
        }
        let code = try sources.map { try Self.text($0) }.joined(separator: "\n")
        let types = Set(code.matches(of: /\b(?:struct|class|enum|actor|protocol|typealias) (\w+)/).map(\.1))
        let tables = Set(code.matches(of: /CREATE TABLE (?:IF NOT EXISTS )?(sluice\.\w+)/).map(\.1))
        var terms: [String] = []
        for line in try Self.text("docs/glossary.md").split(separator: "\n") where line.hasPrefix("|") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: [" ", "`"]) }
            guard cells.count == 4, cells[0] != "term", !cells[0].hasPrefix("---") else { continue }
            terms.append(cells[0])
            let isKnown = cells[2].hasPrefix("sluice.") ? tables.contains(cells[2][...]) : types.contains(cells[2][...])
            #expect(isKnown, "\(cells[0]): \(cells[2]) does not exist")
        }
        #expect((40...90).contains(terms.count) && Set(terms).count == terms.count)
    }

    @Test func `link only to pages and headings that are there`() throws {
        let pages = try Self.pages
        #expect(pages.count >= 9)
        for page in pages {
            let text = try Self.text("docs/\(page)")
            let folder = page.contains("/") ? page.split(separator: "/").dropLast().joined(separator: "/") + "/" : ""
            for link in text.matches(of: /\]\(([^)\s]+)\)/).map({ String($0.1) }) where !link.contains("://") {
                let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
                let target = parts[0].isEmpty ? page : folder + parts[0]
                guard Self.exists("docs/\(target)") else {
                    Issue.record("\(page) links to \(link), which is not there")
                    continue
                }
                guard parts.count == 2 else { continue }
                #expect(try Self.anchors(of: "docs/\(target)").contains(parts[1]), "\(page) links to \(link), which is no heading")
            }
        }
    }

    /// Headings as Markdown viewers name them: lower case, blanks as hyphens, other signs dropped.
    private static func anchors(of page: String) throws -> Set<String> {
        let headings = try text(page).split(separator: "\n").filter { $0.hasPrefix("#") }
        return Set(
            headings.map { heading in
                let title = heading.drop { $0 == "#" }.drop { $0 == " " }.lowercased()
                return String(title.compactMap { $0 == " " ? "-" : $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" ? $0 : nil })
            })
    }

    // MARK: Tables

    @Test func `have the page of errors that the table gives`() throws {
        let check = Process()
        check.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        check.arguments = ["bash", Self.root.appendingPathComponent("dev/generate-errors").path, "--check"]
        let output = Pipe()
        check.standardOutput = output
        check.standardError = output
        try check.run()
        let said = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        check.waitUntilExit()
        #expect(check.terminationStatus == 0, "\(said)")
    }

    /// HTTP errors link there.
    @Test func `have a heading for every error`() throws {
        let anchors = try Self.anchors(of: "docs/errors.md")
        for code in ErrorCode.allCases { #expect(anchors.contains(code.name), "\(code.name)") }
    }

    @Test(arguments: [
        ("Sources/SluiceCore/Limits.swift", 15), ("Sources/SluicePluginHost/Chain/PluginSpec.swift", 10),
    ])
    func `name every bound`(source: String, atLeast: Int) throws {
        let bounds = try Self.text(source).matches(of: /static let (\w+)/).map { String($0.1) }
        let named = Self.code(in: try Self.text("docs/limits.md"))
        #expect(bounds.count >= atLeast)
        for bound in bounds { #expect(named.contains(bound), "\(bound) is not in docs/limits.md") }
    }

    @Test func `name every metric`() throws {
        let source = try Self.text("Sources/SluiceGateway/Metrics/MetricName.swift")
        let metrics = source.matches(of: /"(sluice_\w+)"/).map { String($0.1) }
        let page = "docs/operations/health-and-metrics.md"
        let text = try Self.text(page)
        #expect(metrics.count >= 30)
        for metric in metrics { #expect(text.contains("`\(metric)"), "\(metric) is not in \(page)") }
    }

    /// An alert on a metric that nothing fills never fires.
    @Test func `name no metric that nothing fills`() throws {
        let folder = Self.root.appendingPathComponent("Sources/SluiceGateway").path
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder).filter {
            $0.hasSuffix(".swift") && !$0.hasSuffix("MetricName.swift")
        }
        let text = try files.map { try Self.text("Sources/SluiceGateway/\($0)") }.joined()
        let cases = try Self.text("Sources/SluiceGateway/Metrics/MetricName.swift").matches(of: /case (\w+) = "sluice_/)
        #expect(cases.count >= 30)
        for name in cases.map(\.1) { #expect(text.contains("(.\(name))") || text.contains("(.\(name),"), "\(name) is filled by nothing") }
    }

    @Test func `name every table of the companion schema`() throws {
        let source = try ["CompanionSchema", "UserEventTables"].map { try Self.text("Sources/SluicePostgres/Store/\($0).swift") }.joined()
        let tables = source.matches(of: /CREATE TABLE (?:IF NOT EXISTS )?sluice\.(\w+)/).map { String($0.1) }
        let page = "docs/operations/schema-sluice.md"
        let text = try Self.text(page)
        #expect(tables.count >= 11)
        for table in tables { #expect(text.contains("| `\(table)` |"), "\(table) is not in \(page)") }
    }
}
