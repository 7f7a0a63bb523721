import CoreMetrics
import Synchronization

/// A counter or gauge.
package final class MetricNumber: Sendable {
    /// The bits of a `Double`.
    private let bits = Atomic<UInt64>(0)

    init() {}

    package var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

    /// Adds to the value. Counters must not receive a negative amount.
    package func add(_ amount: Double = 1) {
        var old = bits.load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: old) + amount).bitPattern
            let (exchanged, original) = bits.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
            if exchanged { return }
            old = original
        }
    }

    package func add(_ amount: Int) { add(Double(amount)) }
    package func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }
}

/// The handle that libraries get for a counter, a meter or a gauge. Amounts that are not positive and finite have no effect.
extension MetricNumber: CounterHandler, FloatingPointCounterHandler, MeterHandler, RecorderHandler {
    package func increment(by amount: Int64) { increment(by: Double(amount)) }
    package func increment(by amount: Double) { if amount > 0, amount.isFinite { add(amount) } }
    package func decrement(by amount: Double) { if amount > 0, amount.isFinite { add(-amount) } }
    package func reset() { set(Double.zero) }
    package func set(_ value: Int64) { set(Double(value)) }
    package func record(_ value: Int64) { set(Double(value)) }
    package func record(_ value: Double) { set(value) }
}

/// A histogram of times in seconds, in fixed buckets.
package final class MetricHistogram: Sendable {
    /// The upper bounds of the buckets, in seconds. One more bucket counts the rest.
    package static let bounds: [Double] = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
    ]

    struct Snapshot {
        var buckets: [Int]
        var seconds: Double
    }

    private let counts = bounds.map { _ in AtomicCount() } + [AtomicCount()]
    private let sum = MetricNumber()

    init() {}

    package func observe(seconds: Double) {
        counts[Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count].add()
        sum.add(seconds)
    }

    package func observe(nanoseconds: UInt64) { observe(seconds: Double(nanoseconds) / 1e9) }

    /// The buckets and the sum. They are read one after another, so a scrape may see an observation in only one of them.
    var snapshot: Snapshot { Snapshot(buckets: counts.map(\.value), seconds: sum.value) }
}

/// The handle that libraries get for a timer.
extension MetricHistogram: TimerHandler {
    package func recordNanoseconds(_ duration: Int64) { observe(seconds: Double(max(duration, 0)) / 1e9) }
}

/// The sum and count of values in a unit that the text does not know.
final class MetricSummary: Sendable {
    private let values = AtomicCount()
    private let total = MetricNumber()

    var count: Int { values.value }
    var sum: Double { total.value }
}

/// The handle that libraries get for a recorder that aggregates. Values that are not finite have no effect.
extension MetricSummary: RecorderHandler {
    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        guard value.isFinite else { return }
        values.add()
        total.add(value)
    }
}

private final class AtomicCount: Sendable {
    private let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .relaxed) }
    func add() { count.add(1, ordering: .relaxed) }
}
