import CoreMetrics
import SluiceGateway
import Testing

@Suite struct `The factory of metrics` {
    private let metrics = Metrics()

    private func lines(of name: String) -> [String] {
        metrics.exposition.split(separator: "\n").map(String.init).filter { $0.hasPrefix(name) || $0.hasPrefix("# TYPE \(name)") }
    }

    @Test func `shows counters of libraries after the gateway's own`() {
        let counter = Counter(label: "pool.requests", dimensions: [("status", "a\"b"), ("path-name", "/x")], factory: metrics)
        counter.increment()
        counter.increment(by: 41)
        let fraction = FloatingPointCounter(label: "pool.cost_total", factory: metrics)
        fraction.increment(by: 0.5)
        fraction.increment(by: -3)
        let shown = "pool_cost_total 0.5\n# TYPE pool_requests_total counter\npool_requests_total{path_name=\"/x\",status=\"a\\\"b\"} 42\n"
        #expect(metrics.exposition.hasSuffix("sluice_library_metrics_refused_total 0\n# TYPE pool_cost_total counter\n" + shown))
    }

    @Test func `shows gauges and meters by their last value`() {
        let gauge = Gauge(label: "pool.size", factory: metrics)
        gauge.record(3)
        gauge.record(2.5)
        let meter = Meter(label: "pool.waiting", factory: metrics)
        meter.set(4)
        meter.increment(by: 2)
        meter.decrement(by: 1)
        meter.increment(by: -9)
        #expect(lines(of: "pool_size") == ["# TYPE pool_size gauge", "pool_size 2.5"])
        #expect(lines(of: "pool_waiting") == ["# TYPE pool_waiting gauge", "pool_waiting 5"])
    }

    @Test func `shows timers as histograms in seconds`() {
        let timer = Timer(label: "pool.wait", dimensions: [("kind", "x")], factory: metrics)
        timer.recordMilliseconds(2)
        timer.recordNanoseconds(-5)
        let shown = lines(of: "pool_wait")
        #expect(shown.first == "# TYPE pool_wait_seconds histogram")
        #expect(shown.contains("pool_wait_seconds_bucket{kind=\"x\",le=\"0.001\"} 1"))
        #expect(shown.contains("pool_wait_seconds_bucket{kind=\"x\",le=\"0.0025\"} 2"))
        #expect(shown.suffix(2) == ["pool_wait_seconds_sum{kind=\"x\"} 0.002", "pool_wait_seconds_count{kind=\"x\"} 2"])
    }

    @Test func `shows recorders as sum and count`() {
        let recorder = Recorder(label: "body.bytes", factory: metrics)
        recorder.record(100)
        recorder.record(20.5)
        recorder.record(Double.nan)
        #expect(lines(of: "body_bytes") == ["# TYPE body_bytes summary", "body_bytes_sum 120.5", "body_bytes_count 2"])
    }

    @Test func `gives the gateway's own metrics by their names`() {
        Counter(label: "sluice_uploads_total", dimensions: [("result", "applied")], factory: metrics).increment(by: 7)
        #expect(metrics.number(.uploads, label: "applied").value == 7)
        Gauge(label: "sluice_sessions", factory: metrics).record(3)
        #expect(metrics.number(.sessions).value == 3)
        Timer(label: "sluice_http_seconds", factory: metrics).recordSeconds(1)
        #expect(metrics.exposition.contains("sluice_http_seconds_sum 1\n"))
    }

