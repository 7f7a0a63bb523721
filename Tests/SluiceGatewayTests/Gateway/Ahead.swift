import SluiceCore

/// A clock that is ahead of this machine's.
struct Ahead: Environment {
    let milliseconds: Int64
    private let system = SystemEnvironment()

    init(milliseconds: Int64) { self.milliseconds = milliseconds }

    func wallMilliseconds() -> Int64 { system.wallMilliseconds() + milliseconds }
    func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() }
    func random() -> UInt64 { system.random() }
    func sleep(nanoseconds: UInt64) async throws { try await system.sleep(nanoseconds: nanoseconds) }
}
