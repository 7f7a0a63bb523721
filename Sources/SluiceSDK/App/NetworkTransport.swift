public import Foundation
import Synchronization

/// Sends the HTTP requests of an app in place of the SDK's own client: logins, tokens, API keys. Sync has a connection of its own.
///
/// Set it in `AppConfiguration.transport`.
public protocol NetworkTransport: AnyObject, Sendable {
    /// - Parameters:
    ///   - request: to be sent once: nothing that fails is to be tried again.
    ///   - completion: to be called once, from any thread and within the request's `timeout`: a later call finds that there was no answer.
    ///     Only the first call counts.
    func sendRequest(toServer request: NetworkRequest, completion: @escaping @Sendable (NetworkResponse) -> Void)
}

/// A request of an app to its server.
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
    /// Seconds for the request and its answer.
    public var timeout: TimeInterval
    public var headers: [String: String]
    /// JSON, or empty.
    public var body: String

    /// Seconds: a year. No request is waited for longer.
    static let longest: TimeInterval = 365 * 86_400
}

/// The answer to a request of an app.
public struct NetworkResponse: Hashable, Sendable {
    /// 0: there was no answer, and `body` may say why.
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
            let isDone = Once()
            // Unstructured because: nothing can end a transport that does not call back; it ends with the answer or the time.
            let deadline = _Concurrency.Task {
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

/// True for the first who asks.
private final class Once: Sendable {
    private let isTaken = Atomic<Bool>(false)
    func take() -> Bool { !isTaken.exchange(true, ordering: .acquiringAndReleasing) }
}
