/// What has become of asymmetric objects, by type.
struct ConsoleIngest: Sendable {
    private static let columns: [(head: HTML, metric: MetricName)] = [
        ("Accepted", .ingested), ("Duplicates", .ingestDuplicates), ("Refused", .ingestRefused), ("Dropped", .ingestDropped),
        ("Lag", .ingestLag),
    ]

    let metrics: Metrics

    var html: HTML {
        let columns = Self.columns.map { column in
            Dictionary(metrics.values(of: column.metric).map { ($0.label, $0.value) }) { first, _ in first }
        }
        let types = Set(columns.flatMap(\.keys)).sorted()
        guard !types.isEmpty else {
            return ConsolePage.section("ingest", "Ingest streams", "<p>No asymmetric object has come since the gateway began.</p>\n")
        }
        var table = ConsoleTable(
            "Objects since the gateway began; the lag in records, of the partitions that it has", ["Type"] + Self.columns.map(\.head))
        for type in types {
            // The lag of a type is known where there is a topic.
            table.add("\(type)", columns.enumerated().map { $1[type].map(ConsoleNumber.count) ?? ($0 == 4 ? "–" : ConsoleNumber.count(0)) })
        }
        return ConsolePage.section("ingest", "Ingest streams", table.html)
    }
}
