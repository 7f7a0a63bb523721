/// The unanswered barriers of a session. One task answers all pending ones together.
struct Barriers: Sendable {
    /// The number of pending barriers above which the session stops reading messages.
    static let most = 1_024

    private var pending: [UInt64] = []
    /// `true` while barriers are being answered.
    private(set) var isAnswering = false

    /// `true` if the client's next messages must wait.
    var isFull: Bool { pending.count >= Self.most }

    /// Adds a barrier.
    /// - Returns: `true` if the answering must start.
    mutating func add(_ id: UInt64) -> Bool {
        pending.append(id)
        defer { isAnswering = true }
        return !isAnswering
    }

    /// Removes and returns the pending barriers; empty if none is left. The answering ends then.
    mutating func next() -> [UInt64] {
        guard !pending.isEmpty else {
            isAnswering = false
            return []
        }
        defer { pending = [] }
        return pending
    }

    /// Records that the answering has ended early.
    mutating func stopAnswering() { isAnswering = false }
}
