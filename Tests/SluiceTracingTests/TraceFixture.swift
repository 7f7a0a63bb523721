import SluiceCore
import SluiceTracing
import Synchronization

/// An environment whose sleeps end when the test says so.
final class Ticks: Environment {
    private let ticks: AsyncStream<Void>
    private let tick: AsyncStream<Void>.Continuation
    private let numbers = Mutex(UInt64(0))

    init() { (ticks, tick) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(64)) }

    /// Ends the current sleep, or the next one.
    func pass() { tick.yield() }

    func wallMilliseconds() -> Int64 { 0 }
    func monotonicNanoseconds() -> UInt64 { 0 }

    func random() -> UInt64 {
        numbers.withLock { number in
            number += 2
            return number
        }
    }

    func sleep(nanoseconds: UInt64) async throws {
        var iterator = ticks.makeAsyncIterator()
        _ = await iterator.next()
        try Task.checkCancellation()
    }
}

/// A number that callbacks add to.
final class Count: Sendable {
    private let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .relaxed) }
    func add(_ amount: Int) { count.add(amount, ordering: .relaxed) }
}

/// A queue with its tracer.
struct Spans {
    let environment = Ticks()
    let dropped = Count()
    let queue: SpanQueue
    let tracer: SpanTracer

    init(capacity: Int = SpanQueue.capacity) {
        let dropped = dropped
        queue = SpanQueue(capacity: capacity) { dropped.add($0) }
        tracer = SpanTracer(queue: queue, environment: environment)
    }
}
