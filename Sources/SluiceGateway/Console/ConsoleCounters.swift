/// A section of counters that share a label, with a row for each of its values.
struct ConsoleCounters: Sendable {
    /// A column. `none` is shown for a label without a value.
    typealias Column = (head: HTML, metric: MetricName, none: HTML)

    let id: String
    let title: String
    /// The text without any row.
    let empty: HTML
    let caption: HTML
    /// The head of the column of labels.
    let label: HTML
    let columns: [Column]
    /// A column of texts by label, before the others; nil for none.
    var texts: (head: HTML, byLabel: [String: String])?

    func html(_ metrics: Metrics) -> HTML {
        let values = columns.map { column in
            Dictionary(metrics.values(of: column.metric).map { ($0.label, $0.value) }) { first, _ in first }
        }
        let labels = Set(values.flatMap(\.keys)).sorted()
        guard !labels.isEmpty else { return ConsolePage.section(id, title, "<p>\(empty)</p>\n") }
        var table = ConsoleTable(caption, [label] + (texts.map { [$0.head] } ?? []) + columns.map(\.head))
        for label in labels {
            let text = texts.map { texts -> [HTML] in ["\(texts.byLabel[label] ?? "none")"] } ?? []
            table.add("\(label)", text + zip(columns, values).map { $1[label].map(ConsoleNumber.count) ?? $0.none })
        }
        return ConsolePage.section(id, title, table.html)
    }
}
