package import SluiceCore

/// Receives session metrics. Many sessions call it concurrently, so each call must return at once.
package protocol SessionObserver: Sendable {
    /// Reports an error sent to a client. It concerns the session, which ends, or one version of its subscription set.
    func failed(_ code: ErrorCode)
    /// Reports a committed changeset.
    /// - Parameters:
    ///   - undone: The number of its writes that the client must undo.
    ///   - nanoseconds: The time since its turn came; nil for a changeset that had taken effect before.
    func uploaded(undone: Int, nanoseconds: UInt64?)
    /// Reports that a bootstrap has begun.
    func bootstrapBegan()
    /// Reports a completed bootstrap.
    /// - Parameter nanoseconds: The time since the view was known.
    func bootstrapped(rows: UInt64, nanoseconds: UInt64)
    /// Reports a change of the number of subscriptions in force. A negative number means fewer.
    func subscribed(_ change: Int)
    /// Reports a step of the watermark after its delivery to the sessions concerned.
    /// - Parameters:
    ///   - changes: The sum over all sessions.
    ///   - commitTime: The time of the oldest commit of the step, in microseconds since 1970.
    func delivered(changes: Int, commitTime: Int64)
}

/// An observer that ignores every event.
package struct NoSessionObserver: SessionObserver {
    package init() {}
    package func failed(_ code: ErrorCode) {}
    package func uploaded(undone: Int, nanoseconds: UInt64?) {}
    package func bootstrapBegan() {}
    package func bootstrapped(rows: UInt64, nanoseconds: UInt64) {}
    package func subscribed(_ change: Int) {}
    package func delivered(changes: Int, commitTime: Int64) {}
}
