package import NIOCore

/// The pace of a graceful shutdown. All times count from its beginning.
package struct ShutdownPace: Hashable, Sendable {
    /// The time over which the closes of WebSockets are spread, so that their clients do not reconnect in step.
    package var spread: TimeAmount
    /// The time of the close of a WebSocket whose messages have no answers by then. It must be longer than `spread`.
    package var answers: TimeAmount
    /// The time at which the server closes all other connections, without a close frame.
    package var deadline: TimeAmount

    package init(spread: TimeAmount = .zero, answers: TimeAmount = .seconds(8), deadline: TimeAmount = .seconds(10)) {
        self.spread = spread
        self.answers = answers
        self.deadline = deadline
    }

    /// Returns the time at which one WebSocket begins to close.
    ///
    /// - Parameter random: A uniform random number. All times from 0 to `spread` are equally likely.
    package func moment(random: UInt64) -> TimeAmount { .nanoseconds(Int64(random % UInt64(max(spread.nanoseconds, 0) + 1))) }
}

/// The work that the deadlines of a shutdown have ended.
package struct ShutdownCutOff: Hashable, Sendable {
    /// WebSockets that were closed before all of their messages had answers.
    package var sockets = 0
    /// Other connections, such as those with a request that had no answer.
    package var requests = 0

    package init() {}

    package var isEmpty: Bool { self == ShutdownCutOff() }
}
