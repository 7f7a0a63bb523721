/// Decides when a gateway requests the key set of an issuer. Times are monotonic, in nanoseconds.
struct KeySetSchedule: Hashable, Sendable {
    enum Action: Hashable, Sendable {
        /// The stored keys decide.
        case use
        /// The stored keys decide, and a request renews them meanwhile.
        case useAndRenew
        /// A request comes first.
        case request
        /// No request is due and there are no keys. The failure of the last request decides.
        case fail
    }

    /// The age at which keys are renewed. Issuers announce a key hours before they use it.
    static let freshness: UInt64 = 3_600_000_000_000
    /// The age at which keys of an issuer that does not answer count no more: a key that was withdrawn must not live for ever.
    static let endurance: UInt64 = 24 * 3_600_000_000_000
    /// The time between two requests while there are keys. A stranger can send tokens with any key id.
    static let pause: UInt64 = 60_000_000_000
    /// The time between two requests without keys.
    static let pauseWithoutKeys: UInt64 = 5_000_000_000

    private var requested: UInt64?
    private var received: UInt64?

    mutating func didRequest(at now: UInt64) { requested = now }
    mutating func didReceive(at now: UInt64) { received = now }

    /// `true` if stored keys count no more.
    func hasExpired(at now: UInt64) -> Bool { received.map { now - $0 >= Self.endurance } ?? false }

    /// - Parameter hasKey: `true` if a stored key may have signed the token.
    func action(hasKey: Bool, at now: UInt64) -> Action {
        let pausing = requested.map { now - $0 }
        guard let age = received.map({ now - $0 }), !hasExpired(at: now) else {
            return pausing.map { $0 < Self.pauseWithoutKeys } == true ? .fail : .request
        }
        let isDue = pausing.map { $0 >= Self.pause } ?? true
        if !hasKey { return isDue ? .request : .use }
        return age >= Self.freshness && isDue ? .useAndRenew : .use
    }
}
