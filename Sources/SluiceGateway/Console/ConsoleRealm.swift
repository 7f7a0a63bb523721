/// The figures of clients of Realm's protocol, by SDK, and their errors and closes.
struct ConsoleRealm: Sendable {
    private struct Column: Sendable {
        var head: HTML
        var metric: MetricName
        var show: @Sendable (Double) -> HTML = ConsoleNumber.count
    }

    private static let columns = [
        Column(head: "Sessions", metric: .realmSessions),
        Column(head: "Received", metric: .realmReceivedBytes, show: ConsoleNumber.bytes),
        Column(head: "Sent", metric: .realmSentBytes, show: ConsoleNumber.bytes), Column(head: "Uploads", metric: .realmUploads),
        Column(head: "Compensating writes", metric: .realmCompensatingWrites),
        Column(head: "Withheld messages", metric: .realmDefects), Column(head: "Client failures", metric: .realmClientFailures),
        Column(head: "Partition refusals", metric: .realmPartitionRefusals),
    ]
    private static let none: HTML = "<p>No client of Realm's protocol has connected since the gateway started.</p>\n"

    let metrics: Metrics

    var html: HTML {
        let columns = Self.columns.map { column in values(of: column.metric) }
        let names = Set(columns.flatMap(\.keys)).sorted()
        var table = ConsoleTable("By SDK, since the gateway started; the sessions now", ["SDK"] + Self.columns.map(\.head))
        for name in names { table.add("\(name)", zip(Self.columns, columns).map { $0.show($1[name] ?? 0) }) }
        let closes = counts("Ended connections, by reason", "Reason", .realmCloses)
        let content: HTML = "\(names.isEmpty ? Self.none : table.html)\(counts("Errors sent, by code", "Error", .realmErrors))\(closes)"
        return ConsolePage.section("realm", "Realm's protocol", content)
    }

    /// Returns a table of the counts by label, most first; nothing if there are none.
    private func counts(_ caption: HTML, _ head: HTML, _ metric: MetricName) -> HTML {
        let some = metrics.values(of: metric).filter { $0.value > 0 }.sorted { ($1.value, $0.label) < ($0.value, $1.label) }
        guard !some.isEmpty else { return "" }
        var table = ConsoleTable(caption, [head, "Times"])
        for (label, times) in some { table.add("<code>\(label)</code>", [ConsoleNumber.count(times)]) }
        return table.html
    }

    private func values(of metric: MetricName) -> [String: Double] {
        Dictionary(metrics.values(of: metric).map { ($0.label, $0.value) }) { first, _ in first }
    }
}
