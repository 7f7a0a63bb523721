import HTTPTypes
import Hummingbird
import SluiceCore
import SluiceTracing
import Tracing

/// Counts and times the HTTP requests of a router, and opens a span for each. It must be outside `ErrorMiddleware`, so that errors are
/// responses already.
struct HTTPWatch<Context: RequestContext>: RouterMiddleware {
    private let classes: [MetricNumber]
    private let seconds: MetricHistogram
    private let environment: any SluiceCore.Environment
    private let tracer: SpanTracer?
    /// The methods that name a span. Others are text of the client.
    private static var methods: [String] { ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] }

    init(metrics: Metrics, environment: any SluiceCore.Environment, tracer: SpanTracer? = nil) {
        classes = (1...5).map { metrics.number(.httpRequests, label: "\($0)xx") }
        seconds = metrics.histogram(.httpSeconds)
        self.environment = environment
        self.tracer = tracer
    }

    /// Measures the time until the head of the response. A streamed body may take as long as its client sends.
    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let begin = environment.monotonicNanoseconds()
        let response =
            if let tracer { try await trace(request, context, next, tracer) } else { try await next(request, context) }
        seconds.observe(nanoseconds: environment.monotonicNanoseconds() - begin)
        classes[min(max(response.status.code / 100, 1), 5) - 1].add()
        return response
    }

    /// Runs a request in a span, which continues the trace of its `traceparent`.
    private func trace(
        _ request: Request, _ context: Context, _ next: @concurrent (Request, Context) async throws -> Response, _ tracer: SpanTracer
    ) async throws -> Response {
        var trace = ServiceContext.topLevel
        tracer.extract(request.headers, into: &trace, using: TraceHeaders())
        // The path may hold names and keys. Its pattern, which is known once the router has found the route, does not.
        let method = request.method.rawValue
        let span = tracer.startSpan(Self.methods.contains(method) ? method : "OTHER", context: trace, ofKind: .server)
        return try await span.within {
            let response = try await next(request, context)
            span.updateAttributes { attributes in
                attributes["http.response.status_code"] = SpanAttribute.int64(Int64(response.status.code))
                if let route = context.endpointPath { attributes["http.route"] = SpanAttribute.string(route) }
            }
            if response.status.code >= 500 { span.setStatus(SpanStatus(code: .error)) }
            return response
        }
    }
}

/// Reads the headers of W3C Trace Context from a request.
struct TraceHeaders: Extractor {
    func extract(key: String, from carrier: HTTPFields) -> String? {
        HTTPField.Name(key).flatMap { carrier[$0] }
    }
}
