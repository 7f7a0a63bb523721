import SluiceCore
import SluicePostgres

/// The throughput of the gateway, with the lags and queues that delay it.
struct ConsoleFlow: Sendable {
    private struct Figure: Sendable {
        var name: HTML
        var metric: MetricName
        var label = ""
        var show: @Sendable (Double) -> HTML = ConsoleNumber.count
        /// The explanation, if the metric's help text does not suffice.
        var note: String?
    }

    let metrics: Metrics

    private static let figures = [
        Figure(name: "Sessions", metric: .sessions), Figure(name: "Connections", metric: .connections),
        Figure(name: "Subscriptions", metric: .subscriptions),
        Figure(
            name: "Uploads applied", metric: .uploads, label: "applied", note: "Client changesets applied without a rejection."),
        Figure(
            name: "Uploads compensated", metric: .uploads, label: "compensated",
            note: "Client changesets with undone writes: see sluice.rejected_write."),
        Figure(name: "Compensating writes", metric: .compensatingWrites), Figure(name: "Bootstraps", metric: .bootstraps),
        Figure(name: "Outboxes", metric: .outboxBytes, show: ConsoleNumber.bytes),
        Figure(
            name: "Publishes", metric: .isPublisher, show: { $0 == 1 ? "yes" : "no" },
            note: "1 if this gateway reads the replication slot. Only one gateway does."),
    ]
    /// The figures that `GatewayGauges.refreshOwn` measures first.
    private static let asked = [
        Figure(name: "Watermark lag", metric: .watermarkLag, show: ConsoleNumber.seconds),
        Figure(name: "Feed", metric: .feedBytes, show: ConsoleNumber.bytes),
    ]

    func html(gauges: Result<Void, SluiceError>, slot: Result<SlotState?, SluiceError>) -> HTML {
        var table = ConsoleTable("Since the gateway started, or now", ["Figure", "Value", "Meaning"])
        var problems: HTML = ""
        for figure in Self.figures { table.add(figure.name, value(figure)) }
        switch gauges {
        case .success: for figure in Self.asked { table.add(figure.name, value(figure)) }
        case .failure(let error): problems += ConsoleError.paragraph(error)
        }
        switch slot {
        case .success(let state?): add(state, to: &table)
        case .success(nil):
            problems += ConsoleError.paragraph(
                SluiceError(
                    .slotLost, "The replication slot does not exist.", fix: "A gateway creates it within seconds. If not, read its log."))
        case .failure(let error): problems += ConsoleError.paragraph(error)
        }
        return ConsolePage.section("flow", "Flow", "\(problems)\(table.html)")
    }

    private func value(_ figure: Figure) -> [HTML] {
        [
            figure.show(metrics.number(figure.metric, label: figure.label).value),
            "<span class=\"long\">\(figure.note ?? figure.metric.help)</span>",
        ]
    }

    private func add(_ state: SlotState, to table: inout ConsoleTable) {
        table.add(
            "Slot", [ConsoleNumber.bytes(Double(state.bytesKept)), "<span class=\"long\">\(MetricName.slotBytes.help)</span>"])
        let ratio = SlotBudget.ratio(kept: state.bytesKept, left: state.bytesLeft, isLost: state.isLost)
        let note =
            state.isLost
            ? "It is LOST."
            : state.bytesLeft == nil
                ? "max_slot_wal_keep_size is not set."
                : "The WAL retained as a share of max_slot_wal_keep_size; at 100 % the slot is lost."
        table.add("Slot's budget", [ConsoleNumber.percent(ratio), "<span class=\"long\">\(note)</span>"])
    }
}
