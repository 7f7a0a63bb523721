import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluicePostgres
import SluiceWire
import Testing

/// The table of conflict rules through a gateway: three devices that know the same and nothing of each other, in every order of
/// arrival, and SQL as a fourth. The merge itself has more cases of each rule (`SluiceMergeTests`); here it goes the whole way.
@Suite(.timeLimit(.minutes(5))) struct `Devices that write at the same time` {
    private static let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]

    /// A case in one order of arrival; `sql` is how many devices' writes SQL's own comes after.
    private struct Run {
        var test: GatewayConflict
        var order: [Int]
        var sql: Int?
        /// Whether SQL writes what the devices write, too.
        var isContested = false
        var key: String {
            let place = sql.map(String.init) ?? ""
            return "\(test.rule)-\(order.map(String.init).joined())-\(place)\(isContested ? "!" : "")"
        }
        var object: ObjectKey { ObjectKey(type: test.type, key: .string(key)) }
        var target: ObjectKey { ObjectKey(type: test.type, key: .string("\(key)-target")) }
        private var table: String { test.type == "Order" ? "orders" : "\"Thing\"" }

        var outcome: String? {
            if let sql, isContested { return test.contest.outcome(.init(place: sql, order: order)) }
            guard sql != nil, test.isOpenToSQL else { return test.outcome }
            return test.outcome.map { "sql \($0.split(separator: " ").last ?? "")" }
        }

        var statement: String {
            if isContested { return "UPDATE \(table) SET \(test.contest.set) WHERE _id = '\(key)'" }
            let column = test.type == "Order" && !test.isOpenToSQL ? "secret" : "title"
            return "UPDATE \(table) SET \(column) = 'sql' WHERE _id = '\(key)'"
        }

        /// Every case by itself, with SQL at each place of an order or at one of them, and with SQL as a contender at each place.
        static let all: [Run] = GatewayConflict.all.flatMap { test in
            orders.enumerated().flatMap { number, order in runs(test, number, order) }
        }

        private static func runs(_ test: GatewayConflict, _ number: Int, _ order: [Int]) -> [Run] {
            let places = (0...3).filter { test.isOpenToSQL || $0 == number % 4 }
            let beside = places.map { Run(test: test, order: order, sql: $0) }
            let contested = (0...3).map { Run(test: test, order: order, sql: $0, isContested: true) }
            return [Run(test: test, order: order, sql: nil)] + beside + contested
        }

        /// What everybody has.
        var starts: [ObjectChange] {
            guard let start = test.start else { return [] }
            let links = test.rule == "CR-25" ? [ObjectChange(object: target, kind: .create, values: [:])] : []
            return [ObjectChange(object: object, kind: .create, values: start)] + links
        }

        /// A device's change of this run's object, or of the other one.
        func change(_ change: ObjectChange) -> ObjectChange {
            var change = change
            change.object = change.object.key == .null ? object : target
            if change.values["peer"] != nil { change.values["peer"] = target.key }
            return change
        }
    }

    /// Three devices, the first number of each one's next changeset, and what each has seen.
    private struct Field {
        let gateway: RunningGateway
        var devices: [TestSession] = []
        var numbers: [UInt64] = [2, 1, 1]
        let begin = SystemEnvironment().wallMilliseconds() - 60_000

        init(_ gateway: RunningGateway, _ runs: [Run]) async throws {
            self.gateway = gateway
            for _ in 0..<3 {
                let device = try await gateway.openSession(["Order", "Thing"])
                try await device.subscribe(1, [("Order", "store == 'north'"), ("Thing", "TRUEPREDICATE")])
                devices.append(device)
            }
            let starts = runs.flatMap(\.starts)
            try await devices[0].upload(1, starts, time: HybridTime(milliseconds: begin))
            for device in devices {
                try await device.receive { $0.keys("Order").count + $0.keys("Thing").count == starts.count }
            }
        }

        mutating func play(_ run: Run, bases: [LSN]) async throws {
            for (place, index) in run.order.enumerated() {
                if run.sql == place { try await gateway.sql(run.statement) }
                for write in run.test.writes[index] {
                    let number = numbers[index]
                    numbers[index] += 1
                    try await devices[index].upload(
                        number, [run.change(write.change)], time: HybridTime(milliseconds: begin + write.at), base: bases[index])
                    try await devices[index].receive { $0.acknowledged == number }
                }
            }
            if run.sql == 3 { try await gateway.sql(run.statement) }
        }
    }

    private static func with(_ body: @escaping @Sendable (RunningGateway) async throws -> Void) async throws {
        try await RunningGateway.deploy { deployment in
            let files = GatewayConflict.files
            let types = try AppDirectory.read(files: files).schema.types.filter { ["Thing", "Spot"].contains($0.name) }
            let connection = try await PostgresConnection.connect(deployment.conninfo)
            _ = try await TableCatalog(schema: Schema(types)).create(connection)
            await connection.close()
            try await deployment.run(files, body)
        }
    }

    @Test func `Scenario 41: each conflict rule, three devices in every order of arrival, and SQL as a fourth at every place`() async throws
    {
        try await Self.with { gateway in
            let runs = Run.all
            #expect(Set(runs.map(\.test.rule)) == Set((1...25).map { "CR-\($0)" }))
            var field = try await Field(gateway, runs)
            let bases = field.devices.map(\.applied)
            for run in runs { try await field.play(run, bases: bases) }
            for test in GatewayConflict.all {
                let table = test.type == "Order" ? "orders" : "\"Thing\""
                let keys = "_id LIKE '\(test.rule)-%' AND _id NOT LIKE '%-target'"
                let found = try await gateway.texts("SELECT _id || '=' || coalesce(\(test.shows), '') FROM \(table) WHERE \(keys)")
                let expected = runs.filter { $0.test.rule == test.rule }.compactMap { run in run.outcome.map { "\(run.key)=\($0)" } }
                #expect(Set(found) == Set(expected), "\(test.rule)")
            }
            for (index, device) in field.devices.enumerated() {
                try await device.sendMark(1)
                try await device.receive { $0.mark == 1 }
                #expect(device.compensations.isEmpty, "\(index): \(device.compensations)")
                #expect(device.rows == field.devices[0].rows, "device \(index)")
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

    @Test func `Scenario 41: CR-26, a contradiction ends the session that brings it, and others' writes stand`() async throws {
        try await Self.with { gateway in
            let object = ObjectKey(type: "Thing", key: .string("t"))
            try await gateway.sql(#"INSERT INTO "Thing" (_id, title, labels) VALUES ('t', 'first', '{a,b,c}')"#)
            let other = try await gateway.openSession(["Order", "Thing"])
            try await other.subscribe(1, [("Thing", "TRUEPREDICATE")])
            for (number, test) in GatewayConflict.contradictions.enumerated() {
                let session = try await gateway.openSession(["Order", "Thing"])
                try await session.subscribe(1, [("Thing", "TRUEPREDICATE")])
                var change = test.change
                if change.object.type.isEmpty { change.object = object }
                try await session.upload(1, [change])
                try await session.receive { $0.error != nil || $0.acknowledged == 1 }
                #expect(session.error?.error.code == test.code, "\(test.change): \(String(describing: session.error))")
                #expect(session.error?.sessionAction == .applicationBug)
                try await other.upload(
                    UInt64(number + 1), [ObjectChange(object: object, kind: .set, values: ["count": .int(Int64(number))])])
                try await other.receive { $0.acknowledged == UInt64(number + 1) }
            }
            let last = GatewayConflict.contradictions.count - 1
            let whole = "SELECT count(*) FROM \"Thing\" WHERE labels = '{a,b,c}' AND title = 'first' AND count = \(last)"
            #expect(try await gateway.count(whole) == 1)
            other.close()
        }
    }

    @Test func `Scenario 41: CR-26, an app that says of a class what the server does not is refused, in development as well`() async throws
    {
        let files = GatewayConflict.files
        let server = try AppDirectory.read(files: files).schema
        let (thing, spot) = (try server.type(named: "Thing"), try server.type(named: "Spot"))
        for isDevelopment in [false, true] {
            try await RunningGateway.deploy { deployment in
                let connection = try await PostgresConnection.connect(deployment.conninfo)
                _ = try await TableCatalog(schema: Schema([thing, spot])).create(connection)
                await connection.close()
                try await deployment.run(files, isDevelopment: isDevelopment) { gateway in
                    for other in GatewayConflict.otherSchemas {
                        let session = try await gateway.session(token: try await gateway.anonymousToken())
                        try await session.sendHello(Schema([other.type(thing), spot]))
                        let error = try await session.failure()
                        #expect(error.code == other.code, "\(other.name): \(error)")
                        #expect(session.error?.sessionAction == .applicationBug)
                    }
                    // One that says the same is welcome.
                    let session = try await gateway.session(token: try await gateway.anonymousToken())
                    try await session.hello(Schema([thing, spot]))
                    session.close()
                }
            }
        }
    }
}
