import DequeModule
import Synchronization

/// A span that has ended.
package struct FinishedSpan: Hashable, Sendable {
    package enum Kind: Int, Sendable { case `internal` = 1, server, client, producer, consumer }

    package enum Attribute: Hashable, Sendable {
        case text(String)
        case number(Int64)
        case fraction(Double)
        case flag(Bool)
    }

    package var name: String
    package var identity: SpanIdentity
    /// The span in which this one began; nil for the first of a trace.
    package var parent: UInt64?
    package var kind: Kind
    /// Its begin and end, in nanoseconds since 1970.
    package var time: ClosedRange<UInt64>
    package var attributes: [String: Attribute]
    /// The number of attributes, events and links that are not kept.
    package var left: Int
    package var isError: Bool
}

/// The spans that wait for the exporter. Beyond the bound, new spans are dropped: the callers never wait.
package final class SpanQueue: Sendable {
    private struct State {
        var spans: Deque<FinishedSpan> = []
        var isClosed = false
    }

    /// The maximum number of spans that wait.
    package static let capacity = 8_192

    private let state = Mutex(State())
    private let capacity: Int
    private let dropped: @Sendable (_ spans: Int) -> Void

    /// - Parameter dropped: Receives the number of spans dropped. It must return at once.
    package init(capacity: Int = SpanQueue.capacity, dropped: @escaping @Sendable (_ spans: Int) -> Void) {
        self.capacity = capacity
        self.dropped = dropped
    }

    package var count: Int { state.withLock { $0.spans.count } }

    package func append(_ span: FinishedSpan) {
        let isTaken = state.withLock { state in
            guard state.spans.count < capacity, !state.isClosed else { return false }
            state.spans.append(span)
            return true
        }
        if !isTaken { dropped(1) }
    }

    /// Returns the oldest spans. They stay in the queue until `remove`, so that a failed export can be repeated.
    package func first(_ count: Int) -> [FinishedSpan] { state.withLock { Array($0.spans.prefix(count)) } }

    /// Removes the oldest spans. The exporter is the only caller.
    ///
    /// - Parameter areSent: `false` to count them as dropped.
    func remove(_ count: Int, areSent: Bool) {
        state.withLock { $0.spans.removeFirst(min(count, $0.spans.count)) }
        if !areSent { dropped(count) }
    }

    /// Ends the queue: what waits, and every later span, is dropped.
    func close() {
        let left = state.withLock { state in
            state.isClosed = true
            defer { state.spans.removeAll() }
            return state.spans.count
        }
        if left > 0 { dropped(left) }
    }
}
