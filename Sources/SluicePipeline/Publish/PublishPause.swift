/// The back-off between a failure of publishing and the next start. It doubles with each failure until a progress record is written.
struct PublishPause {
    /// The bounds of the pause, in milliseconds.
    static let (shortest, longest): (UInt64, UInt64) = (100, 5_000)
    /// The pause while another gateway holds the replication slot, in milliseconds.
    static let busyMilliseconds: UInt64 = 500

    private var next = shortest

    /// Returns the time to wait now, in milliseconds, and doubles the next one.
    mutating func failed() -> UInt64 {
        defer { next = min(next * 2, Self.longest) }
        return next
    }

    /// Resets the back-off to the shortest pause.
    mutating func progressed() { next = Self.shortest }
}
