package import Hummingbird
import NIOCore
import SluiceCore
import Synchronization

/// Limits the requests of each address, upgrades included.
package final class RequestLimiter: Sendable {
    private let limits: AdmissionLimits
    private let buckets: Mutex<TokenBuckets<NetworkAddress>>

    package init(_ limits: AdmissionLimits = AdmissionLimits()) {
        self.limits = limits
        buckets = Mutex(
            TokenBuckets(
                capacity: limits.requestBurst, secondsPerToken: 1 / Double(limits.requestsPerSecond), names: Limits.countedAddresses))
    }

    /// Counts a request.
    /// - Returns: `nil` if it is allowed, otherwise the response.
    func refusal(of address: NetworkAddress?) -> ErrorResponse? {
        guard let group = limits.group(of: address) else { return nil }
        let wait = buckets.withLock { $0.admit(group, now: NIODeadline.now().uptimeNanoseconds) }
        guard let wait else { return nil }
        let error = SluiceError(
            .tooManyRequests, "The client's address sends more than \(limits.requestsPerSecond) requests a second.",
            fix: "Wait \(wait) s. Behind a reverse proxy, name the proxy with --trusted-proxy.")
        return ErrorResponse(error, retryAfter: wait)
    }
}

/// Rejects requests beyond the limit of their address. Exempts connections of proven senders: an ingesting program sends as fast as the
/// gateway accepts. Add it after `ClientAddressMiddleware`.
package struct RequestLimitMiddleware: RouterMiddleware {
    private let limiter: RequestLimiter
    private let onRefusal: @Sendable (NetRefusal) -> Void

    package init(limiter: RequestLimiter, onRefusal: @escaping @Sendable (NetRefusal) -> Void = { _ in }) {
        self.limiter = limiter
        self.onRefusal = onRefusal
    }

    package func handle(
        _ request: Request, context: ClientContext, next: @concurrent (Request, ClientContext) async throws -> Response
    ) async throws -> Response {
        guard !context.isProven, let refusal = limiter.refusal(of: context.clientAddress) else { return try await next(request, context) }
        onRefusal(.requests)
        return refusal.response
    }
}
