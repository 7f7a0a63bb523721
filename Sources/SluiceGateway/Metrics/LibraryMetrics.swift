import CoreMetrics
import Synchronization

/// The metrics that libraries make through swift-metrics. Getting a handle takes a lock; a handle counts without one.
final class LibraryMetrics: Sendable {
    /// The kinds of the text format.
    enum Kind: String { case counter, gauge, histogram, summary }

    enum Handle {
        case number(MetricNumber)
        case histogram(MetricHistogram)
        case summary(MetricSummary)
    }

    private struct Series {
        let handle: Handle
        /// The number of handles given out and not destroyed.
        var uses: Int
    }

    private struct Family {
        let kind: Kind
        /// By labels, as the text shows them.
        var series: [String: Series] = [:]
    }

    private struct Place {
        let name: String
        let labels: String
    }

    private struct State {
        var families: [String: Family] = [:]
        var places: [ObjectIdentifier: Place] = [:]
    }

    /// The maximum number of series of all libraries. A library may put a value from a client into a dimension.
    static let series = 1_000
    /// The maximum size of a name with its labels, in bytes of UTF-8.
    static let nameBytes = 1_024

    private let state = Mutex(State())

    /// Returns the handle of a series.
    ///
    /// - Returns: nil for a series beyond a bound, a name that another kind has, or labels that the text cannot show.
    func handle(_ label: String, _ dimensions: [(String, String)], _ kind: Kind, make: () -> Handle) -> Handle? {
        let name = Self.name(label, kind)
        guard !name.hasPrefix("sluice_"), let labels = Self.labels(dimensions, kind) else { return nil }
        guard name.utf8.count + labels.utf8.count <= Self.nameBytes else { return nil }
        return state.withLock { state in
            if let family = state.families[name], family.kind != kind { return nil }
            if let series = state.families[name]?.series[labels] {
                state.families[name]?.series[labels]?.uses += 1
                return series.handle
            }
            guard state.places.count < Self.series else { return nil }
            let handle = make()
            state.families[name, default: Family(kind: kind)].series[labels] = Series(handle: handle, uses: 1)
            state.places[handle.identity] = Place(name: name, labels: labels)
            return handle
        }
    }

    /// Removes a series once every handle given out has been destroyed. Does nothing for a handle that is not in the text.
    func destroy(_ handle: AnyObject) {
        let identity = ObjectIdentifier(handle)
        state.withLock { state in
            guard let place = state.places[identity] else { return }
            state.families[place.name]?.series[place.labels]?.uses -= 1
            guard state.families[place.name]?.series[place.labels]?.uses == 0 else { return }
            state.places[identity] = nil
            state.families[place.name]?.series[place.labels] = nil
            if state.families[place.name]?.series.isEmpty == true { state.families[place.name] = nil }
        }
    }

    /// Appends the metrics by name and then by label.
    func write(to text: inout PrometheusText) {
        let families = state.withLock { $0.families }
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            text.begin(name, kind: family.kind.rawValue)
            for (labels, series) in family.series.sorted(by: { $0.key < $1.key }) {
                let labels = labels.isEmpty ? nil : labels
                switch series.handle {
                case .number(let number): text.write(number.value, of: name, labels: labels)
                case .histogram(let histogram): text.write(histogram.snapshot, of: name, labels: labels)
                case .summary(let summary): text.write(sum: summary.sum, count: summary.count, of: name, labels: labels)
                }
            }
        }
    }

    /// Returns the name in the text: counters end in `_total` and times in `_seconds`, as the convention is.
    private static func name(_ label: String, _ kind: Kind) -> String {
        let name = identifier(label, allowsColon: true)
        switch kind {
        case .counter: return name.hasSuffix("_total") ? name : name + "_total"
        case .histogram: return name.hasSuffix("_seconds") ? name : name + "_seconds"
        case .gauge, .summary: return name
        }
    }

    /// Returns the labels in the order of their names; nil if two have one name, or a histogram uses the label of its buckets.
    private static func labels(_ dimensions: [(String, String)], _ kind: Kind) -> String? {
        let labels = dimensions.map { (name: identifier($0.0, allowsColon: false), value: $0.1) }.sorted { $0.name < $1.name }
        for (one, next) in zip(labels, labels.dropFirst()) where one.name == next.name { return nil }
        if kind == .histogram, labels.contains(where: { $0.name == "le" }) { return nil }
        return labels.map { PrometheusText.label($0.name, $0.value) }.joined(separator: ",")
    }

    /// Returns the text with `_` in place of each character that an identifier of the format cannot have.
    private static func identifier(_ text: String, allowsColon: Bool) -> String {
        var identifier = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "a"..."z", "A"..."Z", "_": identifier.unicodeScalars.append(scalar)
            case "0"..."9": identifier += identifier.isEmpty ? "_\(scalar)" : "\(scalar)"
            case ":" where allowsColon: identifier += ":"
            default: identifier += "_"
            }
        }
        return identifier.isEmpty ? "_" : identifier
    }
}

extension LibraryMetrics.Handle {
    fileprivate var identity: ObjectIdentifier {
        switch self {
        case .number(let number): ObjectIdentifier(number)
        case .histogram(let histogram): ObjectIdentifier(histogram)
        case .summary(let summary): ObjectIdentifier(summary)
        }
    }
}
