package import CoreMetrics

/// The factory of swift-metrics: libraries get handles of the same text. A name of `MetricName` is the gateway's own metric.
///
/// A handle for a series beyond the bounds of `LibraryMetrics` works and is not shown. `sluice_library_metrics_refused_total` counts it.
extension Metrics: MetricsFactory {
    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        libraryNumber(label, dimensions, .counter)
    }

    package func makeFloatingPointCounter(label: String, dimensions: [(String, String)]) -> any FloatingPointCounterHandler {
        libraryNumber(label, dimensions, .counter)
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        libraryNumber(label, dimensions, .gauge)
    }

    /// - Parameter aggregate: `false` for a gauge. An aggregate has a sum and a count; its unit, and so its buckets, are not known.
    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        guard aggregate else { return libraryNumber(label, dimensions, .gauge) }
        let handle = library.handle(label, dimensions, .summary) { .summary(MetricSummary()) }
        guard case .summary(let summary)? = handle else { return refused(MetricSummary()) }
        return summary
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        if let name = own(label, dimensions, .histogram) { return histogram(name, label: dimensions.first?.1 ?? "") }
        let handle = library.handle(label, dimensions, .histogram) { .histogram(MetricHistogram()) }
        guard case .histogram(let histogram)? = handle else { return refused(MetricHistogram()) }
        return histogram
    }

    package func destroyCounter(_ handler: any CounterHandler) { library.destroy(handler) }
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { library.destroy(handler) }
    package func destroyMeter(_ handler: any MeterHandler) { library.destroy(handler) }
    package func destroyRecorder(_ handler: any RecorderHandler) { library.destroy(handler) }
    package func destroyTimer(_ handler: any TimerHandler) { library.destroy(handler) }

    private func libraryNumber(_ label: String, _ dimensions: [(String, String)], _ kind: LibraryMetrics.Kind) -> MetricNumber {
        if let name = own(label, dimensions, kind) { return number(name, label: dimensions.first?.1 ?? "") }
        let handle = library.handle(label, dimensions, kind) { .number(MetricNumber()) }
        guard case .number(let number)? = handle else { return refused(MetricNumber()) }
        return number
    }

    /// Returns the gateway's metric of this name, kind and label.
    private func own(_ label: String, _ dimensions: [(String, String)], _ kind: LibraryMetrics.Kind) -> MetricName? {
        guard let name = MetricName(rawValue: label), name.kind.rawValue == kind.rawValue else { return nil }
        return dimensions.map(\.0) == (name.label.map { [$0] } ?? []) ? name : nil
    }

    private func refused<Handler>(_ handler: Handler) -> Handler {
        number(.libraryMetricsRefused).add()
        return handler
    }
}
