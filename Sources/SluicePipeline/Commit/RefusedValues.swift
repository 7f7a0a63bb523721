package import SluiceCore
import SluicePorts
import Synchronization

/// Bounds the values that are kept of rejected writes.
///
/// A client may send rejected writes without end, and each has values. An object keeps its smallest values, up to
/// `Limits.refusedValueBytes`. A user has `Limits.refusedUserBytes` at once and the same again each minute. Beyond, an object keeps none.
/// The text of the rule, which operators read, tells the number of values that were left out.
///
/// A key cannot be left out, since the client undoes the write by it. A long key counts for its user like values, and one beyond ends the
/// session.
package final class RefusedValues: Sendable {
    private let buckets: Mutex<TokenBuckets<String>>
    private let environment: any Environment
    private let leftOut: @Sendable (_ bytes: Int) -> Void

    /// - Parameter leftOut: Called with the size of values that were left out. It must not block.
    package init(environment: any Environment, leftOut: @escaping @Sendable (_ bytes: Int) -> Void = { _ in }) {
        buckets = Mutex(
            TokenBuckets(
                capacity: Limits.refusedUserBytes, secondsPerToken: 60 / Double(Limits.refusedUserBytes), names: Limits.loginNames))
        self.environment = environment
        self.leftOut = leftOut
    }

    /// The longest key that counts for nothing, in bytes.
    private static let keyBytes = 1_024

    /// Returns the rejections with the values that are kept of them.
    ///
    /// - Throws: `limitsExceeded` for a long key beyond the user's bound.
    func bounded(_ rejections: [WriteRejection], of user: String) throws(SluiceError) -> [WriteRejection] {
        for rejection in rejections {
            let bytes = rejection.object.key.recordBytes
            guard bytes <= Self.keyBytes || admits(bytes, of: user) else {
                throw SluiceError(
                    .limitsExceeded, "Rejected writes have keys of more than \(Limits.refusedUserBytes) bytes in a minute.",
                    fix: "Use keys of at most \(Self.keyBytes) bytes.")
            }
        }
        return rejections.map { rejection in
            if rejection.values.isEmpty { return rejection }
            let sizes = rejection.values.mapValues(\.recordBytes)
            let kept = kept(sizes, of: user)
            guard kept.count < sizes.count else { return rejection }
            var bounded = rejection
            bounded.values = rejection.values.filter { kept.contains($0.key) }
            let count = sizes.count - kept.count
            let bytes = sizes.reduce(0) { kept.contains($1.key) ? $0 : $0 + $1.value }
            bounded.rule = "\(rejection.rule ?? ""); \(count) values of \(bytes) bytes are not kept"
            leftOut(bytes)
            return bounded
        }
    }

    private func kept(_ sizes: [String: Int], of user: String) -> Set<String> {
        var (kept, total): (Set<String>, Int) = ([], 0)
        // By size, then by name: the same values are kept at each attempt.
        for (name, size) in sizes.sorted(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
            guard total + size <= Limits.refusedValueBytes else { break }
            total += size
            kept.insert(name)
        }
        return admits(total, of: user) ? kept : []
    }

    private func admits(_ bytes: Int, of user: String) -> Bool {
        let now = environment.monotonicNanoseconds()
        return buckets.withLock { $0.admit(user, bytes, now: now) } == nil
    }
}
