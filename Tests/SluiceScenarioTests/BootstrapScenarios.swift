import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceReplica
import SluiceSDK
import SluiceSync
import Testing

/// What happens while rows of a new set come, and to what was written before they came.
@Suite(.timeLimit(.minutes(5))) struct `Rows that come for a set` {
    /// A device that begins to download 20,000 rows.
    private static func filling(_ folder: Phone.Folder, _ gateway: RunningGateway) async throws -> EngineDevice {
        try await gateway.sql(rows(20_000))
        let device = try EngineDevice(gateway, token: try await gateway.anonymousToken(), path: folder.replica)
        try device.subscribe()
        return device
    }

    private static func rows(_ count: Int) -> String {
        "INSERT INTO orders (_id, store, title, size) SELECT 'n' || g, 'north', repeat('t', 50), g FROM generate_series(1, \(count)) g"
    }

    @Test func `Scenario 12: a bootstrap that was cut off shows nothing, and the next one leaves nothing behind`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(Self.rows(20_000))
            let (folder, token) = (try Phone.Folder(), try await gateway.anonymousToken())
            let path = folder.replica
            do {
                let device = try EngineDevice(gateway, token: token, path: path) {
                    if case .downloading(_, let rows, _) = $0 { rows > 0 } else { false }
                }
                try device.subscribe()
                await device.ended()
                #expect(try device.sizes().isEmpty, "a part of a set is never shown")
            }
            try await gateway.sql("DELETE FROM orders WHERE size % 2 = 0; UPDATE orders SET size = -size WHERE size % 3 = 0")
            let device = try EngineDevice(gateway, token: token, path: path)
            try await device.engine.wait(for: .download, milliseconds: 180_000)
            let sizes = try device.sizes()
            #expect(sizes.count == 10_000 && sizes["n3"] == -3 && sizes["n5"] == 5 && sizes["n4"] == nil)
            #expect(sizes.values.allSatisfy { $0 % 2 != 0 && ($0 < 0) == ($0 % 3 == 0) })
            await device.stop()
        }
    }

    @Test
    func `Scenario 12: rows that came whole, and not the end of their set, are not shown, and the next start brings the set as it is then`()
        async throws
    {
        try await RunningGateway.with { gateway in
            try await gateway.sql(Self.rows(1_000))
            let (folder, token) = (try Phone.Folder(), try await gateway.anonymousToken())
            let path = folder.replica
            do {
                // As if the app had ended between the last row and the end of the bootstrap.
                let replica = try Replica(path: path, schema: EngineDevice.schema)
                try EngineDevice.subscribe(replica)
                try await replica.commit(isDurable: false) { parts throws(SluiceError) in
                    try parts.server.beginBootstrap(version: 1)
                }
                var buffer = RowBuffer()
                let rows = (0..<1_000).map { buffer.append(Row([.string("gone\($0)"), .string("north"), .int(Int64($0))])) }
                try await replica.commit(isDurable: false) { [buffer] parts throws(SluiceError) in
                    try parts.server.staging.stage(type: 0, rows: rows, of: buffer)
                }
            }
            let device = try EngineDevice(gateway, token: token, path: path)
            #expect(try device.sizes().isEmpty, "what is not complete is not shown")
            try await device.engine.wait(for: .download, milliseconds: 180_000)
            let sizes = try device.sizes()
            #expect(sizes.count == 1_000 && sizes.keys.allSatisfy { $0.hasPrefix("n") } && sizes["n7"] == 7)
            await device.stop()
        }
    }

    @Test func `Scenario 13: what others do by SQL while rows come is there in the end, and nothing else`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(Self.rows(20_000))
            try await gateway.sql("INSERT INTO orders (_id, store, size) SELECT 's' || g, 'south', g FROM generate_series(1, 500) g")
            let session = try await gateway.openSession()
            try await session.sendSubscribe(1, [("Order", "store == 'north'")])
            // It reads no further, so that all of this comes before the end of the set whatever the machine does.
            try await session.receive { $0.brought.rows > 0 }
            #expect(session.completed == 0)
            for change in [
                "INSERT INTO orders (_id, store, size) SELECT 'i' || g, 'north', g FROM generate_series(1, 300) g",
                "UPDATE orders SET size = -size WHERE size % 3 = 0",
                "DELETE FROM orders WHERE size % 7 = 0",
                "UPDATE orders SET store = 'south' WHERE store = 'north' AND size % 5 = 0",
                "UPDATE orders SET store = 'north' WHERE _id LIKE 's%' AND size % 2 = 0",
                "UPDATE orders SET store = 'south' WHERE _id IN ('n1', 'i1')", "UPDATE orders SET store = 'north' WHERE _id = 'n1'",
                "UPDATE orders SET _id = 'renamed' WHERE _id = 'n2'",
            ] { try await gateway.sql(change) }
            try await session.receive(within: 120) { $0.completed == 1 }
            try await session.sendMark(1)
            try await session.receive(within: 120) { $0.mark == 1 }
            let shown = (session.rows["Order"] ?? [:]).values.map { row in
                [row["_id"], row["store"], row["title"], row["size"]].map { $0.map { "\($0)" } ?? "" }.joined(separator: " ")
            }
            let expected = try await gateway.texts(
                """
                SELECT concat_ws(' ', 'string("' || _id || '")', 'string("' || store || '")',
                    coalesce('string("' || title || '")', 'null'), 'int(' || size || ')')
                FROM orders WHERE store = 'north'
                """)
            let (more, less) = (Set(shown).subtracting(expected), Set(expected).subtracting(shown))
            #expect(more.isEmpty && less.isEmpty && shown.count == expected.count, "\(more.prefix(5)), \(less.prefix(5))")
            #expect(expected.count > 10_000)
            session.close()
        }
    }

    /// It ends the sessions with the class, whose devices come back by themselves.
    @Test func `Scenario 13: a table that is truncated and filled anew while rows come is as it is then`() async throws {
        try await RunningGateway.with { gateway in
            let folder = try Phone.Folder()
            let device = try await Self.filling(folder, gateway)
            await device.untilRowsCome()
            try await gateway.sql(
                """
                TRUNCATE orders;
                INSERT INTO orders (_id, store, size) SELECT 'n' || g, 'north', -g FROM generate_series(100, 300) g;
                INSERT INTO orders (_id, store, size) VALUES ('s', 'south', 1)
                """)
            try await device.engine.wait(for: .download, milliseconds: 120_000)
            let sizes = try device.sizes()
            #expect(sizes == Dictionary(uniqueKeysWithValues: (100...300).map { ("n\($0)", Int64(-$0)) }), "\(sizes.count)")
            #expect(!device.reports.contains { $0.isReset })
            await device.stop()
        }
    }

    @MainActor
    @Test func `Scenario 16: a set that comes while rows of another come takes its place`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows(20_000))
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('s1', 'south', 1)")
            // At the gateway: the session reads no further until it has asked for the other.
            let session = try await gateway.openSession()
            try await session.sendSubscribe(1, [("Order", "store == 'north'")])
            try await session.receive { $0.brought.rows > 0 }
            try await session.subscribe(2, [("Order", "store == 'south'")])
            #expect(session.keys("Order") == ["s1"] && session.queryErrors.isEmpty)
            session.close()
            // In an app, which has a handle of each.
            let phone = try await Phone.open(gateway)
            let (steps, answers) = (Steps(), Phone.Said())
            let (first, second) = (phone.realm.subscriptions, phone.realm.subscriptions)
            first.update({ first.append(QuerySubscription<Order>(name: "north") { $0.store == "north" }) }) { error in
                answers.add(error ?? CancellationError())
            }
            let token = phone.session.addProgressNotification(for: .download, mode: .reportIndefinitely) { steps.add($0) }
            await steps.wait { $0.contains { $0 > 0 } }
            try await second.update {
                second.removeAll()
                second.append(QuerySubscription<Order>(name: "south") { $0.store == "south" })
            }
            #expect(first.state == .superseded && second.state == .complete && phone.keys == ["s1"])
            await answers.wait { !$0.all.isEmpty }
            #expect(answers.all.count == 1 && answers.all[0] is CancellationError, "\(answers.all)")
            #expect(phone.said.all.isEmpty, "\(phone.said.all)")
            token?.invalidate()
        }
    }

    @Test func `Scenario 14: nothing is uploaded while rows come`() async throws {
        try await RunningGateway.with { gateway in
            let folder = try Phone.Folder()
            let device = try await Self.filling(folder, gateway)
            var order: [String] = []
            for await report in device.news {
                switch report {
                case .downloading(_, let rows, _) where rows > 0 && order.isEmpty:
                    order.append("rows")
                    let transaction = try device.replica.beginWrite()
                    try transaction.create(type: 0, key: .string("mine"), values: ["store": .string("north"), "size": .int(1)])
                    try transaction.commit()
                case .downloaded: order.append("downloaded")
                case .uploaded: order.append("uploaded")
                default: break
                }
                if order.last == "uploaded" { break }
            }
            #expect(order == ["rows", "downloaded", "uploaded"])
            #expect(try device.sizes().count == 20_001)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'mine'") == 1)
            await device.stop()
        }
    }

    @MainActor
    @Test func `Scenario 19: an object that was created where another was out of view gives way to it`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, title, size) VALUES ('x', 'south', 'theirs', 7)")
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            phone.session.suspend()
            let subscriptions = phone.realm.subscriptions
            try phone.add("x", store: "south", title: "mine")
            subscriptions.update({ subscriptions.append(QuerySubscription<Order>(name: "south") { $0.store == "south" }) }, onComplete: nil)
            phone.session.resume()
            try await phone.session.wait(for: .upload)
            try await phone.wait { $0.count == 1 && $0.first?.title == "theirs" && $0.first?.size == 7 }
            await phone.said.wait { !$0.sync.isEmpty }
            let refused = phone.said.sync.flatMap { $0.compensatingWriteInfo ?? [] }
            #expect(refused.map(\.primaryKey) == [.string("x")], "the app is told: \(phone.said.all)")
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE title = 'theirs' AND size = 7") == 1)
        }
    }

    @MainActor
    @Test func `Scenario 19: it gives way as well when the subscription was changed before it was created`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, title, size) VALUES ('x', 'south', 'theirs', 7)")
            try await gateway.untilOlderTransactionsEnd()
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            let other = try await Phone.open(gateway, orders: ["store == 'south'"])
            phone.session.suspend()
            let subscriptions = phone.realm.subscriptions
            subscriptions.update({ subscriptions.append(QuerySubscription<Order>(name: "south") { $0.store == "south" }) }, onComplete: nil)
            try phone.add("x", store: "south", title: "mine")
            // Two who make one object at a time make one object.
            try phone.add("y", store: "south", title: "mine")
            try other.add("y", store: "south", size: 9)
            try await other.session.wait(for: .upload)
            phone.session.resume()
            try await phone.session.wait(for: .upload)
            try await phone.wait { orders in
                orders.contains { $0._id == "x" && $0.title == "theirs" && $0.size == 7 } && orders.contains { $0._id == "y" }
            }
            await phone.said.wait { !$0.sync.isEmpty }
            let refused = phone.said.sync.flatMap { $0.compensatingWriteInfo ?? [] }
            #expect(refused.map(\.primaryKey) == [.string("x")], "\(phone.said.all)")
            #expect(refused.first?.reason.contains("existed already") == true && refused.first?.cause == .existed)
            #expect(refused.first?.code == 231 && refused.first?.values["title"] == .string("mine"))
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE title = 'theirs' AND size = 7") == 1)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'y'") == 1)
            // From now on it is seen.
            try phone.add("x", store: "south", title: "changed", size: 7)
            try await phone.session.wait(for: .upload)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'x' AND title = 'changed'") == 1)
        }
    }
}
