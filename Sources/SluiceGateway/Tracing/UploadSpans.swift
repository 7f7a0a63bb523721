import SluiceCore
import SluicePorts
import SluiceTracing
import Tracing

/// The spans of uploads. `sluice.upload` is the first of a trace. Any gateway adds `sluice.publish` and `sluice.deliver` to it, since the
/// identity follows from the origin.
struct UploadSpans: UploadTracer {
    let tracer: SpanTracer
    let app: String

    func committing(
        _ origin: Origin, changes: Int, _ body: () async throws -> WriteOutcome
    ) async throws -> WriteOutcome {
        let span = tracer.startSpan("sluice.upload", context: .root(identity(origin)), ofKind: .server)
        span.updateAttributes { attributes in
            attributes["sluice.client"] = SpanAttribute.string("\(origin.client)")
            attributes["sluice.changeset"] = SpanAttribute.int64(Int64(clamping: origin.changeset))
            attributes["sluice.changes"] = SpanAttribute.int64(Int64(changes))
        }
        return try await span.within(body)
    }

    /// Records the time from the commit to the acknowledgement of the log. PostgreSQL's clock may differ from this machine's.
    func published(_ transactions: [CapturedTransaction]) {
        for transaction in transactions where transaction.end != nil {
            guard let origin = transaction.origin else { continue }
            let begin = DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: UInt64(clamping: transaction.commitTime) &* 1_000)
            tracer.startSpan("sluice.publish", context: .child(of: identity(origin)), ofKind: .producer, at: begin).end()
        }
    }

    func delivered(_ origins: [Origin], nanoseconds: UInt64) {
        for origin in Set(origins) {
            tracer.record("sluice.deliver", in: .child(of: identity(origin)), ofKind: .consumer, nanoseconds: nanoseconds)
        }
    }

    private func identity(_ origin: Origin) -> SpanIdentity {
        .upload(app: app, client: origin.client.rawValue, changeset: origin.changeset)
    }
}

/// A write store that opens a span for each transaction, also for those that PostgreSQL rejects and the committer repeats.
struct TracedWrites: WriteStore {
    let store: any WriteStore
    let tracer: SpanTracer

    func transaction(_ request: WriteRequest, _ decide: WriteDecider) async throws -> WriteOutcome {
        try await tracer.startSpan("sluice.commit", ofKind: .client).within { try await store.transaction(request, decide) }
    }

    func durable() async throws { try await store.durable() }
}
