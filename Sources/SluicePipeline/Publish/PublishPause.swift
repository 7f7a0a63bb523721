/// The pause between a failure of publishing and the next start. It doubles with each failure until something is announced.
struct PublishPause {
    /// Bounds of the pause, milliseconds.
    static let (shortest, longest): (UInt64, UInt64) = (100, 5_000)
    /// The pause while another gateway holds the replication slot, milliseconds.
    static let busyMilliseconds: UInt64 = 500

    private var next = shortest

    /// - Returns: milliseconds to wait now.
    mutating func failed() -> UInt64 {
        defer { next = min(next * 2, Self.longest) }
        return next
    }

    /// Starts with the shortest pause again.
    mutating func progressed() { next = Self.shortest }
}
