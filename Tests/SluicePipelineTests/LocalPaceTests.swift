import SluiceCore
import Synchronization
import Testing

@testable import SluicePipeline

/// A time that never passes.
private struct FrozenTime: Environment {
    func wallMilliseconds() -> Int64 { 0 }
    func monotonicNanoseconds() -> UInt64 { 0 }
    func random() -> UInt64 { 0 }
    func sleep(nanoseconds: UInt64) async throws { try await Task.sleep(for: .seconds(3_600)) }
}

private final class Taken: Sendable {
    private let state = Atomic<Int>(0)
    var count: Int { state.load(ordering: .sequentiallyConsistent) }
    func add() { state.add(1, ordering: .sequentiallyConsistent) }
}

@Suite(.timeLimit(.minutes(1))) struct `The pace of the fan-out` {
    private let pace = LocalPace(environment: FrozenTime())

    @Test func `does not wait for sessions that have no messages`() async {
        pace.sessionBegan()
        await pace.caughtUp(since: pace.mark)
    }

    @Test func `waits until three of four sessions have taken their messages`() async {
        pace.sessionBegan()
        let mark = pace.mark
        for _ in 0..<8 { pace.sessionBegan() }
        await withTaskGroup(of: Int.self) { group in
            let taken = Taken()
            group.addTask { [pace] in
                await pace.caughtUp(since: mark)
                return taken.count
            }
            for _ in 0..<5 {
                taken.add()
                pace.sessionEnded()
            }
            for _ in 0..<200 { await Task.yield() }
            taken.add()
            pace.sessionEnded()
            #expect(await group.next() == 6)
        }
    }

    @Test func `waits no longer than its time`() async {
        let pace = LocalPace(environment: SystemEnvironment())
        let mark = pace.mark
        pace.sessionBegan()
        await pace.caughtUp(since: mark)
    }
}
