import SluiceCore
import Synchronization

/// A clock that stands until it is moved. Sleeps end at once.
package final class ManualEnvironment: Environment {
    private let milliseconds = Mutex<Int64>(1_700_000_000_000)

    package init() {}

    package func advance(seconds: Int64) { milliseconds.withLock { $0 += seconds * 1_000 } }
    package func wallMilliseconds() -> Int64 { milliseconds.withLock(\.self) }
    package func monotonicNanoseconds() -> UInt64 { UInt64(wallMilliseconds()) * 1_000_000 }
    package func random() -> UInt64 { 4 }
    package func sleep(nanoseconds: UInt64) async throws {}
}
