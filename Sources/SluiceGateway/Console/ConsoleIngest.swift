/// The ingest counters of asymmetric objects, by class.
struct ConsoleIngest: Sendable {
    private static let counters = ConsoleCounters(
        id: "ingest", title: "Ingest streams", empty: "No asymmetric object was received since the gateway started.",
        caption: "Objects since the gateway started; the lag in records, of this gateway's partitions", label: "Type",
        columns: [
            ("Accepted", .ingested, ConsoleNumber.count(0)), ("Duplicates", .ingestDuplicates, ConsoleNumber.count(0)),
            ("Refused", .ingestRefused, ConsoleNumber.count(0)), ("Dropped", .ingestDropped, ConsoleNumber.count(0)),
            // Only a class with a topic has a lag.
            ("Lag", .ingestLag, "–"),
        ])

    let metrics: Metrics

    var html: HTML { Self.counters.html(metrics) }
}
