import SluiceCore
import Synchronization

/// The gateway's metrics. A handle counts with atomic operations and without a lock. Getting a handle takes a lock, so callers keep it.
package final class Metrics: Sendable {
    private struct Key: Hashable {
        var name: MetricName
        var label: String
    }

    private enum Cell {
        case number(MetricNumber)
        case histogram(MetricHistogram)
    }

    /// The maximum number of label values of a metric. Further ones count as `other`, as clients may choose label values.
    static let labelValues = 100

    private let cells = Mutex<[Key: Cell]>([:])

    package init() {}

    /// Returns the handle of a counter or gauge.
    ///
    /// - Parameter label: The value of the metric's label, if it has one.
    /// - Precondition: The metric is not a histogram.
    package func number(_ name: MetricName, label: String = "") -> MetricNumber {
        precondition(name.kind != .histogram, "\(name.rawValue) is a histogram")
        let cell = cell(name, label) { .number(MetricNumber()) }
        guard case .number(let number) = cell else { return MetricNumber() }
        return number
    }

    /// Returns the handle of a histogram.
    ///
    /// - Precondition: The metric is a histogram.
    package func histogram(_ name: MetricName, label: String = "") -> MetricHistogram {
        precondition(name.kind == .histogram, "\(name.rawValue) is a \(name.kind)")
        let cell = cell(name, label) { .histogram(MetricHistogram()) }
        guard case .histogram(let histogram) = cell else { return MetricHistogram() }
        return histogram
    }

    private func cell(_ name: MetricName, _ label: String, make: () -> Cell) -> Cell {
        cells.withLock { cells in
            var key = Key(name: name, label: name.label == nil ? "" : label)
            if let cell = cells[key] { return cell }
            if cells.keys.count(where: { $0.name == name }) >= Self.labelValues { key.label = "other" }
            if let cell = cells[key] { return cell }
            let cell = make()
            cells[key] = cell
            return cell
        }
    }

    /// Returns the values of a counter or gauge for each label that has a handle, in no order.
    package func values(of name: MetricName) -> [(label: String, value: Double)] {
        cells.withLock { $0 }.compactMap { key, cell in
            guard key.name == name, case .number(let number) = cell else { return nil }
            return (key.label, number.value)
        }
    }

    // MARK: Exposition

    /// The metrics in the Prometheus text format, version 0.0.4, in the order of `MetricName` and then by label. A counter or gauge
    /// without label and handle is 0.
    package var exposition: String {
        let cells = cells.withLock { $0 }
        let byName = Dictionary(grouping: cells, by: \.key.name)
        var text = ""
        for name in MetricName.allCases {
            let entries = (byName[name] ?? []).sorted { $0.key.label < $1.key.label }
            if entries.isEmpty, name.label != nil || name.kind == .histogram { continue }
            text += "# HELP \(name.rawValue) \(name.help)\n# TYPE \(name.rawValue) \(name.kind.rawValue)\n"
            if entries.isEmpty { text += "\(name.rawValue) 0\n" }
            for (key, cell) in entries { write(cell, name, key.label, to: &text) }
        }
        return text
    }

    private func write(_ cell: Cell, _ name: MetricName, _ value: String, to text: inout String) {
        let label = name.label.map { "\($0)=\"\(Self.escape(value))\"" }
        switch cell {
        case .number(let number): text += "\(name.rawValue)\(label.map { "{\($0)}" } ?? "") \(Self.text(number.value))\n"
        case .histogram(let histogram): write(histogram.snapshot, name, label, to: &text)
        }
    }

    private func write(_ histogram: MetricHistogram.Snapshot, _ name: MetricName, _ label: String?, to text: inout String) {
        let before = label.map { "\($0)," } ?? ""
        var count = 0
        for (bound, observed) in zip(MetricHistogram.bounds, histogram.buckets) {
            count += observed
            text += "\(name.rawValue)_bucket{\(before)le=\"\(Self.text(bound))\"} \(count)\n"
        }
        count += histogram.buckets[MetricHistogram.bounds.count]
        let only = label.map { "{\($0)}" } ?? ""
        text += "\(name.rawValue)_bucket{\(before)le=\"+Inf\"} \(count)\n"
        text += "\(name.rawValue)_sum\(only) \(Self.text(histogram.seconds))\n\(name.rawValue)_count\(only) \(count)\n"
    }

    private static func text(_ number: Double) -> String {
        if let whole = Int64(exactly: number) { return String(whole) }
        return number.isNaN ? "NaN" : number.isInfinite ? (number < 0 ? "-Inf" : "+Inf") : "\(number)"
    }

    private static func escape(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}

/// A counter or gauge.
package final class MetricNumber: Sendable {
    /// The bits of a `Double`.
    private let bits = Atomic<UInt64>(0)

    init() {}

    package var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

    /// Adds to the value. Counters must not receive a negative amount.
    package func add(_ amount: Double = 1) {
        var old = bits.load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: old) + amount).bitPattern
            let (exchanged, original) = bits.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
            if exchanged { return }
            old = original
        }
    }

    package func add(_ amount: Int) { add(Double(amount)) }
    package func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }
}

/// A histogram of times in seconds, in fixed buckets.
package final class MetricHistogram: Sendable {
    /// The upper bounds of the buckets, in seconds. One more bucket counts the rest.
    package static let bounds: [Double] = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
    ]

    struct Snapshot {
        var buckets: [Int]
        var seconds: Double
    }

    private let counts = bounds.map { _ in AtomicCount() } + [AtomicCount()]
    private let sum = MetricNumber()

    init() {}

    package func observe(seconds: Double) {
        counts[Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count].add()
        sum.add(seconds)
    }

    package func observe(nanoseconds: UInt64) { observe(seconds: Double(nanoseconds) / 1e9) }

    /// The buckets and the sum. They are read one after another, so a scrape may see an observation in only one of them.
    var snapshot: Snapshot { Snapshot(buckets: counts.map(\.value), seconds: sum.value) }
}

private final class AtomicCount: Sendable {
    private let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .relaxed) }
    func add() { count.add(1, ordering: .relaxed) }
}
