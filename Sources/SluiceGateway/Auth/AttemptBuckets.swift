package import SluiceCore

/// The remaining attempts by name: of an address, an account, or both.
package typealias AttemptBuckets = TokenBuckets<String>

extension TokenBuckets<String> {
    /// - Parameters:
    ///   - rate: The attempts of a full bucket, and the attempts regained per hour.
    ///   - names: The names of one generation. At most twice as many are remembered.
    package init(_ rate: (atOnce: Int, perHour: Int), names: Int = Limits.loginNames) {
        self.init(capacity: rate.atOnce, secondsPerToken: 3_600 / Double(rate.perHour), names: names)
    }
}

/// The most recent names, in two generations of at most `names` each.
struct RecentNames: Sendable {
    private var young: Set<String> = []
    private var old: Set<String> = []
    private let names: Int

    init(names: Int) { self.names = names }

    func contains(_ name: String) -> Bool { young.contains(name) || old.contains(name) }

    mutating func insert(_ name: String) {
        if young.count >= names, !young.contains(name) {
            old = young
            young = []
        }
        young.insert(name)
    }
}
