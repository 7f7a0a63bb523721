package import SluiceCore
package import Tracing

/// The tracer of a gateway: gives spans their identities and puts ended ones into a queue.
///
/// Errors are recorded by code or type, never by text, and events and links are counted and not kept: texts of errors may hold values of
/// rows.
package final class SpanTracer: Tracer {
    package let queue: SpanQueue
    private let environment: any Environment

    package init(queue: SpanQueue, environment: any Environment) {
        self.queue = queue
        self.environment = environment
    }

    package func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind, at instant: @autoclosure () -> Instant,
        function: String, file fileID: String, line: UInt
    ) -> RecordedSpan {
        var context = context()
        let parent = context.planned == nil ? context.span : nil
        let identity = context.planned ?? parent.map(child) ?? first()
        context.planned = nil
        context.span = identity
        return RecordedSpan(
            name: operationName, context: context, identity: identity, parent: parent?.span, kind: FinishedSpan.Kind(kind),
            begin: instant().nanosecondsSinceEpoch, queue: queue)
    }

    package func startAnySpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind, at instant: @autoclosure () -> Instant,
        function: String, file fileID: String, line: UInt
    ) -> any Span {
        startSpan(operationName, context: context(), ofKind: kind, at: instant(), function: function, file: fileID, line: line)
    }

    /// Does nothing: the exporter sends each second.
    package func forceFlush() {}

    /// Records a span that has already ended.
    ///
    /// - Parameters:
    ///   - context: The context of the span; nil for that of the task.
    ///   - nanoseconds: The time since it began.
    package func record(
        _ name: String, in context: ServiceContext? = nil, ofKind kind: SpanKind = .internal, nanoseconds: UInt64, isError: Bool = false,
        attributes: SpanAttributes = [:]
    ) {
        let end = DefaultTracerClock.now
        let begin = DefaultTracerClock.Timestamp(
            nanosecondsSinceEpoch: end.nanosecondsSinceEpoch - min(end.nanosecondsSinceEpoch, nanoseconds))
        let span = startSpan(name, context: context ?? .current ?? .topLevel, ofKind: kind, at: begin)
        span.attributes = attributes
        if isError { span.setStatus(SpanStatus(code: .error)) }
        span.end(at: end)
    }

    private func child(of parent: SpanIdentity) -> SpanIdentity {
        SpanIdentity(trace: parent.trace, span: environment.random() | 1, isSampled: parent.isSampled)
    }

    private func first() -> SpanIdentity {
        SpanIdentity(trace: .init(high: environment.random(), low: environment.random() | 1), span: environment.random() | 1)
    }

    // MARK: Propagation

    package func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let text = extractor.extract(key: SpanIdentity.header, from: carrier) else { return }
        if let identity = SpanIdentity(traceparent: text) { context.span = identity }
    }

    package func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let identity = context.span else { return }
        injector.inject(identity.traceparent, forKey: SpanIdentity.header, into: &carrier)
    }
}

extension FinishedSpan.Kind {
    fileprivate init(_ kind: SpanKind) {
        switch kind {
        case .server: self = .server
        case .client: self = .client
        case .producer: self = .producer
        case .consumer: self = .consumer
        default: self = .internal
        }
    }
}
