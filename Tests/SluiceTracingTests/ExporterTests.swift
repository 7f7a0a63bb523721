import Logging
import SluiceCore
import SluiceTracing
import SluiceValues
import Testing
import Tracing
import TracingTestSupport

@Suite(.timeLimit(.minutes(1))) struct `The exporter of spans` {
    /// Runs an exporter beside the body. It stops when the body ends.
    ///
    /// - Returns: The number of spans that the exporter has counted as sent.
    private func exporting(_ spans: Spans, to url: String, _ body: () async throws -> Void) async throws -> Int {
        let exported = Count()
        let exporter = OTLPExporter(
            to: try TraceCollector(url), from: spans.queue, service: "sluice-shop", environment: spans.environment,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, exported: { exported.add($0) })
        let running = Task { try await exporter.run() }
        do {
            try await body()
        } catch {
            running.cancel()
            _ = await running.result
            throw error
        }
        running.cancel()
        try await running.value
        return exported.value
    }

    /// The names of the spans of the next request.
    private func names(of collector: SpanCollector) async throws -> [String] {
        let request = try #require(await collector.next())
        let json = try JSON.parse(Array(request.body.utf8))
        let scope = json["resourceSpans"]?.array?.first?["scopeSpans"]?.array?.first
        return try #require(scope?["spans"]?.array).compactMap { $0["name"]?.string }
    }

    @Test func `sends OTLP in JSON`() async throws {
        let spans = Spans()
        let collector = try await SpanCollector()
        let begin = DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: 1_700_000_000_000_000_000)
        let end = DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: 1_700_000_000_000_000_500)
        let identity = try #require(SpanIdentity(traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
        let span = spans.tracer.startSpan("call", context: .child(of: identity), ofKind: .client, at: begin)
        span.attributes["hook"] = SpanAttribute.string("check \"write\"")
        span.attributes["rows"] = SpanAttribute.int64(3)
        span.setStatus(SpanStatus(code: .error))
        span.end(at: end)
        let sent = try await exporting(spans, to: collector.url) {
            spans.environment.pass()
            let request = try #require(await collector.next())
            #expect(request.path == "/v1/traces")
            #expect(request.type == "application/json")
            let head = #"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"sluice-shop"}}]},"#
            let place =
                #""traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"\#(span.identity.spanText)","parentSpanId":"b7ad6b7169203331","#
            let time = #""name":"call","kind":3,"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000000000500","#
            let attributes =
                #""attributes":[{"key":"hook","value":{"stringValue":"check \"write\""}},{"key":"rows","value":{"intValue":"3"}}],"#
            let expected =
                head + #""scopeSpans":[{"scope":{"name":"sluice"},"spans":[{"# + place + time + attributes
                + #""droppedAttributesCount":0,"status":{"code":2}}]}]}]}"#
            #expect(try JSON.parse(Array(request.body.utf8)) == JSON.parse(Array(expected.utf8)))
        }
        #expect(sent == 1)
        #expect(spans.dropped.value == 0)
        await collector.close()
    }

    @Test func `sends in batches of a bounded size`() async throws {
        let spans = Spans()
        let collector = try await SpanCollector()
        for index in 0..<1_100 { spans.tracer.startSpan("span \(index)").end() }
        let sent = try await exporting(spans, to: collector.url) {
            spans.environment.pass()
            var names: [String] = []
            for count in [512, 512, 76] {
                let batch = try await self.names(of: collector)
                #expect(batch.count == count)
                names += batch
            }
            #expect(names == (0..<1_100).map { "span \($0)" })
        }
        #expect(sent == 1_100)
        await collector.close()
    }

    @Test func `sends again what a collector in trouble did not take`() async throws {
        let spans = Spans()
        let collector = try await SpanCollector([.status(503), .status(429)])
        spans.tracer.startSpan("kept").end()
        let sent = try await exporting(spans, to: collector.url) {
            for _ in 0..<3 {
                spans.environment.pass()
                let sent = try await names(of: collector)
                #expect(sent == ["kept"])
            }
        }
        #expect(sent == 1)
        #expect(spans.dropped.value == 0)
        await collector.close()
    }

    @Test func `drops and counts what a collector refuses`() async throws {
        let spans = Spans()
        let collector = try await SpanCollector([.status(400)])
        spans.tracer.startSpan("refused").end()
        let sent = try await exporting(spans, to: collector.url) {
            spans.environment.pass()
            let refused = try await names(of: collector)
            #expect(refused == ["refused"])
            spans.tracer.startSpan("later").end()
            spans.environment.pass()
            let later = try await names(of: collector)
            #expect(later == ["later"])
        }
        #expect(sent == 1)
        #expect(spans.dropped.value == 1)
        await collector.close()
    }

    @Test func `sends at shutdown what waits`() async throws {
        let spans = Spans()
        let collector = try await SpanCollector()
        spans.tracer.startSpan("last").end()
        let sent = try await exporting(spans, to: collector.url) {}
        #expect(sent == 1)
        let last = try await names(of: collector)
        #expect(last == ["last"])
        spans.tracer.startSpan("too late").end()
        #expect(spans.dropped.value == 1)
        await collector.close()
    }

    @Test func `stops in time although the collector is silent, and counts what it drops`() async throws {
        let spans = Spans()
        let collector = try await SpanCollector([.silence, .silence])
        for index in 0..<3 { spans.tracer.startSpan("span \(index)").end() }
        var stopped = ContinuousClock.now
        let sent = try await exporting(spans, to: collector.url) {
            spans.environment.pass()
            let waiting = try await names(of: collector)
            #expect(waiting.count == 3)
            stopped = .now
        }
        #expect(ContinuousClock.now - stopped < .seconds(30), "a deadline ended the last request")
        #expect(sent == 0)
        #expect(spans.dropped.value == 3)
        await collector.close()
    }

    @Test func `keeps the bound while there is no collector`() async throws {
        let spans = Spans(capacity: 10)
        let collector = try await SpanCollector()
        let url = collector.url
        await collector.close()
        let sent = try await exporting(spans, to: url) {
            for index in 0..<25 {
                spans.tracer.startSpan("span \(index)").end()
                spans.environment.pass()
            }
            #expect(spans.queue.count == 10)
            #expect(spans.dropped.value == 15)
        }
        #expect(sent == 0)
        #expect(spans.dropped.value == 25)
    }
}

@Suite struct `The address of a collector` {
    @Test func `gets the path of OTLP unless it has one`() throws {
        #expect(try TraceCollector("http://host:4318").url == "http://host:4318/v1/traces")
        #expect(try TraceCollector("https://host/").url == "https://host/v1/traces")
        #expect(try TraceCollector("http://host/otlp/v1/traces").url == "http://host/otlp/v1/traces")
    }

    @Test(arguments: [
        "", "host:4318", "ftp://host", "http://", "http:///v1/traces", "http://user:word@host", "http://host/?key=x", "http://a b",
    ])
    func `is an http or https URL without secrets`(text: String) {
        let error = #expect(throws: SluiceError.self) { try TraceCollector(text) }
        #expect(error?.code == .configInvalid)
        #expect(error.map { text.isEmpty || !"\($0)".contains("word") } == true)
    }
}
