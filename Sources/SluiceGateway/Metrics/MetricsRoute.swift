package import Hummingbird
import HTTPTypes

/// The route `GET /metrics` for Prometheus.
package struct MetricsRoute: Sendable {
    private let metrics: Metrics
    private let refresh: @Sendable () async -> Void

    /// - Parameter refresh: Called before each scrape to set the measured gauges.
    package init(metrics: Metrics, refresh: @escaping @Sendable () async -> Void = {}) {
        self.metrics = metrics
        self.refresh = refresh
    }

    package func add<Context: RequestContext>(to routes: some RouterMethods<Context>) {
        routes.get("metrics") { _, _ in
            await refresh()
            return Response(
                status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: metrics.exposition)))
        }
    }
}
