import SluiceCore
import SluicePorts
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct `Work on demand` {
    private let environment = SystemEnvironment()

    @Test func `that was asked for before its start is done at the start`() async {
        let (demand, done) = (OnDemand(), AsyncEvent(environment: environment))
        demand.ask()
        demand.ask()
        #expect(!demand.isWorking)
        demand.start { done.fire() }
        await done.wait(until: 1)
        await demand.ended()
        #expect(done.count == 1 && !demand.isWorking)
    }

    @Test func `is done once more for all requests that come meanwhile, and never twice at a time`() async {
        let (demand, begun, may) = (OnDemand(), AsyncEvent(environment: environment), AsyncEvent(environment: environment))
        let active = Atomic(0)
        demand.start {
            #expect(active.add(1, ordering: .relaxed).newValue == 1)
            begun.fire()
            await may.wait(until: begun.count)
            active.subtract(1, ordering: .relaxed)
        }
        demand.ask()
        await begun.wait(until: 1)
        for _ in 0..<10 { demand.ask() }
        may.reach(2)
        await demand.ended()
        #expect(begun.count == 2 && !demand.isWorking)
    }

    @Test func `that is under way at the close can be cancelled and awaited, and no other begins`() async {
        let (demand, begun) = (OnDemand(), AsyncEvent(environment: environment))
        demand.start {
            begun.fire()
            await begun.wait(until: .max)
        }
        demand.ask()
        await begun.wait(until: 1)
        demand.ask()
        let task = demand.close()
        task?.cancel()
        await task?.value
        demand.ask()
        #expect(task != nil && begun.count == 1 && !demand.isWorking && demand.close() == nil)
    }

    @Test func `is released at the close`() async {
        final class Owner: Sendable {}
        let demand = OnDemand()
        weak var released: Owner?
        do {
            let owner = Owner()
            released = owner
            demand.start { _ = owner }
        }
        #expect(released != nil)
        demand.close()
        #expect(released == nil)
    }

    @Test(arguments: seeds(20)) func `misses no request`(seed: UInt64) async {
        var random = SplitMix64(seed: seed)
        let demand = OnDemand()
        let asked = Atomic(0)
        let seen = Atomic(0)
        demand.start { seen.store(asked.load(ordering: .acquiring), ordering: .releasing) }
        for number in 1...500 {
            asked.store(number, ordering: .releasing)
            demand.ask()
            if Int.random(in: 0..<4, using: &random) == 0 { await Task.yield() }
        }
        await demand.ended()
        #expect(seen.load(ordering: .acquiring) == 500)
    }
}
