import HTTPTypes
import Hummingbird
import SluiceCore

/// Counts and times the HTTP requests of a router. It must be outside `ErrorMiddleware`, so that errors are responses already.
struct HTTPWatch<Context: RequestContext>: RouterMiddleware {
    private let classes: [MetricNumber]
    private let seconds: MetricHistogram
    private let environment: any SluiceCore.Environment

    init(metrics: Metrics, environment: any SluiceCore.Environment) {
        classes = (1...5).map { metrics.number(.httpRequests, label: "\($0)xx") }
        seconds = metrics.histogram(.httpSeconds)
        self.environment = environment
    }

    /// Measures the time until the head of the response. A streamed body may take as long as its client sends.
    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let begin = environment.monotonicNanoseconds()
        let response = try await next(request, context)
        seconds.observe(nanoseconds: environment.monotonicNanoseconds() - begin)
        classes[min(max(response.status.code / 100, 1), 5) - 1].add()
        return response
    }
}
