import Foundation
import GatewayTestSupport
import SluiceSDK
import Testing

final class Port: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var name: String
    @Persisted(originProperty: "port") var ships: LinkingObjects<Ship>
}

final class Sailor: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var home: Port?
}

final class Ship: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var size: Int
    @Persisted var port: Port?
    @Persisted var crew: List<Sailor>
}

/// What Flexible Sync did not have: the first of an order, and what comes along by links.
@Suite(.timeLimit(.minutes(5))) struct `Beyond Flexible Sync` {
    /// What the tests begin with: s1 … s5 in ports a and b, each with a sailor of its own who lives in port c.
    static let fleet = """
        INSERT INTO "Port" (_id, name) VALUES ('a', 'A'), ('b', 'B'), ('c', 'C'), ('d', 'D');
        INSERT INTO "Sailor" (_id, home) SELECT 'm' || i, 'c' FROM generate_series(1, 5) AS i;
        INSERT INTO "Ship" (_id, size, port, crew)
        SELECT 's' || i, i * 10, CASE WHEN i % 2 = 1 THEN 'a' ELSE 'b' END, ARRAY['m' || i] FROM generate_series(1, 5) AS i;
        """

    @MainActor
    final class Harbour {
        let realm: Realm
        let said: Phone.Said
        let folder: Phone.Folder

        /// A second opening finds the classes that the first one brought.
        static func open(
            _ gateway: RunningGateway, fleet: String = fleet, classes: [ObjectBase.Type] = [Port.self, Sailor.self, Ship.self]
        ) async throws -> Harbour {
            let (said, folder) = (Phone.Said(), try Phone.Folder())
            var configuration = try await Phone.user(gateway, said, folder).flexibleSyncConfiguration()
            configuration.objectTypes = classes
            let realm = try await Realm(configuration: configuration)
            try await realm.syncSession?.wait(for: .download)
            if !fleet.isEmpty { try await gateway.sql(fleet) }
            return Harbour(realm, said, folder)
        }

        /// The app begins again, once nobody has its Realm open.
        static func open(again configuration: Realm.Configuration, _ said: Phone.Said, _ folder: Phone.Folder) async throws -> Harbour {
            Harbour(try await Realm(configuration: configuration), said, folder)
        }

        private init(_ realm: Realm, _ said: Phone.Said, _ folder: Phone.Folder) {
            self.realm = realm
            self.said = said
            self.folder = folder
        }

        var ships: [String] { realm.objects(Ship.self).map(\._id).sorted() }
        var ports: [String] { realm.objects(Port.self).map(\._id).sorted() }
        var sailors: [String] { realm.objects(Sailor.self).map(\._id).sorted() }
    }

    static func with(_ body: @escaping @MainActor @Sendable (RunningGateway) async throws -> Void) async throws {
        try await RunningGateway.with(files: ShopApp.withoutRules, isDevelopment: true) { gateway in try await body(gateway) }
    }

    // MARK: The first of an order

    @MainActor
    @Test func `a limit shows the first in the order given, and goes on showing them`() async throws {
        try await Self.with { gateway in
            let harbour = try await Harbour.open(gateway)
            let options = SyncSubscriptionOptions(name: "largest", limit: 2, sort: [SortDescriptor(keyPath: "size", ascending: false)])
            try await harbour.realm.objects(Ship.self).where { $0.size < 100 }.subscribe(options: options)
            #expect(harbour.ships == ["s4", "s5"])
            let (leaving, news) = AsyncStream<String>.makeStream()
            let token = harbour.realm.observeLeaving { objects in
                for object in objects { news.yield("\(object.primaryKey.stringValue ?? "") \(object.reason)") }
            }
            var left = leaving.makeAsyncIterator()
            // One that comes pushes another out.
            try await gateway.sql(#"INSERT INTO "Ship" (_id, size) VALUES ('s6', 60)"#)
            #expect(await left.next() == "s4 leftQuery")
            token.invalidate()
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships == ["s5", "s6"])
            // One that does not meet the query is no first.
            try await gateway.sql(#"INSERT INTO "Ship" (_id, size) VALUES ('s7', 100)"#)
            // For each that goes the next comes: deleted, out of the query, down in the order.
            try await gateway.sql(#"DELETE FROM "Ship" WHERE _id = 's6'; UPDATE "Ship" SET size = 200 WHERE _id = 's5'"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships == ["s3", "s4"])
            try await gateway.sql(#"UPDATE "Ship" SET size = 1 WHERE _id = 's4'"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships == ["s2", "s3"])
            // A change that moves nobody.
            try await gateway.sql(#"UPDATE "Ship" SET port = 'd' WHERE _id = 's3'"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(
                harbour.realm.object(ofType: Ship.self, forPrimaryKey: "s3")?.linkStatus(of: "port") == .notLocal(primaryKey: .string("d")))
            #expect(harbour.said.all.isEmpty, "\(harbour.said.all)")
        }
    }

    @MainActor
    @Test func `what is written beyond a limit is kept by the server and not shown`() async throws {
        try await Self.with { gateway in
            let harbour = try await Harbour.open(gateway)
            let options = SyncSubscriptionOptions(limit: 2, sort: ["size"])
            try await harbour.realm.objects(Ship.self).subscribe(options: options)
            #expect(harbour.ships == ["s1", "s2"])
            try harbour.realm.write {
                harbour.realm.create(Ship.self, value: ["_id": "huge", "size": 1_000])
                harbour.realm.create(Ship.self, value: ["_id": "tiny", "size": 1])
            }
            #expect(harbour.ships == ["huge", "s1", "s2", "tiny"])
            try await harbour.realm.syncSession?.wait(for: .upload)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships == ["s1", "tiny"] && harbour.said.all.isEmpty, "\(harbour.said.all)")
            #expect(try await gateway.count(#"SELECT count(*) FROM "Ship" WHERE _id IN ('huge', 'tiny')"#) == 2)
        }
    }

    // MARK: What comes along

    @MainActor
    @Test func `objects that are linked to come along, and follow the links`() async throws {
        try await Self.with { gateway in
            let harbour = try await Harbour.open(gateway)
            let first = harbour.realm.objects(Ship.self).where { $0.size == 10 }
            try await first.subscribe(name: "plain")
            #expect(harbour.ships == ["s1"] && harbour.ports.isEmpty && harbour.sailors.isEmpty)
            let ship = try #require(harbour.realm.object(ofType: Ship.self, forPrimaryKey: "s1"))
            #expect(ship.port == nil && ship.linkStatus(of: "port") == .notLocal(primaryKey: .string("a")))
            #expect(ship.crew.isEmpty && ship.primaryKeysNotLocal(in: "crew") == [.string("m1")])
            let options = SyncSubscriptionOptions(name: "plain", overwriteExisting: true, includes: ["port", "crew.home"])
            try await first.subscribe(options: options, waitForSync: .always)
            #expect(harbour.ports == ["a", "c"] && harbour.sailors == ["m1"])
            #expect(ship.port?.name == "A" && ship.linkStatus(of: "port") == .local && ship.crew.first?.home?.name == "C")
            // A link that changes, one more, and one of an object that came along.
            try await gateway.sql(#"UPDATE "Ship" SET port = 'b', crew = ARRAY['m1', 'm2'] WHERE _id = 's1'"#)
            try await gateway.sql(#"UPDATE "Sailor" SET home = 'd' WHERE _id = 'm1'"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ports == ["b", "c", "d"] && harbour.sailors == ["m1", "m2"])
            // What came along is live.
            try await gateway.sql(#"UPDATE "Port" SET name = 'B2' WHERE _id = 'b'"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(ship.port?.name == "B2")
            // A link to nothing yet.
            try await gateway.sql(#"UPDATE "Ship" SET port = 'new' WHERE _id = 's1'"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(ship.linkStatus(of: "port") == .notLocal(primaryKey: .string("new")))
            try await gateway.sql(#"INSERT INTO "Port" (_id, name) VALUES ('new', 'N')"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(ship.port?.name == "N")
            try await gateway.sql(#"UPDATE "Ship" SET port = NULL, crew = '{}' WHERE _id = 's1'"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(ship.linkStatus(of: "port") == .empty && harbour.ports.isEmpty && harbour.sailors.isEmpty)
            try await first.unsubscribe(waitForSync: .always)
            #expect(harbour.ships.isEmpty && harbour.said.all.isEmpty, "\(harbour.said.all)")
        }
    }

    @MainActor
    @Test func `of what comes along the rules cut off what they cut off of a query`() async throws {
        try await RunningGateway.with(files: ShopApp.withoutRules, plugins: ["FaultyC"], isDevelopment: true) { @MainActor gateway in
            let harbour = try await Harbour.open(gateway, classes: [Port.self, Ship.self])
            let ships = harbour.realm.objects(Ship.self).where { $0.size < 100 && $0._id != "do-port" }
            try await ships.subscribe(options: SyncSubscriptionOptions(name: "all", includes: ["port"]), waitForSync: .always)
            // The plugin narrows ports by name != 'B'.
            #expect(harbour.ships.count == 5 && harbour.ports == ["a"])
            try await gateway.sql(#"UPDATE "Port" SET name = CASE _id WHEN 'a' THEN 'B' ELSE 'C' END WHERE _id IN ('a', 'b')"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ports == ["b"])
        }
    }

    @MainActor
    @Test func `objects that came along stay when a device comes back and goes on from the log`() async throws {
        try await Self.with { gateway in
            let harbour = try await Harbour.open(gateway)
            let options = SyncSubscriptionOptions(name: "s1", includes: ["port", "crew.home"])
            try await harbour.realm.objects(Ship.self).where { $0._id == "s1" }.subscribe(options: options, waitForSync: .always)
            #expect(harbour.ports == ["a", "c"] && harbour.sailors == ["m1"])
            for name in ["A1", "A2"] {
                harbour.realm.syncSession?.suspend()
                try await gateway.sql(#"UPDATE "Port" SET name = '\#(name)' WHERE _id = 'a'"#)
                harbour.realm.syncSession?.resume()
                try await harbour.realm.waitUntilSynced(timeout: 60)
                #expect(harbour.ports == ["a", "c"] && harbour.sailors == ["m1"])
                #expect(harbour.realm.object(ofType: Port.self, forPrimaryKey: "a")?.name == name)
            }
        }
    }

    @MainActor
    @Test func `objects that came along can be changed and deleted, and none of their class made`() async throws {
        try await Self.with { gateway in
            let harbour = try await Harbour.open(gateway)
            let realm = harbour.realm
            let options = SyncSubscriptionOptions(name: "s1", includes: ["port", "crew.home"])
            try await realm.objects(Ship.self).where { $0._id == "s1" }.subscribe(options: options, waitForSync: .always)
            let ship = try #require(realm.object(ofType: Ship.self, forPrimaryKey: "s1"))
            try realm.write {
                ship.port?.name = "mine"
                realm.create(Port.self, value: ["_id": "c", "name": "ours"], update: .modified)
                if let sailor = ship.crew.first { realm.delete(sailor) }
            }
            #expect(harbour.sailors.isEmpty)
            #expect(throws: Realm.Error.self) { try realm.write { realm.create(Port.self, value: ["_id": "new"]) } }
            try await realm.syncSession?.wait(for: .upload)
            try await realm.waitUntilSynced(timeout: 60)
            #expect(try await gateway.count(#"SELECT count(*) FROM "Port" WHERE _id || name IN ('amine', 'cours')"#) == 2)
            #expect(try await gateway.count(#"SELECT count(*) FROM "Sailor" WHERE _id = 'm1'"#) == 0)
            #expect(ship.port?.name == "mine" && harbour.ports == ["a"] && harbour.said.all.isEmpty, "\(harbour.ports) \(harbour.said.all)")
        }
    }

    @MainActor
    @Test func `objects that link to one come along, and with them what they link to`() async throws {
        try await Self.with { gateway in
            let harbour = try await Harbour.open(gateway)
            let options = SyncSubscriptionOptions(includes: ["ships.crew"])
            try await harbour.realm.objects(Port.self).where { $0.name == "A" }.subscribe(options: options)
            #expect(harbour.ports == ["a"] && harbour.ships == ["s1", "s3", "s5"] && harbour.sailors == ["m1", "m3", "m5"])
            #expect(harbour.realm.object(ofType: Port.self, forPrimaryKey: "a")?.ships.count == 3)
            try await gateway.sql(#"UPDATE "Ship" SET port = 'a' WHERE _id = 's2'; UPDATE "Ship" SET port = 'b' WHERE _id = 's5'"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships == ["s1", "s2", "s3"] && harbour.sailors == ["m1", "m2", "m3"])
        }
    }

    /// RLMSyncSubscriptionOptions: "Any keypath which ends in a RLMLinkingObject property can be included in this array, including ones
    /// involving intermediate links."
    @MainActor
    @Test func `objects that link to what an object links to come along, and follow the links`() async throws {
        try await Self.with { gateway in
            let harbour = try await Harbour.open(gateway)
            try await gateway.sql(#"UPDATE "Ship" SET port = 'c' WHERE _id = 's2'"#)
            let sailor = harbour.realm.objects(Sailor.self).where { $0._id == "m1" }
            try await sailor.subscribe(options: SyncSubscriptionOptions(name: "m1", includes: ["home.ships"]))
            #expect(harbour.sailors == ["m1"] && harbour.ports == ["c"] && harbour.ships == ["s2"])
            #expect(sailor.first?.home?.ships.map(\._id) == ["s2"])
            // A link on the way changes, and one of those that end it.
            try await gateway.sql(#"UPDATE "Sailor" SET home = 'a' WHERE _id = 'm1'; UPDATE "Ship" SET port = 'a' WHERE _id = 's4'"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ports == ["a"] && harbour.ships == ["s1", "s3", "s4", "s5"])
            try await gateway.sql(#"UPDATE "Ship" SET port = NULL WHERE _id = 's1'; DELETE FROM "Ship" WHERE _id = 's3'"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships == ["s4", "s5"])
            // Through a list, back to the class that it began with, in query-based sync's form.
            sailor.unsubscribe()
            let ship = harbour.realm.objects(Ship.self).where { $0._id == "s4" }
            ship.subscribe(named: "s4", includingLinkingObjects: ["port.ships"])
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships == ["s4", "s5"] && harbour.ports == ["a", "c"] && harbour.sailors == ["m4", "m5"])
            #expect(harbour.said.all.isEmpty, "\(harbour.said.all)")
        }
    }

    @MainActor
    @Test func `an order by what is no value, and a limit without bound, are refused with the set`() async throws {
        try await Self.with { gateway in
            let harbour = try await Harbour.open(gateway)
            for options in [SyncSubscriptionOptions(limit: 1, sort: ["port"]), SyncSubscriptionOptions(limit: 1_000_000)] {
                let error = await #expect(throws: Realm.Error.self) {
                    _ = try await harbour.realm.objects(Ship.self).subscribe(options: options, waitForSync: .always)
                }
                #expect(error?.code == .subscriptionFailed)
            }
        }
    }

    // MARK: Query-based sync

    @MainActor
    @Test func `a subscription of query-based sync goes through its states, with what it links to`() async throws {
        try await Self.with { gateway in
            let harbour = try await Harbour.open(gateway)
            let small = harbour.realm.objects(Ship.self).where { $0.size < 30 }
            let (states, news) = AsyncStream<String>.makeStream()
            func subscribe(_ results: Results<Ship>, _ limit: Int, update: Bool = false) -> QueryBasedSync.Subscription {
                results.subscribe(named: "small", limit: limit, update: update, timeToLive: 60)
            }
            // Or it may be answered before anybody looks.
            harbour.realm.syncSession?.suspend()
            let subscription = subscribe(small, 1)
            #expect(subscription.state == .pending && subscription.name == "small" && subscription.expiresAt != nil)
            let token = subscription.observe(\.state, options: .initial) { news.yield("\($0)") }
            harbour.realm.syncSession?.resume()
            var told: [String] = []
            for await state in states {
                told.append(state)
                if told.count == 2 { break }
            }
            #expect(told == ["pending", "complete"])
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships == ["s1"] && harbour.ports == ["a", "c"] && harbour.sailors == ["m1"])
            // The same again, another query, another query with update.
            #expect(subscribe(small, 1).state == .complete && harbour.realm.legacySubscriptions().count == 1)
            let other = harbour.realm.objects(Ship.self).where { $0.size < 20 }
            guard case .error = subscribe(other, 0).state else {
                Issue.record("an existing name was given another query")
                return
            }
            harbour.realm.syncSession?.suspend()
            let updated = subscribe(other, 0, update: true)
            #expect(updated.state == .pending)
            harbour.realm.syncSession?.resume()
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(updated.state == .complete && harbour.realm.legacySubscription(named: "small")?.query == "size < 20")
            updated.unsubscribe()
            #expect(updated.state == .invalidated && subscription.state == .invalidated)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships.isEmpty && harbour.ports.isEmpty)
            token.invalidate()
        }
    }

    @MainActor
    @Test func `a subscription of query-based sync has inverse links bring along what they lead to`() async throws {
        try await Self.with { gateway in
            let harbour = try await Harbour.open(gateway)
            let ports = harbour.realm.objects(Port.self).where { $0.name == "A" }
            let plain = ports.subscribe(named: "a")
            try await harbour.realm.waitUntilSynced(timeout: 20)
            #expect(plain.state == .complete && harbour.ports == ["a"] && harbour.ships.isEmpty)
            ports.subscribe(named: "a", update: true, includingLinkingObjects: ["ships"])
            try await harbour.realm.waitUntilSynced(timeout: 20)
            #expect(harbour.ships == ["s1", "s3", "s5"] && harbour.sailors == ["m1", "m3", "m5"] && harbour.ports == ["a", "c"])
            try await gateway.sql(#"UPDATE "Ship" SET port = 'a' WHERE _id = 's2'; UPDATE "Ship" SET port = 'b' WHERE _id = 's5'"#)
            try await harbour.realm.waitUntilSynced(timeout: 20)
            #expect(harbour.ships == ["s1", "s2", "s3"] && harbour.sailors == ["m1", "m2", "m3"])
            plain.unsubscribe()
            try await harbour.realm.waitUntilSynced(timeout: 20)
            #expect(harbour.ports.isEmpty && harbour.ships.isEmpty && harbour.sailors.isEmpty)
        }
    }

    @MainActor
    @Test func `waiting until everything is here says up to where`() async throws {
        try await Self.with { gateway in
            let harbour = try await Harbour.open(gateway)
            try await harbour.realm.objects(Port.self).subscribe()
            let before = try await harbour.realm.waitUntilSynced()
            try await gateway.sql(#"INSERT INTO "Port" (_id, name) VALUES ('e', 'E')"#)
            let after = try await harbour.realm.waitUntilSynced()
            #expect(harbour.ports.contains("e") && before < after)
            #expect(try await gateway.count("SELECT ('\(after)'::pg_lsn <= pg_current_wal_insert_lsn())::int") == 1)
        }
    }
}
