/// The attempts of a trigger's call.
package enum TriggerRetries {
    /// The number of attempts after which a call is given up.
    package static let attempts = 12
    /// The longest wait between two attempts, in seconds.
    static let longest = 300

    /// Returns the seconds until the next attempt; nil to give the call up.
    ///
    /// - Parameter failed: The attempts that have failed, at least one.
    package static func wait(failed: Int) -> Int? { failed < attempts ? min(1 << (failed - 1), longest) : nil }
}
