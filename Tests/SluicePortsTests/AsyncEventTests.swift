import SluiceCore
import SluicePorts
import Testing

@Suite struct `A signal` {
    @Test func `wakes a waiter for what happened since it looked, also when that was before it waits`() async {
        let signal = AsyncEvent(environment: SystemEnvironment())
        let seen = signal.count
        signal.fire()
        await signal.wait(after: seen, milliseconds: 60_000)
        #expect(signal.count == seen + 1)
    }

    @Test func `may be fired and waited for after its last value`() async {
        let signal = AsyncEvent(environment: SystemEnvironment())
        signal.reach(.max)
        signal.fire()
        await signal.wait(after: signal.count, milliseconds: 60_000)
        #expect(signal.count == .max)
    }

    @Test func `remembers nothing of waits that are over, however they ended`() async {
        let signal = AsyncEvent(environment: SystemEnvironment())
        for _ in 0..<50 {
            await signal.wait(after: signal.count, milliseconds: 1)
            let seen = signal.count
            async let waiting: Void = signal.wait(after: seen, milliseconds: 60_000)
            signal.fire()
            await waiting
        }
        let cancelled = Task { await signal.wait(after: signal.count, milliseconds: 60_000) }
        cancelled.cancel()
        await cancelled.value
        // Timers that were cancelled come to an end after the waits that they belong to.
        for _ in 0..<1_000 { await Task.yield() }
        #expect(signal.remembered == 0)
    }
}