    @Test func `refuses names of the gateway with another kind or label, and labels that are no text`() {
        Gauge(label: "sluice_uploads_total", factory: metrics).record(9)
        Counter(label: "sluice_uploads_total", dimensions: [("type", "x")], factory: metrics).increment()
        Counter(label: "sluice_else", factory: metrics).increment()
        Counter(label: "twice", dimensions: [("a.b", "1"), ("a-b", "2")], factory: metrics).increment()
        Timer(label: "wait", dimensions: [("le", "1")], factory: metrics).recordSeconds(1)
        Counter(label: "mixed", factory: metrics).increment()
        Gauge(label: "mixed_total", factory: metrics).record(5)
        #expect(metrics.number(.libraryMetricsRefused).value == 6)
        #expect(lines(of: "mixed") == ["# TYPE mixed_total counter", "mixed_total 1"])
        for absent in ["sluice_else", "sluice_uploads", "twice", "wait"] { #expect(lines(of: absent).isEmpty) }
    }

    @Test func `bounds the series of libraries, and counts handles beyond`() {
        for index in 0..<1_500 { Counter(label: "users", dimensions: [("id", "\(index)")], factory: metrics).increment() }
        #expect(lines(of: "users_total{").count == 1_000)
        #expect(metrics.number(.libraryMetricsRefused).value == 500)
        Counter(label: "users", dimensions: [("id", "0")], factory: metrics).increment()
        #expect(lines(of: "users_total{id=\"0\"}") == ["users_total{id=\"0\"} 2"], "a series that is shown goes on")
        metrics.number(.uploads, label: "applied").add()
        #expect(metrics.number(.uploads, label: "applied").value == 1, "the gateway's own are outside of the bound")
    }

    @Test func `refuses names and labels beyond a kilobyte`() {
        Counter(label: "long", dimensions: [("text", String(repeating: "x", count: 1_024))], factory: metrics).increment()
        #expect(metrics.number(.libraryMetricsRefused).value == 1)
        #expect(lines(of: "long").isEmpty)
    }

    @Test func `forgets a series once every handle of it is destroyed`() {
        let (one, other) = (Counter(label: "short", factory: metrics), Counter(label: "short", factory: metrics))
        one.increment()
        one.destroy()
        other.increment()
        #expect(lines(of: "short") == ["# TYPE short_total counter", "short_total 2"])
        other.destroy()
        #expect(lines(of: "short").isEmpty)
        Gauge(label: "short_total", factory: metrics).record(1)
        #expect(lines(of: "short") == ["# TYPE short_total gauge", "short_total 1"], "the name is free again")
    }

    @Test func `loses nothing that several tasks count, with handles of their own`() async {
        let metrics = metrics
        await withDiscardingTaskGroup { group in
            for _ in 0..<8 {
                group.addTask {
                    for index in 0..<1_000 {
                        Counter(label: "shared", factory: metrics).increment()
                        Timer(label: "shared", dimensions: [("part", "\(index % 4)")], factory: metrics).recordSeconds(1)
                    }
                }
            }
        }
        #expect(lines(of: "shared_total") == ["# TYPE shared_total counter", "shared_total 8000"])
        for part in 0..<4 { #expect(lines(of: "shared_seconds_count{part=\"\(part)\"}").first?.hasSuffix(" 2000") == true) }
    }

    /// Dashboards and alerts depend on names, kinds and order.
    @Test func `keeps the names, kinds and order of the gateway's metrics`() {
        let types = metrics.exposition.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }.map { String($0.dropFirst(7)) }
        #expect(types == Self.types)
    }

    private static let types = [
        "sluice_connections gauge",
        "sluice_certificate_end_timestamp_seconds gauge",
        "sluice_sessions gauge",
        "sluice_sessions_started_total counter",
        "sluice_sessions_ended_total counter",
        "sluice_egress_bytes_total counter",
        "sluice_outbox_bytes gauge",
        "sluice_compensating_writes_total counter",
        "sluice_client_replicas_replaced_total counter",
        "sluice_compensating_writes_left_out_bytes_total counter",
        "sluice_bootstraps_total counter",
        "sluice_bootstrap_rows_total counter",
        "sluice_subscriptions gauge",
        "sluice_captured_changes_total counter",
        "sluice_published_records_total counter",
        "sluice_delivered_changes_total counter",
        "sluice_slot_bytes gauge",
        "sluice_slot_budget_ratio gauge",
        "sluice_watermark_lag_seconds gauge",
        "sluice_feed_bytes gauge",
        "sluice_publisher gauge",
        "sluice_quarantined_rows gauge",
        "sluice_refused_records_total counter",
        "sluice_plugin_restarts_total counter",
        "sluice_rule_generation gauge",
        "sluice_rules_refused_total counter",
        "sluice_user_event_lag_seconds gauge",
        "sluice_trace_spans_exported_total counter",
        "sluice_trace_spans_dropped_total counter",
        "sluice_library_metrics_refused_total counter",
    ]
}
