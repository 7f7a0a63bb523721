package import NIOCore
import SluiceCore
import Synchronization

/// The channels of one attempt to connect. SwiftNIO opens a channel for each address of the host, lets them race and keeps the first that
/// connects.
///
/// The winner is not known while they race. Cancellation therefore closes every channel, and the deadline closes each of them.
package final class ConnectionAttempt: Sendable {
    private struct State {
        /// Bounded by the number of the host's addresses.
        var open: [any Channel] = []
        var isClosed = false
        var isLate = false
        var refusal: SluiceError?
    }

    private let state = Mutex(State())

    package init() {}

    /// `true` once the deadline has closed a channel.
    package var isLate: Bool { state.withLock(\.isLate) }

    /// The reason for which the server was refused; nil if it was not.
    var refusal: SluiceError? { state.withLock(\.refusal) }

    func refuse(_ error: SluiceError) { state.withLock { $0.refusal = error } }

    /// Adds a channel. Closes it at once if the attempt is closed, else at `deadline`.
    /// - Returns: the timer of the deadline. It ends with the channel.
    @discardableResult
    package func add(_ channel: any Channel, until deadline: NIODeadline) -> Scheduled<Void> {
        let isClosed = state.withLock { state in
            state.open.append(channel)
            return state.isClosed
        }
        let late = channel.eventLoop.scheduleTask(deadline: deadline) { self.expire(channel) }
        channel.closeFuture.whenComplete { _ in
            late.cancel()
            self.remove(channel)
        }
        // Cancellation may arrive before the channel exists.
        if isClosed { channel.close(promise: nil) }
        return late
    }

    /// Closes all channels, and those that are added later. Safe to call at any time and more than once.
    package func close() {
        let channels = state.withLock { state in
            state.isClosed = true
            return state.open
        }
        for channel in channels { channel.close(promise: nil) }
    }

    private func expire(_ channel: any Channel) {
        state.withLock { $0.isLate = true }
        channel.close(promise: nil)
    }

    private func remove(_ channel: any Channel) {
        state.withLock { $0.open.removeAll { $0 === channel } }
    }
}
