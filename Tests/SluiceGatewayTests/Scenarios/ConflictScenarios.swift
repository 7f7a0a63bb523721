import SluiceCore
import SluicePostgres
import Testing

/// The table of conflict rules through a gateway: three devices that know the same and nothing of each other, in every order of
/// arrival. The merge itself has a test for each rule and order (`SluiceMergeTests`); here it goes the whole way.
@Suite(.timeLimit(.minutes(5))) struct `Devices that write at the same time` {
    private struct Case {
        var rule: String
        var type = "Order"
        /// What everybody has; nil: nothing.
        var start: [String: Value]? = order
        /// One changeset of each device: milliseconds, and what it does.
        var writes: [(at: Int64, change: ObjectChange)]
        /// What SQL finds then, in its columns' texts; nil: no row.
        var outcome: String?
        /// Whether SQL may write the title meanwhile, which then is what it wrote.
        var isOpenToSQL = false
    }

    private static let order: [String: Value] = ["store": .string("north"), "title": .string("first"), "size": .int(10)]
    private static let tag: [String: Value] = ["labels": texts("a", "b", "c")]
    private static func texts(_ texts: String...) -> Value { .list(texts.map { .string($0) }) }
    private static func at(_ index: Int) -> ElementRef { .listed(index, ValueHash(.string(["a", "b", "c"][index]))) }

    private static func change(
        _ kind: ObjectChange.Kind, _ values: [String: Value] = [:], defaults: Set<String> = [], add: Int64? = nil, edits: [Edit] = []
    ) -> ObjectChange {
        ObjectChange(
            object: ObjectKey(type: "", key: .null), kind: kind, values: values, defaults: defaults,
            counters: add.map { ["size": $0] } ?? [:], edits: edits)
    }

    private static func create(_ values: [String: Value], defaults: Set<String> = []) -> ObjectChange {
        change(.create, values.merging(["store": .string("north")]) { $1 }, defaults: defaults)
    }

    private static func insert(_ text: String, after index: Int) -> ObjectChange {
        change(.set, edits: [Edit("labels", .insert(.string(text), after: at(index), tag: 1))])
    }

    private static func field(_ name: String, _ value: Int64) -> ObjectChange {
        change(.set, edits: [Edit("place", .become(.object)), Edit("place", [.key(name)], .set(.int(value)))])
    }

    private static let cases: [Case] = [
        Case(
            rule: "CR-1", writes: [(10, change(.delete)), (20, change(.set, ["title": .string("late")])), (5, change(.set, add: 3))],
            outcome: nil),
        Case(
            rule: "CR-2", writes: [(10, change(.delete)), (20, create(["title": .string("again")])), (30, change(.delete))], outcome: nil),
        Case(
            rule: "CR-4", start: nil,
            writes: [
                (10, create(["title": .string("one")])), (20, create(["title": .string("two")])), (15, create(["size": .int(5)])),
            ], outcome: "two 5"),
        Case(
            rule: "CR-5",
            writes: [
                (30, change(.set, ["title": .string("late")])), (10, change(.set, ["title": .string("early")])),
                (20, change(.set, ["size": .int(7)])),
            ], outcome: "late 7", isOpenToSQL: true),
        Case(
            rule: "CR-6", start: nil,
            writes: [
                (5, create(["title": .string("given")])), (20, create(["title": .string("default")], defaults: ["title"])),
                (30, create(["title": .string("other")], defaults: ["title"])),
            ], outcome: "given 0"),
        Case(
            rule: "CR-8", writes: [(10, change(.set, add: 3)), (20, change(.set, add: -1)), (5, change(.set, add: 100))],
            outcome: "first 112", isOpenToSQL: true),
        Case(
            rule: "CR-9", writes: [(20, change(.set, ["size": .int(50)])), (30, change(.set, add: 7)), (10, change(.set, add: 1_000))],
            outcome: "first 57", isOpenToSQL: true),
        Case(
            rule: "CR-11", type: "Tag", start: tag,
            writes: [(20, insert("y", after: 2)), (10, insert("x", after: 2)), (30, insert("z", after: 2))],
            outcome: "{a,b,c,x,y,z}"),
        Case(
            rule: "CR-12", type: "Tag", start: tag,
            writes: [
                (10, change(.set, edits: [Edit("labels", [.element(at(1))], .remove)])),
                (20, change(.set, edits: [Edit("labels", [.element(at(1))], .remove)])),
                (30, change(.set, edits: [Edit("labels", [.element(at(1))], .set(.string("B")))])),
            ], outcome: "{a,c}"),
        Case(
            rule: "CR-14", type: "Tag", start: tag,
            writes: [
                (10, change(.set, edits: [Edit("labels", [.element(at(0))], .move(after: at(2), tag: 1))])),
                (20, change(.set, edits: [Edit("labels", [.element(at(0))], .move(after: at(1), tag: 1))])),
                (30, change(.set, edits: [Edit("labels", [.element(at(2))], .remove)])),
            ], outcome: "{b,a}"),
        Case(
            rule: "CR-16", type: "Tag", start: tag,
            writes: [(10, change(.set, edits: [Edit("labels", .clear(.list))])), (20, insert("x", after: 0)), (5, insert("y", after: 1))],
            outcome: "{}"),
        Case(
            rule: "CR-23", type: "Tag", start: tag,
            writes: [(10, change(.set, ["labels": texts("n")])), (20, insert("x", after: 0)), (5, insert("y", after: 1))], outcome: "{n}"),
        Case(
            rule: "CR-21", type: "Tag", start: tag, writes: [(10, field("x", 1)), (20, field("y", 2)), (30, field("x", 9))],
            outcome: "{a,b,c} 9 2"),
        Case(
            rule: "CR-22", type: "Tag", start: tag.merging(["place": .dictionary(["x": .int(1)])]) { $1 },
            writes: [
                (10, change(.set, ["place": .null])), (20, change(.set, edits: [Edit("place", [.key("x")], .set(.int(5)))])),
                (30, change(.set, edits: [Edit("place", [.key("y")], .set(.int(6)))])),
            ], outcome: "{a,b,c}"),
    ]

    private static let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]

    /// A case in one order of arrival; `sql` is how many devices' writes SQL's own comes after.
    private struct Run {
        var test: Case
        var order: [Int]
        var sql: Int?
        var key: String { "\(test.rule)-\(order.map(String.init).joined())-\(sql.map(String.init) ?? "")" }
        var object: ObjectKey { ObjectKey(type: test.type, key: .string(key)) }
        var outcome: String? { sql == nil ? test.outcome : test.outcome.map { "sql \($0.split(separator: " ").last ?? "")" } }
    }

    private static func of(_ change: ObjectChange, _ object: ObjectKey) -> ObjectChange {
        var change = change
        change.object = object
        return change
    }

    /// What SQL finds of every object, by key.
    private static func found(_ gateway: RunningGateway) async throws -> [String: String] {
        let connection = try await PostgresConnection.connect(gateway.conninfo)
        let rows = try await connection.query(
            """
            SELECT _id, title || ' ' || size FROM orders
            UNION ALL SELECT _id, concat_ws(' ', labels::text, place->>'x', place->>'y') FROM tags
            """)
        await connection.close()
        return Dictionary(uniqueKeysWithValues: (0..<rows.count).map { (rows[$0, 0] ?? "", rows[$0, 1] ?? "") })
    }

    @Test func `Scenario 41: each conflict rule, three devices in every order of arrival, and SQL in between`() async throws {
        try await RunningGateway.with { gateway in
            var runs = Self.cases.flatMap { test in Self.orders.map { Run(test: test, order: $0, sql: nil) } }
            for test in Self.cases where test.isOpenToSQL {
                runs += Self.orders.flatMap { order in (0...3).map { Run(test: test, order: order, sql: $0) } }
            }
            var devices: [TestSession] = []
            for _ in 0..<3 {
                let device = try await gateway.openSession()
                try await device.subscribe(1, [("Order", "store == 'north'"), ("Tag", "TRUEPREDICATE")])
                devices.append(device)
            }
            let begin = SystemEnvironment().wallMilliseconds() - 60_000
            let starts = runs.compactMap { run in
                run.test.start.map { ObjectChange(object: run.object, kind: .create, values: $0) }
            }
            try await devices[0].upload(1, starts, time: HybridTime(milliseconds: begin))
            for device in devices {
                try await device.receive { $0.keys("Order").count + $0.keys("Tag").count == starts.count }
            }
            let bases = devices.map(\.applied)
            var numbers: [UInt64] = [1, 0, 0]
            for run in runs {
                for (place, index) in run.order.enumerated() {
                    if run.sql == place { try await gateway.sql("UPDATE orders SET title = 'sql' WHERE _id = '\(run.key)'") }
                    let write = run.test.writes[index]
                    numbers[index] += 1
                    let number = numbers[index]
                    try await devices[index].upload(
                        number, [Self.of(write.change, run.object)], time: HybridTime(milliseconds: begin + write.at), base: bases[index])
                    try await devices[index].receive { $0.acknowledged == number }
                }
                if run.sql == 3 { try await gateway.sql("UPDATE orders SET title = 'sql' WHERE _id = '\(run.key)'") }
            }
            let found = try await Self.found(gateway)
            for run in runs { #expect(found[run.key] == run.outcome, "\(run.key)") }
            for (index, device) in devices.enumerated() {
                try await device.sendMark(1)
                try await device.receive { $0.mark == 1 }
                #expect(device.compensations.isEmpty, "\(index): \(device.compensations)")
                #expect(device.rows == devices[0].rows, "device \(index)")
            }
        }
    }

    @Test func `CR-2 a creation that did not know of a deletion by SQL comes to nothing, and one that did makes a new object`() async throws
    {
        try await RunningGateway.with { gateway in
            let (first, second) = (try await gateway.openSession(), try await gateway.openSession())
            let queries = [("Order", "store == 'north'")]
            try await first.subscribe(1, queries)
            try await second.subscribe(1, queries)
            let keys = (0..<20).map { "o\($0)" }
            func create(_ key: String, _ title: String) -> ObjectChange {
                TestSession.order(key, ["store": .string("north"), "title": .string(title), "size": .int(1)])
            }
            // Before anything was deleted, as far as the second one will say.
            try await first.upload(1, keys.map { create($0, "first") })
            for session in [first, second] { try await session.receive { $0.keys("Order").count == keys.count } }
            let base = second.applied
            var (number, known): (UInt64, [String]) = (0, [])
            for (index, key) in keys.enumerated() {
                try await gateway.sql("DELETE FROM orders WHERE _id = '\(key)'")
                let isKnown = index % 2 == 0
                if isKnown { try await second.receive { !$0.keys("Order").contains(key) } }
                number += 1
                // At once, when the gateway may not have heard of the deletion itself.
                try await second.upload(number, [create(key, "second")], base: isKnown ? nil : base)
                try await second.receive { [number] in $0.acknowledged == number }
                if isKnown { known.append(key) }
            }
            #expect(known.count == 10)
            let made = known.map { "'\($0)'" }.joined(separator: ", ")
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE title = 'second' AND _id IN (\(made))") == 10)
            #expect(try await gateway.count("SELECT count(*) FROM orders") == 10)
            #expect(second.compensations.isEmpty, "\(second.compensations)")
            // Nothing is left of those that SQL deleted but what is forgotten in time. And so it is when all go at once.
            let clocks = "SELECT count(*) FROM sluice.row_clock WHERE type = 'Order' AND deleted_lsn IS NULL"
            try await first.sendMark(1)
            try await first.receive { $0.mark == 1 }
            #expect(try await gateway.count(clocks) == 10)
            try await gateway.sql("TRUNCATE orders")
            #expect(try await first.failure().code == .resync)
            #expect(try await gateway.count(clocks) == 0)
        }
    }
}
