import DequeModule
import Synchronization

/// The received messages of a connection, and the two reasons for which reading pauses.
///
/// A message counts until it has been handled.
final class RealmMailbox: Sendable {
    private struct State {
        var waiting: Deque<[UInt8]> = []
        /// The number of messages that wait or are handled.
        var messages = 0
        var bytes = 0
        var isClosed = false
        /// The bytes are above the bound.
        var isFull = false
        /// The machine has too many uploads under way.
        var isHeld = false
        /// The last request to the sink.
        var isPaused = false
        /// A caller is about to call the sink.
        var isCallingSink = false

        var shouldPause: Bool { isFull || isHeld }
    }

    private let state = Mutex(State())
    private let bounds: RealmMailboxBounds
    private let sink: any RealmFrameSink

    init(_ bounds: RealmMailboxBounds, _ sink: any RealmFrameSink) { (self.bounds, self.sink) = (bounds, sink) }

    /// The number of messages that wait or are handled.
    var count: Int { state.withLock { $0.messages } }

    /// Adds a message. A closed mailbox drops it.
    /// - Returns: `false` if a bound is exceeded. The mailbox is then closed.
    func put(_ message: [UInt8]) -> Bool {
        let fits = state.withLock { state in
            guard !state.isClosed else { return true }
            guard state.messages < bounds.messages, state.bytes + message.count <= 4 * bounds.bytes else {
                state.isClosed = true
                return false
            }
            state.messages += 1
            state.bytes += message.count
            state.waiting.append(message)
            if state.bytes > bounds.bytes { state.isFull = true }
            return true
        }
        regulate()
        return fits
    }

    /// Returns the next message; nil if there is none.
    func take() -> [UInt8]? {
        state.withLock { $0.waiting.popFirst() }
    }

    /// Ends the count of a message.
    func handled(_ bytes: Int) {
        state.withLock { state in
            state.messages -= 1
            state.bytes -= bytes
            // Half the bound: a gap avoids pausing and resuming for each message.
            if state.bytes <= bounds.bytes / 2 { state.isFull = false }
        }
        regulate()
    }

    /// Pauses or resumes reading for the machine.
    func hold(_ isHeld: Bool) {
        state.withLock { $0.isHeld = isHeld }
        regulate()
    }

    func close() {
        state.withLock { state in
            state.isClosed = true
            state.waiting = []
        }
    }

    /// Calls the sink outside of the lock until it has the last request. One caller at a time, so that no older request comes last.
    private func regulate() {
        while let pauses = nextRequest() {
            if pauses { sink.pauseReading() } else { sink.resumeReading() }
            state.withLock { $0.isCallingSink = false }
        }
    }

    private func nextRequest() -> Bool? {
        state.withLock { state in
            guard !state.isCallingSink, !state.isClosed, state.shouldPause != state.isPaused else { return nil }
            state.isCallingSink = true
            state.isPaused = state.shouldPause
            return state.isPaused
        }
    }
}
