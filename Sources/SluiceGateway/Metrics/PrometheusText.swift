/// Text in the Prometheus format, version 0.0.4.
struct PrometheusText {
    private(set) var text = ""

    /// Begins a metric.
    ///
    /// - Parameter help: The `HELP` line; nil for none.
    mutating func begin(_ name: String, kind: String, help: String? = nil) {
        if let help { text += "# HELP \(name) \(help)\n" }
        text += "# TYPE \(name) \(kind)\n"
    }

    /// - Parameter labels: The labels as `name="value"` with commas; nil for none.
    mutating func write(_ value: Double, of name: String, labels: String?) {
        text += "\(name)\(labels.map { "{\($0)}" } ?? "") \(Self.number(value))\n"
    }

    /// Writes a histogram with cumulative buckets.
    mutating func write(_ histogram: MetricHistogram.Snapshot, of name: String, labels: String?) {
        let before = labels.map { "\($0)," } ?? ""
        var count = 0
        for (bound, observed) in zip(MetricHistogram.bounds, histogram.buckets) {
            count += observed
            text += "\(name)_bucket{\(before)le=\"\(Self.number(bound))\"} \(count)\n"
        }
        count += histogram.buckets[MetricHistogram.bounds.count]
        text += "\(name)_bucket{\(before)le=\"+Inf\"} \(count)\n"
        write(sum: histogram.seconds, count: count, of: name, labels: labels)
    }

    /// Writes the sum and count of a histogram or summary.
    mutating func write(sum: Double, count: Int, of name: String, labels: String?) {
        let labels = labels.map { "{\($0)}" } ?? ""
        text += "\(name)_sum\(labels) \(Self.number(sum))\n\(name)_count\(labels) \(count)\n"
    }

    static func label(_ name: String, _ value: String) -> String { "\(name)=\"\(escape(value))\"" }

    private static func number(_ number: Double) -> String {
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
