import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceValues
import Testing
import TracingTestSupport

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(5))) struct `A gateway's traces` {
    private struct Span {
        var name: String
        var trace: String
        var id: String
        var parent: String?
    }

    /// Receives spans until the condition holds.
    private func spans(of collector: SpanCollector, until condition: ([Span]) -> Bool) async throws -> [Span] {
        var spans: [Span] = []
        while !condition(spans) {
            let request = try #require(await collector.next())
            let json = try JSON.parse(Array(request.body.utf8))
            let scope = json["resourceSpans"]?.array?.first?["scopeSpans"]?.array?.first
            for span in scope?["spans"]?.array ?? [] {
                spans.append(
                    Span(
                        name: span["name"]?.string ?? "", trace: span["traceId"]?.string ?? "", id: span["spanId"]?.string ?? "",
                        parent: span["parentSpanId"]?.string))
            }
        }
        return spans
    }

    @Test func `show an upload from its receipt to the sessions, in one trace`() async throws {
        let collector = try await SpanCollector()
        try await RunningGateway.with(traceCollector: collector.url) { gateway in
            let reader = try await gateway.openSession()
            try await reader.subscribe(1, [("Order", "store == 'north'")])
            let writer = try await gateway.openSession()
            try await writer.subscribe(1, [("Order", "store == 'north'")])
            try await writer.upload(1, [TestSession.order("1", ["store": .string("north"), "size": .int(1)])])
            try await reader.receive { $0.rows["Order"]?[.string("1")] != nil }
            let steps = ["sluice.commit", "sluice.publish", "sluice.deliver"]
            let spans = try await spans(of: collector) { spans in
                (steps + ["sluice.upload", "sluice.bootstrap"]).allSatisfy { step in spans.contains { $0.name == step } }
            }
            let upload = try #require(spans.first { $0.name == "sluice.upload" })
            #expect(upload.parent == nil)
            for step in steps {
                let span = try #require(spans.first { $0.name == step })
                #expect(span.trace == upload.trace, "\(step)")
                #expect(span.parent == upload.id, "\(step)")
            }
            #expect(spans.filter { $0.name == "sluice.bootstrap" }.allSatisfy { $0.trace != upload.trace })
            #expect(try await gateway.metric("sluice_trace_spans_dropped_total") == 0)
        }
        await collector.close()
    }

    @Test func `continue the trace of a request, down to the batch of ingest`() async throws {
        let collector = try await SpanCollector()
        try await RunningGateway.with(traceCollector: collector.url) { gateway in
            let token = try await gateway.anonymousToken()
            var request = URLRequest(url: try #require(URL(string: gateway.url + "/v1/ingest/Reading")))
            request.httpMethod = "POST"
            request.httpBody = Data(#"{"_id":"1","store":"north","value":1}"#.utf8)
            request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
            request.setValue("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", forHTTPHeaderField: "traceparent")
            let (_, response) = try await URLSession.shared.data(for: request)
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            let trace = "0af7651916cd43dd8448eb211c80319c"
            let spans = try await spans(of: collector) { spans in
                spans.contains { $0.trace == trace && $0.name == "POST" }
            }
            let post = try #require(spans.first { $0.trace == trace && $0.name == "POST" })
            #expect(post.parent == "b7ad6b7169203331")
            #expect(spans.contains { $0.name == "sluice.ingest" && $0.trace == trace && $0.parent == post.id })
        }
        await collector.close()
    }
}
