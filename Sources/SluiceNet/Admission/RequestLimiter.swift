package import Hummingbird
import NIOCore
import SluiceCore
import Synchronization

/// Requests of each address in a bucket that refills with time. Pure and bounded: addresses that were not heard of for longest are
/// forgotten, which is in their favour.
package struct RequestBuckets: Sendable {
    private struct Bucket {
        var level: Double
        /// Monotonic nanoseconds.
        var filled: UInt64
    }

    private let burst: Double
    private let perSecond: Double
    private let addresses: Int
    /// The addresses of the present and of the last generation; a generation ends when it is full.
    private var young: [NetworkAddress: Bucket] = [:]
    private var old: [NetworkAddress: Bucket] = [:]

    /// - Parameter addresses: remembered at least; at most twice as many.
    package init(burst: Int, perSecond: Int, addresses: Int = Limits.countedAddresses) {
        self.burst = Double(burst)
        self.perSecond = Double(perSecond)
        self.addresses = addresses
    }

    /// Addresses remembered now.
    package var count: Int { young.count + old.count }

    /// Counts a request.
    /// - Parameter now: monotonic nanoseconds.
    /// - Returns: nil if it is allowed, else seconds until the next one is.
    package mutating func take(_ address: NetworkAddress, now: UInt64) -> Int? {
        var bucket = young[address] ?? old[address] ?? Bucket(level: burst, filled: now)
        let elapsed = Double(now - min(now, bucket.filled)) / 1e9
        bucket.level = min(burst, bucket.level + elapsed * perSecond)
        bucket.filled = max(now, bucket.filled)
        let isAllowed = bucket.level >= 1
        if isAllowed { bucket.level -= 1 }
        if young.count >= addresses, young[address] == nil {
            old = young
            young = [:]
        }
        young[address] = bucket
        return isAllowed ? nil : max(1, Int(((1 - bucket.level) / perSecond).rounded(.up)))
    }
}

/// Counts the requests of each address, upgrades included.
package final class RequestLimiter: Sendable {
    private let limits: AdmissionLimits
    private let buckets: Mutex<RequestBuckets>

    package init(_ limits: AdmissionLimits = AdmissionLimits()) {
        self.limits = limits
        buckets = Mutex(RequestBuckets(burst: limits.requestBurst, perSecond: limits.requestsPerSecond))
    }

    /// Counts a request.
    /// - Returns: nil if it is allowed, else the answer.
    func refusal(of address: NetworkAddress?) -> ErrorResponse? {
        guard let group = limits.group(of: address) else { return nil }
        let wait = buckets.withLock { $0.take(group, now: NIODeadline.now().uptimeNanoseconds) }
        guard let wait else { return nil }
        let error = SluiceError(
            .tooManyRequests, "The address \(group) sends more than \(limits.requestsPerSecond) requests a second.",
            fix: "Wait \(wait) s. Behind a reverse proxy name it with --trusted-proxy.")
        return ErrorResponse(error, retryAfter: wait)
    }
}

/// Refuses requests beyond the limit of their address, unless the connection's sender is proven: a program that ingests sends as fast
/// as the gateway takes it. It comes after `ClientAddressMiddleware`.
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
