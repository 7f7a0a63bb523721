package import SluiceCore

/// Hears what sessions do, for those who watch the gateway. It is called from many sessions at once and must return at once.
package protocol SessionObserver: Sendable {
    /// A client is told of an error: of its session, which ends, or of one version of its subscription set.
    func failed(_ code: ErrorCode)
    /// A changeset has been committed.
    /// - Parameters:
    ///   - undone: how many of its writes the client is told to undo.
    ///   - nanoseconds: from when its turn came; nil for one that had taken effect before.
    func uploaded(undone: Int, nanoseconds: UInt64?)
    func bootstrapBegan()
    /// - Parameter nanoseconds: from when the view was known.
    func bootstrapped(rows: UInt64, nanoseconds: UInt64)
    /// So many subscriptions more, or fewer, are in force.
    func subscribed(_ change: Int)
    /// A step of the watermark has been handed to the sessions that it concerns.
    /// - Parameters:
    ///   - changes: of all sessions together.
    ///   - commitTime: of the oldest commit in it, in microseconds since 1970.
    func delivered(changes: Int, commitTime: Int64)
}

/// For those whom nobody watches.
package struct NoSessionObserver: SessionObserver {
    package init() {}
    package func failed(_ code: ErrorCode) {}
    package func uploaded(undone: Int, nanoseconds: UInt64?) {}
    package func bootstrapBegan() {}
    package func bootstrapped(rows: UInt64, nanoseconds: UInt64) {}
    package func subscribed(_ change: Int) {}
    package func delivered(changes: Int, commitTime: Int64) {}
}
