import SluiceCore
import Synchronization

/// The metrics of the gateway, and of the libraries that it uses. A handle counts with atomic operations and without a lock. Getting a
/// handle takes a lock, so callers keep it.
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
    let library = LibraryMetrics()

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

    /// The metrics in the Prometheus text format, version 0.0.4, in the order of `MetricName` and then by label, and then those of
    /// libraries. A counter or gauge of the gateway without label and handle is 0.
    package var exposition: String {
        let cells = cells.withLock { $0 }
        let byName = Dictionary(grouping: cells, by: \.key.name)
        var text = PrometheusText()
        for name in MetricName.allCases {
            let entries = (byName[name] ?? []).sorted { $0.key.label < $1.key.label }
            if entries.isEmpty, name.label != nil || name.kind == .histogram { continue }
            text.begin(name.rawValue, kind: name.kind.rawValue, help: name.help)
            if entries.isEmpty { text.write(0, of: name.rawValue, labels: nil) }
            for (key, cell) in entries {
                let label = name.label.map { PrometheusText.label($0, key.label) }
                switch cell {
                case .number(let number): text.write(number.value, of: name.rawValue, labels: label)
                case .histogram(let histogram): text.write(histogram.snapshot, of: name.rawValue, labels: label)
                }
            }
        }
        library.write(to: &text)
        return text.text
    }
}
