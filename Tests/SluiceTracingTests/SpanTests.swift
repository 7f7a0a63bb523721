import SluiceCore
import SluiceTracing
import Testing
import Tracing

@Suite struct `A span` {
    private let spans = Spans()

    private var finished: [FinishedSpan] { spans.queue.first(SpanQueue.capacity) }

    @Test func `is a child of the span in whose context it starts`() async throws {
        let outer = spans.tracer.startSpan("outer", ofKind: .server)
        try await outer.within { spans.tracer.startSpan("inner").end() }
        try #require(finished.map(\.name) == ["inner", "outer"])
        #expect(finished[0].identity.trace == finished[1].identity.trace)
        #expect(finished[0].parent == finished[1].identity.span)
        #expect(finished[0].identity.span != finished[1].identity.span)
        #expect(finished[1].parent == nil)
        #expect(finished.map(\.kind) == [.internal, .server])
        #expect(finished[1].time.lowerBound <= finished[0].time.lowerBound && finished[0].time.upperBound <= finished[1].time.upperBound)
    }

    @Test func `has the code of an error and nothing of its text`() async {
        let span = spans.tracer.startSpan("failing")
        await #expect(throws: SluiceError.self) {
            try await span.within { throw SluiceError(.badChangeset, "The row 'secret' is bad.") }
        }
        #expect(finished.map(\.isError) == [true])
        #expect(finished.first?.attributes == ["error.type": .text(ErrorCode.badChangeset.name)])
    }

    @Test func `ends once`() {
        let span = spans.tracer.startSpan("one")
        span.end()
        #expect(!span.isRecording)
        span.end()
        #expect(finished.count == 1)
    }

    @Test func `keeps scalar attributes, cut and counted, and counts events and links`() {
        let span = spans.tracer.startSpan("wide")
        span.addEvent("event")
        for index in 0..<40 { span.attributes["number\(index)"] = SpanAttribute.int64(Int64(index)) }
        span.end()
        #expect(finished.first?.attributes.count == RecordedSpan.attributes)
        #expect(finished.first?.left == 9)
        let other = spans.tracer.startSpan("kinds")
        other.attributes["text"] = SpanAttribute.string(String(repeating: "x", count: 1_000))
        other.attributes["list"] = SpanAttribute.stringArray(["a"])
        other.attributes["flag"] = SpanAttribute.bool(true)
        other.attributes["part"] = SpanAttribute.double(0.5)
        other.end()
        let expected: [String: FinishedSpan.Attribute] = [
            "text": .text(String(repeating: "x", count: RecordedSpan.characters)), "flag": .flag(true), "part": .fraction(0.5),
        ]
        #expect(finished.last?.attributes == expected)
        #expect(finished.last?.left == 1)
    }

    @Test func `of the past has its time and the context of the task`() async throws {
        let outer = spans.tracer.startSpan("outer")
        try await outer.within { spans.tracer.record("call", nanoseconds: 1_000, isError: true) }
        let call = try #require(finished.first)
        #expect(call.time.upperBound - call.time.lowerBound == 1_000)
        #expect(call.isError)
        #expect(call.parent == outer.identity.span)
    }

    @Test func `of a trace that its sender does not record is not recorded`() async throws {
        var context = ServiceContext.topLevel
        spans.tracer.extract(
            ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"], into: &context, using: Headers())
        let span = spans.tracer.startSpan("quiet", context: context)
        #expect(!span.isRecording)
        try await span.within { spans.tracer.startSpan("inner").end() }
        #expect(finished.isEmpty)
    }

    @Test func `continues the trace of a request, and passes it on`() {
        var context = ServiceContext.topLevel
        spans.tracer.extract(
            ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"], into: &context, using: Headers())
        let span = spans.tracer.startSpan("request", context: context)
        span.end()
        #expect(finished.first?.identity.trace.text == "0af7651916cd43dd8448eb211c80319c")
        #expect(finished.first?.parent == 0xb7ad_6b71_6920_3331)
        var sent: [String: String] = [:]
        spans.tracer.inject(span.context, into: &sent, using: Headers())
        #expect(sent == ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-\(span.identity.spanText)-01"])
    }

    @Test func `of an upload has the same identity on every gateway`() {
        let identity = SpanIdentity.upload(app: "shop", client: 7, changeset: 3)
        #expect(identity == .upload(app: "shop", client: 7, changeset: 3))
        #expect(
            identity.traceparent == "00-e273ff6b33fb9777c86106579ffd8012-1b073935e98e0fd5-01", "gateways of other releases compute it too")
        let others: [SpanIdentity] = [
            .upload(app: "shop", client: 7, changeset: 4), .upload(app: "shop", client: 8, changeset: 3),
            .upload(app: "other", client: 7, changeset: 3), .upload(app: "shop", client: 3, changeset: 7),
        ]
        #expect(Set(others.map(\.trace)).count == 4)
        #expect(!others.map(\.trace).contains(identity.trace))
        spans.tracer.startSpan("sluice.upload", context: .root(identity)).end()
        spans.tracer.startSpan("sluice.publish", context: .child(of: identity)).end()
        #expect(finished.map(\.identity.trace) == [identity.trace, identity.trace])
        #expect(finished.map(\.parent) == [nil, identity.span])
    }

    @Test func `beyond the bound of the queue is dropped and counted`() {
        let spans = Spans(capacity: 3)
        for index in 0..<5 { spans.tracer.startSpan("span \(index)").end() }
        #expect(spans.queue.count == 3)
        #expect(spans.queue.first(10).map(\.name) == ["span 0", "span 1", "span 2"])
        #expect(spans.dropped.value == 2)
    }
}

@Suite struct `A traceparent` {
    @Test func `is read and written`() throws {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let identity = try #require(SpanIdentity(traceparent: text))
        #expect(identity.isSampled)
        #expect(identity.traceparent == text)
        #expect(SpanIdentity(traceparent: "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02-more")?.isSampled == false)
    }

    @Test(arguments: [
        "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
    ])
    func `of another form is ignored`(text: String) {
        #expect(SpanIdentity(traceparent: text) == nil)
    }
}

private struct Headers: Extractor, Injector {
    func extract(key: String, from carrier: [String: String]) -> String? { carrier[key] }
    func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) { carrier[key] = value }
}
