import SluiceCore
import SluiceMerge
import TestSupport
import Testing

@Suite struct ConvergenceTests {
    /// Work of three clients who know nothing of each other, and of SQL.
    private func histories(_ generator: inout SplitMix64, deletes: Bool) -> [[Step]] {
        (1...3).map { client in
            var time: Int64 = 0
            return (0..<Int.random(in: 1...4, using: &generator)).map { _ in
                time += Int64.random(in: 1...10, using: &generator)
                return .client(UInt64(client), at: time, seen: 1, randomChange(&generator, deletes: deletes))
            }
        }
    }

    private func randomChange(_ generator: inout SplitMix64, deletes: Bool) -> ObjectChange {
        let values: [Value] = [.null, 1, 2, "a", true]
        func pick() -> Value { values.randomElement(using: &generator) ?? .null }
        switch Int.random(in: 0..<(deletes ? 7 : 5), using: &generator) {
        case 0: return .set(["name": pick(), "count": [.null, 5, 6].randomElement(using: &generator) ?? .null])
        case 1: return .set(["any": pick()])
        case 2: return .add(Int64.random(in: -9...9, using: &generator))
        case 3: return .add(Int64.random(in: -9...9, using: &generator), to: "any")
        case 5: return .delete
        default:
            let defaults: Set<String> = Bool.random(using: &generator) ? ["any", "count"] : []
            return .create(["name": pick(), "any": pick(), "count": 3], defaults: defaults)
        }
    }

    @Test(arguments: seeds(6)) func `any order of arrival gives one state`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for round in 0..<40 {
            let histories = histories(&generator, deletes: true)
            let first = [ConflictCase.start] + randomOrder(histories, &generator)
            let expected = try World(first).shown
            for _ in 0..<8 {
                let order = [ConflictCase.start] + randomOrder(histories, &generator)
                #expect(try World(order).shown == expected, "seed \(seed), round \(round):\n\(first)\n\(order)")
            }
        }
    }

    @Test(arguments: seeds(6)) func `SQL writes converge with whatever arrives around them`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for round in 0..<40 {
            // What was written before the statement may arrive before or after it; what was written after it, after it.
            let early = histories(&generator, deletes: false)
            let statement = Step.sql(at: 1_000, ["name": "sql", "count": 77])
            let late = (1...3).map { client in
                [
                    Step.client(
                        UInt64(client), at: Int64.random(in: 2_000...3_000, using: &generator), seen: 1,
                        randomChange(&generator, deletes: false))
                ]
            }
            var results: [[String: Value]?] = []
            for _ in 0..<8 {
                let all = zip(early, late).map { $0 + $1 }
                var order = [ConflictCase.start]
                let cut = early.map { Int.random(in: 0...$0.count, using: &generator) }
                order += randomOrder(zip(all, cut).map { Array($0.prefix($1)) }, &generator)
                order.append(statement)
                order += randomOrder(zip(all, cut).map { Array($0.dropFirst($1)) }, &generator)
                results.append(try World(order).shown)
            }
            #expect(Set(results).count == 1, "seed \(seed), round \(round)")
        }
    }

    @Test(arguments: seeds(8)) func `applying a change again changes nothing`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<100 {
            var world = try World([ConflictCase.start] + randomOrder(histories(&generator, deletes: true), &generator))
            let change = randomChange(&generator, deletes: true)
            if !change.counters.isEmpty { continue }
            let step = Step.client(2, at: Int64.random(in: 0...60, using: &generator), seen: 1, change)
            try world.take(step)
            let once = world.shown
            try world.take(step)
            #expect(world.shown == once, "seed \(seed)")
        }
    }

    @Test(arguments: seeds(8)) func `what a client shows is what the gateway makes of it when nobody else writes`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<100 {
            let server = try World([ConflictCase.start]).row
            let steps = histories(&generator, deletes: true)[0].map { step -> Step in
                guard case .client(let client, let time, let seen, let change) = step else { return step }
                return .client(client, at: time + 100, seen: seen, change)
            }
            let pending = steps.compactMap { step -> ObjectChange? in if case .client(_, _, _, let change) = step { change } else { nil } }
            let shown = try Overlay.apply(server: server, pending: pending, type: thing)
            #expect(shown?.filter { !$0.value.isNull } == (try World([ConflictCase.start] + steps)).shown, "seed \(seed): \(steps)")
        }
    }

    @Test func `a pending edit of a row that the server took away shows nothing, a pending create shows itself`() throws {
        #expect(try Overlay.apply(server: nil, pending: [.set(["name": "x"])], type: thing) == nil)
        #expect(try Overlay.apply(server: nil, pending: [.create(["name": "x"]), .add(2)], type: thing)?["name"] == "x")
        #expect(try Overlay.apply(server: ["_id": 1, "count": 4], pending: [.add(2)], type: thing) == ["count": 6])
        #expect(try Overlay.apply(server: ["count": 4], pending: [.create(["count": 0], defaults: ["count"])], type: thing) == ["count": 4])
    }

    @Test func `more additions than are remembered still add up`() throws {
        var world = try World([ConflictCase.start])
        for time in 0..<100 { try world.take(.client(1, at: 10 + Int64(time), seen: 1, .add(1))) }
        #expect(world.row?["count"] == 110)
        try world.take(.client(2, at: 5, seen: 1, .set(["count": 0])))
        #expect(world.row?["count"] == 100)
        #expect(try #require(world.clocks).count < 1_000)
    }
}
