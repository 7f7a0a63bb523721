import SluiceCore
import SluicePorts
import Testing

@testable import SluiceRealm

@Suite struct `An awaited count` {
    @Test func `only grows, and wakes those who wait for a value`() async {
        var count = AwaitedCount()
        count.reach(5)
        count.reach(3)
        #expect(count.count == 5)
        let event = count.event(SystemEnvironment())
        #expect(event.count == 5)
        async let waiting: Void = event.wait(until: 8, milliseconds: 60_000)
        count.reach(7)
        #expect((count.count, event.count) == (7, 7))
        count.reach(8)
        await waiting
        #expect(event.count == 8)
        // Later waits share the event.
        #expect(count.event(SystemEnvironment()) === event)
    }
}
