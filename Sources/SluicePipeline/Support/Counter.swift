import Synchronization

/// A counter that closures in several tasks increment.
final class Counter: Sendable {
    private let count = Atomic<UInt64>(0)

    var value: UInt64 { count.load(ordering: .relaxed) }

    func add(_ amount: UInt64) { count.wrappingAdd(amount, ordering: .relaxed) }
}
