import SluiceGateway
import Testing

struct MetricsTests {
    @Test func `every metric has a name of the convention, help, and its own name`() {
        for name in MetricName.allCases {
            #expect(name.rawValue.hasPrefix("sluice_"))
            #expect(name.rawValue.utf8.allSatisfy { $0 == 95 || (97...122).contains($0) })
            #expect(name.help.hasSuffix("."))
            // A gauge of seconds is a time of the clock or a lag.
            let isGauge = ["_timestamp_seconds", "_lag_seconds"].contains { name.rawValue.hasSuffix($0) }
            #expect((name.kind == .histogram) == (name.rawValue.hasSuffix("_seconds") && !isGauge), "\(name.rawValue)")
        }
    }

    @Test func `counters and gauges are shown with help and type`() {
        let metrics = Metrics()
        let uploads = metrics.number(.uploads, label: "committed")
        uploads.add()
        uploads.add(41)
        metrics.number(.slotBudget).set(0.25)
        let lines = metrics.exposition.split(separator: "\n")
        #expect(lines.contains("# TYPE sluice_uploads_total counter"))
        #expect(lines.contains("sluice_uploads_total{result=\"committed\"} 42"))
        #expect(lines.contains("# TYPE sluice_slot_budget_ratio gauge"))
        #expect(lines.contains("sluice_slot_budget_ratio 0.25"))
        #expect(lines.contains("sluice_sessions 0"), "what never happened is 0, not missing")
    }

    @Test func `a histogram counts upwards to infinity`() {
        let metrics = Metrics()
        let seconds = metrics.histogram(.pluginSeconds, label: "checkWrite")
        seconds.observe(seconds: 0.0001)
        seconds.observe(seconds: 0.001)
        seconds.observe(nanoseconds: 20_000_000)
        seconds.observe(seconds: 1_000)
        let lines = metrics.exposition.split(separator: "\n").filter { $0.hasPrefix("sluice_plugin_seconds") }
        #expect(lines.contains("sluice_plugin_seconds_bucket{hook=\"checkWrite\",le=\"0.0005\"} 1"))
        #expect(lines.contains("sluice_plugin_seconds_bucket{hook=\"checkWrite\",le=\"0.001\"} 2"), "a bound belongs to its bucket")
        #expect(lines.contains("sluice_plugin_seconds_bucket{hook=\"checkWrite\",le=\"0.025\"} 3"))
        #expect(lines.contains("sluice_plugin_seconds_bucket{hook=\"checkWrite\",le=\"60\"} 3"))
        #expect(lines.contains("sluice_plugin_seconds_bucket{hook=\"checkWrite\",le=\"+Inf\"} 4"))
        #expect(lines.contains("sluice_plugin_seconds_sum{hook=\"checkWrite\"} 1000.0211"))
        #expect(lines.contains("sluice_plugin_seconds_count{hook=\"checkWrite\"} 4"))
    }

    @Test func `the same name and label are the same number`() {
        let metrics = Metrics()
        metrics.number(.ingested, label: "Reading").add()
        #expect(metrics.number(.ingested, label: "Reading").value == 1)
        #expect(metrics.number(.ingested, label: "Other").value == 0)
    }

    @Test func `of a metric every label that was asked for is there, with its value`() {
        let metrics = Metrics()
        #expect(metrics.values(of: .ingested).isEmpty)
        metrics.number(.ingested, label: "Reading").add(3)
        _ = metrics.number(.ingested, label: "Other")
        metrics.number(.ingestRefused, label: "Third").add()
        metrics.histogram(.pluginSeconds, label: "check_write").observe(seconds: 1)
        #expect(
            metrics.values(of: .ingested).sorted { $0.label < $1.label }.map { "\($0.label) \($0.value)" } == ["Other 0.0", "Reading 3.0"])
        #expect(metrics.values(of: .pluginSeconds).isEmpty, "a histogram is no number")
    }

    @Test func `label values are bounded and cannot break the format`() {
        let metrics = Metrics()
        metrics.number(.ingested, label: "a\"b\\c\nd").add()
        for index in 0..<1_000 { metrics.number(.ingested, label: "type\(index)").add() }
        let lines = metrics.exposition.split(separator: "\n").filter { $0.hasPrefix("sluice_ingested_objects_total") }
        #expect(lines.contains("sluice_ingested_objects_total{type=\"a\\\"b\\\\c\\nd\"} 1"))
        #expect(lines.count == 101)
        #expect(lines.contains("sluice_ingested_objects_total{type=\"other\"} 901"))
    }

    @Test func `nothing counted by several tasks is lost`() async {
        let metrics = Metrics()
        let number = metrics.number(.deliveredChanges)
        let seconds = metrics.histogram(.deliverySeconds)
        await withDiscardingTaskGroup { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<10_000 {
                        number.add()
                        seconds.observe(seconds: 1)
                    }
                }
            }
        }
        #expect(number.value == 80_000)
        #expect(metrics.exposition.contains("sluice_delivery_seconds_sum 80000\nsluice_delivery_seconds_count 80000\n"))
    }
}
