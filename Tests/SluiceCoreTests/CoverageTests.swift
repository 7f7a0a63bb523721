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

    /// Where gateways, programs and apps are tried as a whole.
    private static let whole = [
        "SluiceGatewayTests", "SluiceScenarioTests", "SluiceOracleTests", "SluiceToolsTests", "EndToEndTests", "SluiceSDKTests",
    ]
    /// The codes that these do not expect: where they are tried, and why there.
    private static let elsewhere: [ErrorCode: (suite: String, reason: String)] = [
        .postgresStatement: ("SluicePostgresTests", "a gateway sends no statement that PostgreSQL does not take"),
        .postgresSetting: ("SluicePostgresTests", "it needs a server with other settings, and all tests have one server"),
        .logNotAuthorized: ("SluiceKafkaTests", "it needs brokers with access lists, and the tests' broker has none"),
        .slotLost: ("SluicePostgresTests", "it needs a server that drops its log, and all tests have one server"),
        .mailFailed: ("SluiceMailTests", "the gateway writes no subject that a mail cannot have"),
        .serverKeyMismatch: ("SluiceSyncTests", "it needs a server with TLS and another key, of which the transport has one"),
        .replicaCorrupt: ("SluiceReplicaTests", "it needs a damaged file, which is tried byte by byte there"),
        .replicaVersion: ("SluiceReplicaTests", "it needs a file of another release"),
        .deviceFull: ("SluiceReplicaTests", "it needs a process whose files may not grow"),
    ]

    @Test func `is every error code, by its name`() throws {
        // What apps are told of each code is a table of all of them, which expects none.
        func members(of suites: [String]) throws -> Set<Substring> {
            Self.members(
                in: try suites.map { try Self.sources(in: "Tests/\($0)", without: ["SyncErrorTests.swift"]) }.joined(separator: "\n"))
        }
        let tried = try members(of: Self.whole)
        for code in ErrorCode.allCases {
            if let (suite, reason) = Self.elsewhere[code] {
                #expect(!tried.contains("\(code)"), "\(code) is tried as a whole now: it is no exception any more.")
                #expect(
                    try members(of: [suite]).contains("\(code)"), "\(suite) expects no \(code), which is not tried as a whole: \(reason)")
            } else {
                #expect(tried.contains("\(code)"), "Write a test in one of \(Self.whole) that expects \(code), and name the code in it.")
            }
        }
        #expect(ErrorCode.allCases.count > 70)
    }

    /// Every rule of merging that has a number, and every cause for undoing a write: `docs/merging.md` says where it is tried.
    @Test func `is every rule of merging and every cause of an undone write, as docs/merging.md says`() throws {
        let (tests, page) = (
            try Self.sources(in: "Tests", without: ["CoverageTests.swift"]),
            try String(contentsOf: Self.root.appendingPathComponent("docs/merging.md"), encoding: .utf8)
        )
        for rule in (1...26).map({ "CR-\($0)" }) + ["CR-30", "CR-32"] + (1...7).map({ "CW-\($0)" }) {
            let rows = page.split(separator: "\n").filter { $0.hasPrefix("| \(rule) |") }
            #expect(rows.count > 1, "\(rule) has no row with its outcome, or none with a test, in docs/merging.md")
            // The first row has the outcome, each further one the name of a test in its last cell.
            var names: [String] = []
            for row in rows.dropFirst() {
                let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
                let found = cells.last?.matches(of: /`([^`]+)`/).map { String($0.1) } ?? []
                #expect(!found.isEmpty, "\(rule) has a row without a test in docs/merging.md: \(row)")
                names += found
            }
            #expect(!names.isEmpty, "\(rule) has no test in docs/merging.md")
            for name in names { #expect(tests.contains(name), "\(rule): no test says “\(name)”") }
        }
    }
}
