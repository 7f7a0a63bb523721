import CoreMetrics

/// The measurements that a gateway makes of itself.
package struct Telemetry: Sendable {
    package let metrics: Metrics

    package init(metrics: Metrics = Metrics()) {
        self.metrics = metrics
    }

    /// Returns the telemetry of the process. Libraries count in it through swift-metrics from then on.
    ///
    /// - Precondition: The process has not called it before. Tests, which run several gateways, do not call it.
    package static func bootstrap() -> Telemetry {
        let telemetry = Telemetry()
        MetricsSystem.bootstrap(telemetry.metrics)
        return telemetry
    }
}
