package import SluiceCore
import SluicePorts
import Synchronization

/// Bounds the values that are kept of rejected writes.
///
/// A client may send rejected writes without end, and each has values. An object keeps its smallest values, up to
/// `Limits.refusedValueBytes`. A user has `Limits.refusedUserKiB` at once and the same again each minute. Beyond, an object keeps none. The
/// text of the rule, which operators read, tells the number of values that were left out.
package final class RefusedValues: Sendable {
    private let buckets: Mutex<TokenBuckets<String>>
    private let environment: any Environment
    private let leftOut: @Sendable (_ bytes: Int) -> Void

    /// - Parameter leftOut: Called with the size of values that were left out. It must not block.
    package init(environment: any Environment, leftOut: @escaping @Sendable (_ bytes: Int) -> Void = { _ in }) {
        buckets = Mutex(
            TokenBuckets(
                capacity: Limits.refusedUserKiB, secondsPerToken: 60 / Double(Limits.refusedUserKiB), names: Limits.loginNames))
        self.environment = environment
        self.leftOut = leftOut
    }

    /// Returns the rejections with the values that are kept of them.
    func bounded(_ rejections: [WriteRejection], of user: String) -> [WriteRejection] {
        rejections.map { rejection in
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
        let kibibytes = (total + 1_023) / 1_024
        let now = environment.monotonicNanoseconds()
        return buckets.withLock { $0.admit(user, kibibytes, now: now) } == nil ? kept : []
    }
}
