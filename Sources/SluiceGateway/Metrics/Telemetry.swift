import CoreMetrics
import Logging
package import SluiceCore
package import SluiceTracing
import Tracing

/// The measurements that a gateway makes of itself: metrics, and spans if the configuration names a collector.
package struct Telemetry: Sendable {
    package let metrics: Metrics
    /// The tracer; nil without a collector. Nothing is done for spans then.
    package let tracer: SpanTracer?
    private let collector: TraceCollector?

    /// - Parameter collector: Receives the spans; nil for none.
    package init(collector: TraceCollector?, environment: any Environment = SystemEnvironment()) {
        let metrics = Metrics()
        let dropped = metrics.number(.spansDropped)
        self.metrics = metrics
        self.collector = collector
        tracer = collector.map { _ in SpanTracer(queue: SpanQueue { dropped.add($0) }, environment: environment) }
    }

    /// Returns the telemetry of the process. Libraries count in it through swift-metrics from then on, and open spans in its tracer.
    ///
    /// - Precondition: The process has not called it before. Tests, which run several gateways, do not call it.
    package static func bootstrap(collector: TraceCollector? = nil) -> Telemetry {
        let telemetry = Telemetry(collector: collector)
        MetricsSystem.bootstrap(telemetry.metrics)
        if let tracer = telemetry.tracer { InstrumentationSystem.bootstrap(tracer) }
        return telemetry
    }

    /// The service that sends spans; nil without a collector.
    func exporter(of app: String, environment: any Environment, logger: Logger) -> OTLPExporter? {
        guard let collector, let tracer else { return nil }
        let exported = metrics.number(.spansExported)
        return OTLPExporter(
            to: collector, from: tracer.queue, service: "sluice-\(app)", environment: environment, logger: logger,
            exported: { exported.add($0) })
    }

    /// The spans of uploads; nil without a collector.
    func uploads(of app: String) -> UploadSpans? { tracer.map { UploadSpans(tracer: $0, app: app) } }
}
