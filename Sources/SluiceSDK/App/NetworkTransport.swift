public import Foundation
import Synchronization

/// Sends the HTTP requests of an app (logins, tokens, API keys) in place of the SDK's own client. Sync uses its own connection.
///
/// Set it in `AppConfiguration.transport`.
public protocol NetworkTransport: AnyObject, Sendable {
    /// Sends a request once, without retries.
    /// - Parameters:
    ///   - request: the request to send.
    ///   - completion: receives the answer, on any thread. Only the first call counts.
    ///     After `request.timeout` seconds the request has failed and a call has no effect.
    func sendRequest(toServer request: NetworkRequest, completion: @escaping @Sendable (NetworkResponse) -> Void)
}

/// An app's request to its server.
public struct NetworkRequest: Hashable, Sendable {
    public enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
        case patch = "PATCH"
        case put = "PUT"
        case delete = "DELETE"
    }

    public var method: Method
    public var url: String
    /// The time for the request and its answer, in seconds.
    public var timeout: TimeInterval
    public var headers: [String: String]
    /// JSON, or empty.
    public var body: String

    /// The longest wait for an answer, in seconds: one year.
    static let longest: TimeInterval = 365 * 86_400
}

/// The answer to an app's request.
public struct NetworkResponse: Hashable, Sendable {
    /// The HTTP status; 0 if no answer arrived, with an optional reason in `body`.
    public var httpStatusCode: Int
    public var headers: [String: String]
    public var body: String

    public init(httpStatusCode: Int, headers: [String: String] = [:], body: String = "") {
        self.httpStatusCode = httpStatusCode
        self.headers = headers
        self.body = body
    }
}

extension NetworkTransport {
    func send(_ request: NetworkRequest) async -> NetworkResponse {
        await withCheckedContinuation { continuation in
            // The deadline and the transport race; the continuation must be resumed exactly once.
            let isDone = Once()
            let deadline = _Concurrency.Task {  // Unstructured because: it ends with the answer or the deadline, even if no call returns.
                try await _Concurrency.Task.sleep(for: .seconds(min(request.timeout, NetworkRequest.longest)))
                guard isDone.take() else { return }
                continuation.resume(returning: NetworkResponse(httpStatusCode: 0, body: "no answer within \(request.timeout) s"))
            }
            sendRequest(toServer: request) { response in
                guard isDone.take() else { return }
                deadline.cancel()
                continuation.resume(returning: response)
            }
        }
    }
}

/// A flag whose `take()` returns `true` to its first caller only.
private final class Once: Sendable {
    private let isTaken = Atomic<Bool>(false)
    func take() -> Bool { !isTaken.exchange(true, ordering: .acquiringAndReleasing) }
}
