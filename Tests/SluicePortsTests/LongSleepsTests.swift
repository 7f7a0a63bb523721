import SluiceCore
import Synchronization
import TestSupport
import Testing

@testable import SluicePorts

@Suite(.timeLimit(.minutes(1))) struct `Long sleeps` {
    private let environment = SystemEnvironment()

    private func after(_ milliseconds: UInt64) -> UInt64 { environment.monotonicNanoseconds() + milliseconds * 1_000_000 }

    @Test func `end no earlier than their time, in any order`() async throws {
        let sleeps = LongSleeps()
        let environment = environment
        try await withThrowingTaskGroup(of: Void.self) { group in
            for milliseconds: UInt64 in [120, 1, 60, 0, 240] {
                let end = after(milliseconds)
                group.addTask {
                    try await sleeps.sleep(until: end)
                    #expect(environment.monotonicNanoseconds() >= end)
                }
            }
            try await group.waitForAll()
        }
        #expect(sleeps.count == 0)
    }

    @Test func `of cancelled tasks end at once and keep nothing`() async throws {
        let sleeps = LongSleeps()
        for isBefore in [true, false] {
            let task = Task { try await sleeps.sleep(until: .max) }  // Unstructured because: the test cancels it.
            while !isBefore, sleeps.count == 0 { await Task.yield() }
            task.cancel()
            let error = await #expect(throws: CancellationError.self) { try await task.value }
            #expect(error != nil && sleeps.count == 0)
        }
    }

    @Test func `make a call at its time, and none that is dropped`() async {
        let sleeps = LongSleeps()
        let called = AsyncEvent(environment: environment)
        let calls = Mutex<[Int]>([])
        let due = after(60)
        let dropped = sleeps.call({ calls.withLock { $0.append(0) } }, at: due)
        sleeps.drop(dropped)
        for number in [1, 2] {
            _ = sleeps.call(
                {
                    calls.withLock { $0.append(number) }
                    called.fire()
                }, at: due)
        }
        await called.wait(until: 2)
        #expect(environment.monotonicNanoseconds() >= due && calls.withLock(\.self).sorted() == [1, 2] && sleeps.count == 0)
    }

    @Test(arguments: seeds(20)) func `of many tasks all end, whenever they are cancelled`(seed: UInt64) async {
        var random = SplitMix64(seed: seed)
        let sleeps = LongSleeps()
        var tasks: [(task: Task<Bool, Never>, isCancelled: Bool)] = []
        for _ in 0..<200 {
            let isCancelled = random.chance(60)
            let end = isCancelled ? .max : after(UInt64(random.below(150)))
            // Unstructured because: the test cancels some of them.
            let task = Task { (try? await sleeps.sleep(until: end)) != nil }
            tasks.append((task, isCancelled))
            if random.chance(30) { await Task.yield() }
            for other in tasks where other.isCancelled && random.chance(5) { other.task.cancel() }
        }
        for (task, isCancelled) in tasks where isCancelled { task.cancel() }
        for (task, isCancelled) in tasks { #expect(await task.value == !isCancelled, "seed \(seed)") }
        #expect(sleeps.count == 0, "seed \(seed)")
    }

    @Test func `of a server's environment end when their task does`() async {
        let environment = ServerEnvironment()
        let task = Task { try await environment.sleep(nanoseconds: .max) }  // Unstructured because: the test cancels it.
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
