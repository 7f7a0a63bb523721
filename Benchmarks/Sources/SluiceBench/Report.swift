import Foundation

/// The table that a run ends with: every figure beside its reference.
struct Report {
    private var rows: [[String]] = []

    /// Adds a line and prints it at once.
    mutating func add(_ what: String, ours: String, reference: String, ratio: String, target: String) {
        rows.append([what, ours, reference, ratio, target])
        say("  \(what): \(ours); \(reference); \(ratio) (target: \(target))")
    }

    /// As Markdown.
    var table: String {
        let head = ["what", "Sluice", "reference, same run", "ratio", "target"]
        let lines = [head, head.map { _ in "---" }] + rows
        return "\n" + lines.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
    }
}

extension Array where Element == Double {
    /// 0.5 is the median; NaN of nothing.
    func quantile(_ part: Double) -> Double {
        let sorted = self.sorted()
        guard !sorted.isEmpty else { return .nan }
        return sorted[Swift.min(Int(Double(sorted.count) * part), sorted.count - 1)]
    }

    var median: Double { quantile(0.5) }
}

extension Double {
    /// With so many digits after the point.
    func text(_ digits: Int = 0) -> String { String(format: "%.\(digits)f", self) }

    /// As thousands or millions.
    var short: String {
        switch self {
        case 1e6...: (self / 1e6).text(2) + " M"
        case 1e4...: (self / 1e3).text(0) + " k"
        default: text(self < 100 ? 1 : 0)
        }
    }
}

/// Seconds of a clock that does not jump.
func seconds() -> Double {
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    return Double(seconds) + Double(attoseconds) * 1e-18
}

private let start = ContinuousClock.now

/// Prints a line at once, also into a pipe.
func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
