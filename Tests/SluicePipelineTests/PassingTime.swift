import SluiceCore
import Synchronization

/// Time passes by sleeping, and when a test adds to it.
final class PassingTime: Environment {
    let nanoseconds = Atomic<UInt64>(0)
    func wallMilliseconds() -> Int64 { Int64(monotonicNanoseconds() / 1_000_000) }
    func monotonicNanoseconds() -> UInt64 { nanoseconds.load(ordering: .relaxed) }
    func random() -> UInt64 { 4 }
    func sleep(nanoseconds duration: UInt64) async throws { nanoseconds.add(duration, ordering: .relaxed) }
}
