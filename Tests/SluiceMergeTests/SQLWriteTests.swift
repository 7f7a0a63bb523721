import SluiceCore
import SluiceMerge
import TestSupport
import Testing

/// What SQL writes has a time that nobody knows: that of the row's last commit at the latest.
@Suite struct SQLWriteTests {
    private static let seenTen = ["count": ValueHash(10)]

    /// A row that SQL made, and one that a device made and SQL changed; then SQL writes the name, after what a device does to the count.
    private static let starts: [[Step]] = [
        [.sql(at: 10, ["name": "first", "count": 10])],
        [.client(9, at: 1, .create(["name": "first", "count": 3])), .sql(at: 10, ["count": 10])],
    ]

    private static func play(_ change: ObjectChange, at time: Int64 = 50, from start: [Step]) throws -> [String: Value]? {
        try World(start + [.sql(at: 100, ["name": "sql"]), .client(1, at: time, seen: start.count, change)]).shown
    }

    @Test(arguments: starts.indices) func `SQL that writes one property takes nothing from who had seen another`(start: Int) throws {
        let start = Self.starts[start]
        #expect(try Self.play(.set(["count": 7], seen: Self.seenTen), from: start) == ["name": "sql", "count": 7])
        #expect(try Self.play(.add(5, seen: Self.seenTen), from: start) == ["name": "sql", "count": 15])
    }

    @Test(arguments: starts.indices) func `who had seen another value must be later than SQL can have been`(start: Int) throws {
        let start = Self.starts[start]
        for seen in [[:], ["count": ValueHash(3)]] {
            #expect(try Self.play(.set(["count": 7], seen: seen), from: start) == ["name": "sql", "count": 10])
            #expect(try Self.play(.add(5, seen: seen), from: start) == ["name": "sql", "count": 10])
            #expect(try Self.play(.set(["count": 7], seen: seen), at: 101, from: start) == ["name": "sql", "count": 7])
        }
    }

    @Test func `a default overwrites nothing that SQL wrote`() throws {
        let change = ObjectChange.create(["count": 7], defaults: ["count"], seen: Self.seenTen)
        #expect(try Self.play(change, from: Self.starts[0]) == ["name": "sql", "count": 10])
    }

    @Test func `additions of all who had seen what SQL wrote count, the oldest last too`() throws {
        var steps = Self.starts[0] + [.sql(at: 100, ["name": "sql"])]
        for (client, time) in [(1, 60), (2, 50), (3, 40)] {
            steps.append(.client(UInt64(client), at: Int64(time), .add(1, seen: Self.seenTen)))
        }
        #expect(try World(steps).row?["count"] == 13)
        // A set that lies between takes those before it with it.
        steps.append(.client(4, at: 55, .set(["count": 0], seen: Self.seenTen)))
        #expect(try World(steps).row?["count"] == 1)
    }

    @Test func `edits inside of what SQL wrote stand for all who had seen it`() throws {
        let list: Value = ["s", "t"]
        let start: [Step] = [.client(9, at: 1, .create(["list": ["a"]])), .sql(at: 10, ["list": list]), .sql(at: 100, ["name": "sql"])]
        func edit(_ client: UInt64, _ time: Int64, _ action: Edit.Action, seen: Value?) -> Step {
            var change = ObjectChange.edit(Edit("list", action))
            change.seen["list"] = seen.map { ValueHash($0) }
            return .client(client, at: time, seen: 2, change)
        }
        let (one, two) = (
            edit(1, 60, .insert("one", after: nil, tag: 1), seen: list), edit(2, 50, .insert("two", after: nil, tag: 1), seen: list)
        )
        for order in [[one, two], [two, one]] { #expect(try World(start + order, folder).row?["list"] == ["two", "one", "s", "t"]) }
        for blind in [edit(3, 55, .insert("three", after: nil, tag: 1), seen: ["a"]), edit(3, 55, .clear(.list), seen: nil)] {
            for order in [[blind, one], [one, blind]] { #expect(try World(start + order, folder).row?["list"] == ["one", "s", "t"]) }
        }
        let clear = edit(3, 55, .clear(.list), seen: list)
        for order in [[clear, one], [one, clear]] { #expect(try World(start + order, folder).row?["list"] == .list([])) }
    }

    // MARK: An oracle

    /// A change of one property by a device.
    private struct Write {
        var client: UInt64
        var time: Int64
        var name: String
        /// Nil: an addition.
        var value: Int64?
        var seen: ValueHash
        var step: Step {
            .client(client, at: time, value.map { .set([name: .int($0)], seen: [name: seen]) } ?? .add(1, to: name, seen: [name: seen]))
        }
    }

    private struct Story {
        static let names = ["count", "any"]
        var statements: [Step] = []
        var row: [String: Value] = [:]
        var lastTime: Int64 = 0
        var writes: [[Write]] = []

        init(_ generator: inout SplitMix64) {
            var shots: [(time: Int64, row: [String: Value])] = []
            for number in 1...4 {
                let names = number == 1 ? Self.names : Self.names.filter { _ in Bool.random(using: &generator) } + ["note"]
                let values = names.map { ($0, Value.int(Int64.random(in: 1...1_000_000, using: &generator))) }
                row.merge(values) { $1 }
                lastTime = Int64(number) * 100
                statements.append(.sql(at: lastTime, Dictionary(uniqueKeysWithValues: values)))
                shots.append((lastTime, row))
            }
            for client in UInt64(1)...3 {
                guard let shot = shots.randomElement(using: &generator) else { continue }
                var time = shot.time
                writes.append(
                    (0..<Int.random(in: 1...3, using: &generator)).map { _ in
                        time += Int64.random(in: 1...150, using: &generator)
                        let name = Self.names.randomElement(using: &generator) ?? ""
                        let value =
                            Int.random(in: 0..<3, using: &generator) == 0 ? nil : Int64.random(in: -1_000_000...0, using: &generator)
                        return Write(client: client, time: time, name: name, value: value, seen: ValueHash(shot.row[name] ?? .null))
                    })
            }
        }

        /// Of those who had seen what SQL left, or wrote no earlier than it, the latest.
        func expected(_ name: String) -> Value {
            guard case .int(let sql)? = row[name] else { return .null }
            let may = writes.joined().filter { $0.name == name && ($0.seen == ValueHash(.int(sql)) || $0.time >= lastTime) }
                .sorted { ($0.time, $0.client) < ($1.time, $1.client) }
            return .int(may.reduce(sql) { $1.value ?? $0 + 1 })
        }
    }

    @Test(arguments: seeds(6)) func `whatever arrives first, the latest of those who may replace what SQL wrote does`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        var kept = 0
        for round in 0..<60 {
            let story = Story(&generator)
            for _ in 0..<6 {
                let order = story.statements + randomOrder(story.writes.map { $0.map(\.step) }, &generator)
                let shown = try World(order).shown
                for name in Story.names {
                    #expect(shown?[name] == story.expected(name), "seed \(seed), round \(round), \(name):\n\(order)")
                    kept += shown?[name] == story.row[name] ? 0 : 1
                }
            }
        }
        #expect(kept > 100)
    }
}
