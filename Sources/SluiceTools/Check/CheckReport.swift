package import SluiceValues

/// The result of `sluice check`.
package struct CheckReport: Sendable {
    /// A group that could not be looked at, with the reason.
    package struct Skipped: Hashable, Sendable {
        package var area: CheckFinding.Area
        package var reason: String

        package init(_ area: CheckFinding.Area, _ reason: String) {
            self.area = area
            self.reason = reason
        }
    }

    package private(set) var findings: [CheckFinding] = []
    package private(set) var skipped: [Skipped] = []

    package init() {}

    package mutating func add(_ findings: [CheckFinding]) { self.findings += findings }

    package mutating func skip(_ area: CheckFinding.Area, _ reason: String) { skipped.append(Skipped(area, reason)) }

    package func count(_ severity: CheckFinding.Severity) -> Int { findings.count { $0.severity == severity } }

    /// `true` if a gateway may start. An unfinished look at a group counts as its own finding.
    package var isFit: Bool { count(.error) == 0 }

    /// 0, or 78 (`EX_CONFIG`) with an error.
    package var exitCode: Int32 { isFit ? 0 : 78 }

    /// The findings with a repair, each repair once.
    package var repairs: [CheckFinding] {
        var seen: Set<CheckFinding.Repair> = []
        return findings.filter { finding in finding.repair.map { seen.insert($0).inserted } ?? false }
    }

    // MARK: Text

    /// The report for a terminal: the errors first, then warnings and notes.
    package var text: String {
        var lines: [String] = []
        for severity in CheckFinding.Severity.allCases {
            for area in CheckFinding.Area.allCases {
                for finding in findings where finding.severity == severity && finding.area == area { lines += Self.lines(finding) }
            }
        }
        for group in skipped { lines.append("skipped  \(group.area.name): \(group.reason)") }
        if !lines.isEmpty { lines.append("") }
        lines.append(summary)
        if !repairs.isEmpty {
            lines.append("`sluice check --fix` makes \(Self.count(repairs.count, "of these changes")) after it has asked.")
        }
        return lines.map(TerminalText.shown).joined(separator: "\n")
    }

    private static func lines(_ finding: CheckFinding) -> [String] {
        let head = finding.severity.rawValue.padding(to: 8)
        // A message of the plugin for roles, or of many tables, has several lines.
        let message = finding.message.split(separator: "\n").map(String.init)
        return ["\(head) \(finding.area.name): \(message.first ?? "")"]
            + (message.dropFirst() + (finding.fix.isEmpty ? [] : [finding.fix]) + finding.commands).map { "           \($0)" }
    }

    private var summary: String {
        let counts = CheckFinding.Severity.allCases.compactMap { severity in
            let count = count(severity)
            return count == 0 ? nil : Self.count(count, severity.rawValue + (count == 1 ? "" : "s"))
        }
        let skipped = skipped.isEmpty ? "" : " \(Self.count(skipped.count, skipped.count == 1 ? "group" : "groups")) not looked at."
        return (counts.isEmpty ? "No findings." : counts.joined(separator: ", ") + ".") + skipped
    }

    private static func count(_ count: Int, _ what: String) -> String { "\(count) \(what)" }

    // MARK: JSON

    package var json: JSON {
        [
            "fit": .bool(isFit), "errors": .int(Int64(count(.error))), "warnings": .int(Int64(count(.warning))),
            "notes": .int(Int64(count(.note))), "findings": .array(findings.map(\.json)),
            "skipped": .array(skipped.map { ["area": .string($0.area.rawValue), "reason": .string($0.reason)] }),
        ]
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
