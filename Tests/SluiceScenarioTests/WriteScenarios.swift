import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceSDK
import SluiceValues
import Testing

/// What becomes of writes that are not allowed, as the app and others see it.
@Suite(.timeLimit(.minutes(5))) struct `Writes that are not allowed` {
    private static let rows = "INSERT INTO orders (_id, store, title, size) VALUES ('n1', 'north', 'a', 1), ('s1', 'south', 'b', 1)"

    @MainActor
    @Test func `Scenarios 9, 30, 32, 34: are undone, told once with reason and key, and seen by nobody else`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            let other = try await Phone.open(gateway, orders: ["store IN {'north', 'south', 'east'}"])
            var seen: Set<String> = []
            let token = other.orders.observe { _ in seen.formUnion(other.orders.map { "\($0._id) \($0.store)" }) }
            // A new object that lies outside, and an old one that would move.
            try phone.add("bad", store: "east")
            try phone.add("n1", store: "south", title: "moved")
            await phone.said.wait { $0.sync.flatMap { $0.compensatingWriteInfo ?? [] }.count == 2 }
            let errors = phone.said.sync
            #expect(errors.allSatisfy { $0.code == .writeRejected && ($0 as NSError).userInfo["Compensating Write Info"] != nil })
            let writes = errors.flatMap { $0.compensatingWriteInfo ?? [] }
            #expect(
                writes.map(\.primaryKey) == [.string("bad"), .string("n1")]
                    && writes.allSatisfy { $0.objectType == "Order" && $0.code == 231 })
            #expect(writes[0].reason.contains("\"bad\" is outside of the current query view"), "\(writes[0].reason)")
            #expect(writes[1].reason.contains("change the indexed queryable field store of Order \"n1\""), "\(writes[1].reason)")
            // The error comes when the state is repaired.
            phone.realm.refresh()
            #expect(phone.keys == ["n1"] && phone.orders.first?.store == "north" && phone.orders.first?.title == "a")
            // Not again after a reconnection; what is legal goes through.
            phone.session.suspend()
            phone.session.resume()
            try phone.add("n1", title: "legal")
            try await phone.session.wait(for: .upload)
            try await other.wait { $0.contains { $0.title == "legal" } }
            #expect(phone.said.sync.count == errors.count)
            #expect(seen.isSubset(of: ["n1 north", "s1 south"]), "\(seen)")
            #expect(try await gateway.count("SELECT count(*) FROM orders") == 2)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.rejected_write") == 2)
            // Operators are told what decided.
            let view = "SELECT count(*) FROM sluice.rejected_write WHERE key LIKE '%bad%' AND rule LIKE 'the view, not met: store %'"
            let role = "SELECT count(*) FROM sluice.rejected_write WHERE rule LIKE 'role %, indexed queryable field store'"
            let counts = (try await gateway.count(view), try await gateway.count(role))
            #expect(counts == (1, 1))
            let path = "/admin/v1/why?user=\(phone.realm.configuration.syncConfiguration?.user.id ?? "")&type=Order&id="
            for (id, rule) in [("bad", "decided by the view, not met: store "), ("n1", "decided by role ")] {
                let answer = try await gateway.request("GET", path + id, admin: true).json
                let said = answer["because"]?.array?.compactMap(\.string) ?? []
                #expect(said.contains { $0.contains(" was undone at 2") && $0.contains(rule) }, "\(answer)")
                let refused = answer["refused_writes"]?.array ?? []
                #expect(refused.count == 1 && refused[0]["code"]?.int == 231 && refused[0]["rule"]?.string != nil, "\(answer)")
            }
            token.invalidate()
        }
    }

    @MainActor
    @Test func `Scenario 9: a change of the indexed field in the database moves the object from one device to the other`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let north = try await Phone.open(gateway, orders: ["store == 'north'"])
            let south = try await Phone.open(gateway, orders: ["store == 'south'"])
            let (leaving, news) = AsyncStream<String>.makeStream()
            let token = north.realm.observeLeaving { objects in
                for object in objects { news.yield("\(object.primaryKey.stringValue ?? "") \(object.reason)") }
            }
            var left = leaving.makeAsyncIterator()
            try await gateway.sql("UPDATE orders SET store = 'south', title = 'moved' WHERE _id = 'n1'")
            #expect(await left.next() == "n1 leftQuery")
            try await south.wait { $0.contains { $0._id == "n1" && $0.title == "moved" } }
            #expect(north.keys == [] && south.keys == ["n1", "s1"])
            // Whose object it is now may change it, and it comes back as it is then.
            try south.add("n1", store: "south", title: "theirs")
            try await south.session.wait(for: .upload)
            try await gateway.sql("UPDATE orders SET store = 'north' WHERE _id = 'n1'")
            try await north.wait { $0.contains { $0._id == "n1" && $0.title == "theirs" } }
            try await south.wait { $0.map(\._id) == ["s1"] }
            #expect(north.said.sync.isEmpty && south.said.sync.isEmpty)
            token.invalidate()
        }
    }

    @MainActor
    @Test func `Scenario 31: of a transaction with one such write the others stand`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            phone.session.suspend()
            try phone.realm.write {
                phone.realm.create(Order.self, value: ["_id": "bad", "store": "east", "size": 1])
                phone.realm.create(Order.self, value: ["_id": "good", "store": "north", "size": 1])
            }
            try phone.add("bad", store: "east", title: "later")
            phone.session.resume()
            try await phone.session.wait(for: .upload)
            try await phone.wait { Set($0.map(\._id)) == ["n1", "good"] }
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id IN ('good', 'bad')") == 1)
        }
    }

    @MainActor
    @Test func `Scenario 31: later writes to the same object that are legal stand, and what was refused can be had back`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            phone.session.suspend()
            try phone.add("n1", store: "east", title: "lost")
            try phone.realm.write { phone.orders.first { $0._id == "n1" }?.title = "legal" }
            try phone.add("bad", store: "east", title: "never")
            try phone.realm.write { phone.orders.first { $0._id == "bad" }?.title = "of nothing" }
            phone.session.resume()
            try await phone.session.wait(for: .upload)
            try await phone.wait { orders in orders.map { "\($0._id) \($0.store) \($0.title ?? "")" } == ["n1 north legal"] }
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'n1' AND store = 'north' AND title = 'legal'") == 1)
            await phone.said.wait { $0.sync.flatMap { $0.compensatingWriteInfo ?? [] }.count == 3 }
            let writes = phone.said.sync.flatMap { $0.compensatingWriteInfo ?? [] }
            #expect(writes.map(\.cause) == [.indexedField, .outsideView, .neverMade], "\(writes)")
            #expect(writes.map(\.fields) == [["store"], [], []])
            #expect(writes.map { $0.values["title"]?.stringValue } == ["lost", "never", "of nothing"])
            #expect(writes[0].values["store"] == .string("east"))
        }
    }

    @MainActor
    @Test func `Scenario 31: of a transaction with values that the database refuses the others stand`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows + "; ALTER TABLE orders ADD CHECK (size < 100)")
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            try phone.realm.write {
                for (key, size) in [("a", 1), ("b", 100), ("c", 2), ("d", 101)] {
                    phone.realm.create(Order.self, value: ["_id": key, "store": "north", "size": size])
                }
                phone.orders.first { $0._id == "n1" }?.size = 500
            }
            try await phone.session.wait(for: .upload)
            try await phone.wait { Set($0.map(\._id)) == ["n1", "a", "c"] }
            await phone.said.wait { !$0.sync.isEmpty }
            let writes = phone.said.sync.flatMap { $0.compensatingWriteInfo ?? [] }
            #expect(Set(writes.map(\.primaryKey)) == [.string("b"), .string("d"), .string("n1")])
            #expect(writes.allSatisfy { $0.cause == .database && $0.reason.contains("a check does not hold") }, "\(writes)")
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id IN ('a', 'b', 'c', 'd')") == 2)
            #expect(phone.orders.first { $0._id == "n1" }?.size == 1)
            // More than are tried one by one.
            try phone.realm.write {
                for number in 0..<40 {
                    phone.realm.create(Order.self, value: ["_id": "m\(number)", "store": "north", "size": 100 + number])
                }
                phone.realm.create(Order.self, value: ["_id": "e", "store": "north", "size": 1])
            }
            try await phone.session.wait(for: .upload)
            try await phone.wait { Set($0.map(\._id)) == ["n1", "a", "c"] }
            #expect(try await gateway.count("SELECT count(*) FROM sluice.rejected_write WHERE cause = 'database'") == 44)
        }
    }

    @MainActor
    @Test func `Scenario 30: a role that may not write is named`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            try await gateway.createUser("keeper@example.com", customData: #"{"store":"north"}"#)
            let phone = try await Phone.open(gateway, orders: ["store IN {'north', 'south'}"], name: "keeper@example.com")
            #expect(phone.keys == ["n1"], "a keeper reads one store")
            try phone.add("s2", store: "south")
            await phone.said.wait { !$0.sync.isEmpty }
            let reason = try #require(phone.said.sync.first?.compensatingWriteInfo?.first?.reason)
            #expect(reason.contains("Not allowed to write"), "\(reason)")
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 's2'") == 0)
        }
    }

    @MainActor
    @Test func `Scenario 28: writes that were made offline and are not allowed any more are undone`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1), ('s1', 'south', 1)")
            let id = try await gateway.createUser("keeper@example.com", customData: #"{"store":"north"}"#)
            let phone = try await Phone.open(gateway, orders: ["store IN {'north', 'south'}"], name: "keeper@example.com")
            #expect(phone.keys == ["n1"])
            phone.session.suspend()
            try phone.add("n1", title: "offline")
            try phone.add("n2")
            try phone.add("s2", store: "south")
            try await gateway.setCustomData(#"{"store":"south"}"#, of: id)
            phone.session.resume()
            try await phone.session.wait(for: .upload)
            await phone.said.wait { $0.sync.flatMap { $0.compensatingWriteInfo ?? [] }.count >= 2 }
            try await phone.wait { Set($0.map(\._id)) == ["s1", "s2"] }
            let refused = phone.said.sync.flatMap { $0.compensatingWriteInfo ?? [] }.map(\.primaryKey)
            #expect(refused == [.string("n1"), .string("n2")])
            #expect(phone.said.sync.allSatisfy { $0.code == .writeRejected }, "no reset: \(phone.said.all)")
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE store = 'north' AND title IS NULL") == 1)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 's2'") == 1)
        }
    }

    @MainActor
    @Test func `what leaves the device says why`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) SELECT 'n' || i, 'north', i FROM generate_series(1, 7) AS i")
            let phone = try await Phone.open(gateway, orders: ["store == 'north' AND size < 10"])
            let (leaving, news) = AsyncStream<String>.makeStream()
            let token = phone.realm.observeLeaving { objects in
                for object in objects { news.yield("\(object.className) \(object.primaryKey.stringValue ?? "") \(object.reason)") }
            }
            var left = leaving.makeAsyncIterator()
            try await gateway.sql("DELETE FROM orders WHERE _id = 'n1'")
            #expect(await left.next() == "Order n1 deleted")
            try await gateway.sql("UPDATE orders SET size = 10 WHERE _id = 'n5'")
            #expect(await left.next() == "Order n5 leftQuery")
            // By the app's own change, which is on its way when the server says so.
            try phone.realm.write { phone.orders.first { $0._id == "n2" }?.size = 10 }
            #expect(await left.next() == "Order n2 leftQuery")
            // Of an object that the app has changed meanwhile.
            phone.session.suspend()
            try phone.realm.write { phone.orders.first { $0._id == "n3" }?.title = "mine" }
            try await gateway.sql("DELETE FROM orders WHERE _id = 'n3'")
            phone.session.resume()
            #expect(await left.next() == "Order n3 deleted")
            // What it deletes itself it knows.
            try phone.realm.write { phone.realm.delete(try #require(phone.orders.first { $0._id == "n6" })) }
            try await phone.session.wait(for: .upload)
            try await phone.realm.waitUntilSynced(timeout: 60)
            let subscriptions = phone.realm.subscriptions
            try await subscriptions.update { subscriptions.removeAll() }
            #expect(Set([await left.next(), await left.next()]) == ["Order n4 leftQuery", "Order n7 leftQuery"])
            token.invalidate()
        }
    }

    @MainActor
    @Test func `what the app makes where others have made and deleted the same meanwhile is deleted`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            let other = try await Phone.open(gateway, orders: ["store == 'north'"])
            let (leaving, news) = AsyncStream<String>.makeStream()
            let token = phone.realm.observeLeaving { objects in
                for object in objects { news.yield("\(object.primaryKey.stringValue ?? "") \(object.reason)") }
            }
            var left = leaving.makeAsyncIterator()
            phone.session.suspend()
            try phone.add("k1", title: "mine")
            try other.add("k1", title: "theirs")
            try await other.session.wait(for: .upload)
            try other.realm.write { other.realm.delete(try #require(other.orders.first { $0._id == "k1" })) }
            try await other.session.wait(for: .upload)
            phone.session.resume()
            #expect(await left.next() == "k1 deleted")
            #expect(phone.keys.isEmpty && phone.said.sync.isEmpty)
            #expect(try await gateway.count("SELECT count(*) FROM orders") == 0)
            token.invalidate()
        }
    }

    @MainActor
    @Test func `what the rules take away says so, and what the query does not ask for any more says that`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) SELECT 'n' || i, 'north', i FROM generate_series(1, 4) AS i")
            let keeper = try await gateway.createUser("keeper@example.com", customData: #"{"store":"north"}"#)
            let queries = ["store IN {'north', 'south'} AND size < 10"]
            let phone = try await Phone.open(gateway, orders: queries, name: "keeper@example.com")
            #expect(phone.keys == ["n1", "n2", "n3", "n4"])
            let (leaving, news) = AsyncStream<String>.makeStream()
            let token = phone.realm.observeLeaving { objects in
                for object in objects { news.yield("\(object.primaryKey.stringValue ?? "") \(object.reason)") }
            }
            var left = leaving.makeAsyncIterator()
            // A store that is asked for, and not the keeper's.
            try await gateway.sql("UPDATE orders SET store = 'south' WHERE _id = 'n1'")
            #expect(await left.next() == "n1 lostPermission")
            try await gateway.sql("UPDATE orders SET store = 'east' WHERE _id = 'n2'")
            #expect(await left.next() == "n2 leftQuery")
            try await gateway.sql("UPDATE orders SET size = 10 WHERE _id = 'n3'")
            #expect(await left.next() == "n3 leftQuery")
            try await gateway.sql("DELETE FROM orders WHERE _id = 'n4'")
            #expect(await left.next() == "n4 deleted")
            // The user's data change, and the rules take what is still asked for; not what is not, nor what is deleted meanwhile.
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n5', 'north', 5), ('n6', 'north', 6), ('s1', 'south', 1)")
            try await phone.realm.waitUntilSynced(timeout: 60)
            #expect(phone.keys == ["n5", "n6"])
            try await gateway.setCustomData(#"{"store":"south"}"#, of: keeper)
            #expect(Set([await left.next(), await left.next()]) == ["n5 lostPermission", "n6 lostPermission"])
            try await phone.realm.waitUntilSynced(timeout: 60)
            #expect(phone.keys == ["n1", "s1"])
            token.invalidate()
        }
    }
}
