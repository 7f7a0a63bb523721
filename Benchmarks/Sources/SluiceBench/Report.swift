import Foundation

/// The table at the end of a run: every figure beside its reference.
struct Report {
    private var rows: [[String]] = []

    /// Adds a row and prints it at once.
    mutating func add(_ what: String, ours: String, reference: String, ratio: String, target: String) {
        rows.append([what, ours, reference, ratio, target])
        say("  \(what): \(ours); \(reference); \(ratio) (target: \(target))")
    }

    /// The table in Markdown.
    var table: String {
        let head = ["what", "Sluice", "reference, same run", "ratio", "target"]
        let lines = [head, head.map { _ in "---" }] + rows
        return "\n" + lines.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
    }
}

extension Array where Element == Double {
    /// Returns a quantile; 0.5 is the median. Returns NaN for an empty array.
    func quantile(_ part: Double) -> Double {
        let sorted = self.sorted()
        guard !sorted.isEmpty else { return .nan }
        return sorted[Swift.min(Int(Double(sorted.count) * part), sorted.count - 1)]
    }

    var median: Double { quantile(0.5) }
}

extension Double {
    /// Returns the number with this many digits after the point.
    func text(_ digits: Int = 0) -> String { String(format: "%.\(digits)f", self) }

    /// The number in thousands or millions.
    var short: String {
        switch self {
        case 1e6...: (self / 1e6).text(2) + " M"
        case 1e4...: (self / 1e3).text(0) + " k"
        default: text(self < 100 ? 1 : 0)
        }
    }
}

/// Returns the seconds of a monotonic clock.
func seconds() -> Double {
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    return Double(seconds) + Double(attoseconds) * 1e-18
}

private let start = ContinuousClock.now

/// Returns the seconds of CLOCK_MONOTONIC, which the programs in C note.
func monotonic() -> Double { ProcessInfo.processInfo.systemUptime }

/// Prints a line at once, also to a pipe.
func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
