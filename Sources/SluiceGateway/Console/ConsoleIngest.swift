/// The ingest counters of asymmetric objects, by class.
struct ConsoleIngest: Sendable {
    /// The columns. `none` is shown for a missing value: only a class with a topic has a lag.
    private static let columns: [(head: HTML, metric: MetricName, none: HTML)] = [
        ("Accepted", .ingested, ConsoleNumber.count(0)), ("Duplicates", .ingestDuplicates, ConsoleNumber.count(0)),
        ("Refused", .ingestRefused, ConsoleNumber.count(0)), ("Dropped", .ingestDropped, ConsoleNumber.count(0)), ("Lag", .ingestLag, "–"),
    ]

    let metrics: Metrics

    var html: HTML {
        let columns = Self.columns.map { column in
            Dictionary(metrics.values(of: column.metric).map { ($0.label, $0.value) }) { first, _ in first }
        }
        let types = Set(columns.flatMap(\.keys)).sorted()
        guard !types.isEmpty else {
            return ConsolePage.section("ingest", "Ingest streams", "<p>No asymmetric object was received since the gateway started.</p>\n")
        }
        var table = ConsoleTable(
            "Objects since the gateway started; the lag in records, of this gateway's partitions", ["Type"] + Self.columns.map(\.head))
        for type in types {
            table.add("\(type)", zip(Self.columns, columns).map { $1[type].map(ConsoleNumber.count) ?? $0.none })
        }
        return ConsolePage.section("ingest", "Ingest streams", table.html)
    }
}
