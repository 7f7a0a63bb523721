import AsyncHTTPClient
package import Logging
import NIOCore
import NIOHTTP1
import ServiceLifecycle
package import SluiceCore

/// Sends ended spans to a collector by OTLP over HTTP, in JSON.
///
/// A failure of the collector concerns nothing else: the spans stay in the bounded queue and are sent again a second later.
package struct OTLPExporter: Service {
    /// The time between two sends.
    package static let interval: UInt64 = 1_000_000_000
    /// The maximum number of spans of a request.
    package static let batchSpans = 512
    /// The time for a request with its answer.
    package static let requestSeconds: Int64 = 5
    /// The time for the last requests, when the gateway stops.
    package static let shutdownSeconds: Int64 = 1
    /// The maximum size of an answer, in bytes.
    static let answerBytes = 64 * 1_024

    /// An answer other than success.
    private struct Refusal: Error, CustomStringConvertible {
        let status: UInt
        /// The number of spans dropped for it; 0 if they are sent again.
        let spans: Int

        var description: String { "status \(status), \(spans) spans dropped" }
    }

    private let collector: TraceCollector
    private let queue: SpanQueue
    private let service: String
    private let environment: any Environment
    private let logger: Logger
    private let exported: @Sendable (_ spans: Int) -> Void

    /// - Parameters:
    ///   - service: The value of `service.name`.
    ///   - exported: Receives the number of spans that the collector has accepted.
    package init(
        to collector: TraceCollector, from queue: SpanQueue, service: String, environment: any Environment, logger: Logger,
        exported: @escaping @Sendable (_ spans: Int) -> Void
    ) {
        self.collector = collector
        self.queue = queue
        self.service = service
        self.environment = environment
        self.logger = logger
        self.exported = exported
    }

    /// Sends until shutdown or cancellation. What waits then is sent within a second, or dropped.
    package func run() async throws {
        let client = Self.makeClient()
        // It ends only by a cancellation, as it handles every failure of the collector.
        try? await cancelWhenGracefulShutdown { try await sendRegularly(client) }
        // Unstructured because: the last requests are sent although the task of this service is cancelled. They have a deadline.
        await Task { await finish(client) }.value
        try? await client.shutdown()
    }

    private static func makeClient() -> HTTPClient {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.httpVersion = .http1Only
        // The next second brings the next attempt.
        configuration.connectionPool.retryConnectionEstablishment = false
        // Spans of the requests that carry spans would never end.
        configuration.tracing.tracer = nil
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    private func sendRegularly(_ client: HTTPClient) async throws {
        var isFailing = false
        while true {
            try await environment.sleep(nanoseconds: Self.interval)
            do {
                try await sendAll(client) { .now() + .seconds(Self.requestSeconds) }
                if isFailing { logger.info("The collector of traces accepts spans again.", metadata: ["url": "\(collector.url)"]) }
                isFailing = false
            } catch {
                try Task.checkCancellation()
                // One line for each outage.
                if !isFailing { logFailure(error) }
                isFailing = true
            }
        }
    }

    private func finish(_ client: HTTPClient) async {
        let deadline = NIODeadline.now() + .seconds(Self.shutdownSeconds)
        do {
            try await sendAll(client) { deadline }
        } catch {
            logFailure(error)
        }
        queue.close()
    }

    /// Sends what waits, batch by batch.
    ///
    /// - Throws: The first failure that a repetition may overcome. The batch stays in the queue.
    private func sendAll(_ client: HTTPClient, _ deadline: () -> NIODeadline) async throws {
        while true {
            let batch = queue.first(Self.batchSpans)
            if batch.isEmpty { return }
            let status = try await send(batch, client, deadline())
            switch status.code {
            case 200..<300:
                queue.remove(batch.count, areSent: true)
                exported(batch.count)
            case 429, 502, 503, 504:
                throw Refusal(status: status.code, spans: 0)
            default:
                // The collector will not accept this batch later either.
                queue.remove(batch.count, areSent: false)
                throw Refusal(status: status.code, spans: batch.count)
            }
        }
    }

    private func send(_ batch: [FinishedSpan], _ client: HTTPClient, _ deadline: NIODeadline) async throws -> HTTPResponseStatus {
        var request = HTTPClientRequest(url: collector.url)
        request.method = .POST
        request.headers.add(name: "content-type", value: "application/json")
        request.body = .bytes(ByteBuffer(bytes: OTLPMessage.encode(batch, service: service)))
        let response = try await client.execute(request, deadline: deadline)
        // Read the answer, so that the connection can be used again. The status counts, whatever becomes of the rest.
        _ = try? await response.body.collect(upTo: Self.answerBytes)
        return response.status
    }

    private func logFailure(_ error: any Error) {
        logger.warning(
            "The collector of traces does not accept spans.",
            metadata: ["url": "\(collector.url)", "waiting": "\(queue.count)", "error": "\(error)"])
    }
}
