import Testing

@testable import SluicePostgres

@Suite struct `The line before a pool` {
    private let start = ContinuousClock.now

    /// Waiters by name in line for the one connection.
    private func line(_ limits: [(String, Int)]) -> (machine: PoolStateMachine<Int, String>, looks: [Int?]) {
        var machine = PoolStateMachine<Int, String>(size: 1)
        guard case .grant(.open) = machine.acquire() else {
            Issue.record("no connection")
            return (machine, [])
        }
        var looks: [Int?] = []
        for (id, (name, limit)) in limits.enumerated() {
            guard case .waits(let look) = machine.enqueue(UInt64(id), name, within: .seconds(limit), now: start) else {
                Issue.record("\(name) does not wait")
                continue
            }
            looks.append(look.map { Int((($0 - start) / .seconds(1)).rounded()) })
        }
        return (machine, looks)
    }

    private func expire(_ machine: inout PoolStateMachine<Int, String>, at second: Int) -> (waiters: [String], next: Int?) {
        let (waiters, next) = machine.expire(at: start + .seconds(second))
        return (waiters.map(\.waiter), next.map { Int((($0 - start) / .seconds(1)).rounded()) })
    }

    @Test func `is looked at when the first time is over, and then when the next is`() {
        var (machine, looks) = line([("ann", 10), ("bob", 5), ("cid", 20)])
        #expect(looks == [10, 5, nil])
        #expect(expire(&machine, at: 5) == (["bob"], 10))
        // Two looks were due at this time.
        #expect(expire(&machine, at: 10) == (["ann"], 20))
        #expect(expire(&machine, at: 10) == ([], nil))
        #expect(expire(&machine, at: 20) == (["cid"], nil))
        #expect(machine.waiting == 0)
    }

    @Test func `is looked at again for those who came after everybody else had been served`() {
        var (machine, _) = line([("ann", 10)])
        #expect(machine.release(1).waiter == "ann")
        #expect(expire(&machine, at: 10) == ([], nil))
        guard case .waits(let look) = machine.enqueue(9, "bob", within: .seconds(30), now: start) else {
            Issue.record("bob does not wait")
            return
        }
        #expect(look == start + .seconds(30))
    }
}
