import Foundation
import GatewayTestSupport
import SluiceSDK
import Testing

final class Pier: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var port: Port?
}

final class Beacon: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var kind: String
    @Persisted var depth: Double?
    @Persisted var pier: Pier?
}

/// Limits with an order through links, and of distinct objects.
@Suite(.timeLimit(.minutes(5))) struct `Limits in orders through links` {
    typealias Harbour = `Beyond Flexible Sync`.Harbour

    @MainActor
    private static func with(
        _ classes: [ObjectBase.Type], _ rows: String, _ body: @escaping @MainActor @Sendable (RunningGateway, Harbour) async throws -> Void
    ) async throws {
        try await RunningGateway.with(files: ShopApp.withoutRules, isDevelopment: true) { @MainActor gateway in
            let harbour = try await Harbour.open(gateway, fleet: rows, classes: classes)
            try await body(gateway, harbour)
            #expect(harbour.said.all.isEmpty, "\(harbour.said.all)")
        }
    }

    @MainActor
    @Test func `a change of a linked object moves objects in and out`() async throws {
        try await Self.with([Port.self, Sailor.self, Ship.self], `Beyond Flexible Sync`.fleet) { gateway, harbour in
            let ships = harbour.realm.objects(Ship.self).sorted(by: [SortDescriptor(keyPath: "port.name", ascending: false), "size"])
            try await ships.subscribe(options: SyncSubscriptionOptions(name: "last ports", limit: 2))
            // Ports a and b have the ships 1, 3, 5 and 2, 4. None of them is on the device.
            #expect(harbour.ships == ["s2", "s4"] && harbour.ports.isEmpty)
            @MainActor func change(_ sql: String, _ expected: [String]) async throws {
                try await gateway.sql(sql)
                try await harbour.realm.waitUntilSynced(timeout: 60)
                #expect(harbour.ships == expected && harbour.ports.isEmpty, "\(sql): \(harbour.ships)")
            }
            try await change(#"UPDATE "Port" SET name = 'Z' WHERE _id = 'a'"#, ["s1", "s3"])
            // A changed link, a link to a missing object, and the insertion of that object.
            try await change(#"UPDATE "Ship" SET port = 'a' WHERE _id = 's2'"#, ["s1", "s2"])
            try await change(#"DELETE FROM "Port" WHERE _id = 'a'"#, ["s1", "s4"])
            try await change(#"INSERT INTO "Port" (_id, name) VALUES ('a', 'ZZ')"#, ["s1", "s2"])
            try await change(#"UPDATE "Ship" SET port = NULL WHERE _id = 's1'"#, ["s2", "s3"])
        }
    }

    private static let buoys = """
        INSERT INTO "Port" (_id, name) VALUES ('a', 'A'), ('b', 'B'), ('c', 'C');
        INSERT INTO "Pier" (_id, port) VALUES ('1', 'a'), ('2', 'b'), ('3', 'c'), ('4', NULL);
        INSERT INTO "Beacon" (_id, kind, depth, pier) VALUES
            ('b1', 'red', 3, '1'), ('b2', 'red', 'NaN', '2'), ('b3', 'green', 1, '3'), ('b4', 'green', NULL, '4'), ('b5', 'blue', 2, '2'),
            ('b6', 'blue', 9, NULL)
        """

    @MainActor
    @Test func `a subscription of query-based sync has the first of the sorted, distinct results`() async throws {
        try await Self.with([Port.self, Pier.self, Beacon.self], Self.buoys) { gateway, harbour in
            let realm = harbour.realm
            let results = realm.objects(Beacon.self).sorted(byKeyPath: "pier.port.name").distinct(by: ["kind"])
            @MainActor func expect(_ expected: [String], _ comment: String = "") async throws {
                try await realm.waitUntilSynced(timeout: 60)
                #expect(realm.objects(Beacon.self).map(\._id).sorted() == expected, "\(comment)")
                // The device finds the same objects by the included links.
                #expect(results.map(\._id).sorted() == expected, "\(comment)")
            }
            let subscription = results.subscribe(named: "one of each", limit: 10)
            try await expect(["b1", "b4", "b6"])
            #expect(subscription.state == .complete)
            let changes = [
                // Null sorts first: once buoys 4 and 6 have a port, buoys 3 and 5 precede them.
                (#"UPDATE "Pier" SET port = 'c' WHERE _id = '4'; UPDATE "Port" SET name = 'BB' WHERE _id = 'c'"#, ["b1", "b3", "b6"]),
                (#"UPDATE "Beacon" SET pier = '4' WHERE _id = 'b6'"#, ["b1", "b3", "b5"]),
                (#"UPDATE "Port" SET name = 'X' WHERE _id = 'a'"#, ["b2", "b3", "b5"]),
                (#"UPDATE "Beacon" SET kind = 'white' WHERE _id = 'b1'"#, ["b1", "b2", "b3", "b5"]),
                (#"DELETE FROM "Beacon" WHERE _id = 'b3'"#, ["b1", "b2", "b4", "b5"]),
            ]
            for (sql, expected) in changes {
                try await gateway.sql(sql)
                try await expect(expected, sql)
            }
            // Another order under the name, and fewer of them.
            let deepest = realm.objects(Beacon.self).sorted(byKeyPath: "depth").distinct(by: ["pier.port.name"])
            deepest.subscribe(named: "one of each", limit: 2, update: true)
            try await realm.waitUntilSynced(timeout: 60)
            // Null, NaN, then numbers: buoy 4 of port c, buoy 2 of port b.
            #expect(realm.objects(Beacon.self).map(\._id).sorted() == ["b2", "b4"])
        }
    }

    @MainActor
    @Test func `what a plugin cuts off of a linked class counts as null in the order`() async throws {
        try await RunningGateway.with(files: ShopApp.withoutRules, plugins: ["FaultyC"], isDevelopment: true) { @MainActor gateway in
            let harbour = try await Harbour.open(gateway, classes: [Port.self, Ship.self])
            let ships = harbour.realm.objects(Ship.self).where { $0.size < 100 && $0._id != "do-port" }
            let options = SyncSubscriptionOptions(
                name: "last", limit: 2, sort: [SortDescriptor(keyPath: "port.name", ascending: false), "size"])
            try await ships.subscribe(options: options)
            // The plugin narrows ports by name != 'B'.
            #expect(harbour.ships == ["s1", "s3"] && harbour.ports.isEmpty)
            try await gateway.sql(#"UPDATE "Port" SET name = 'B' WHERE _id = 'a'; UPDATE "Port" SET name = '0' WHERE _id = 'b'"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships == ["s2", "s4"])
        }
    }

    @MainActor
    @Test func `an order that the server does not have is refused with the set`() async throws {
        try await RunningGateway.with(files: ShopApp.withoutRules, isDevelopment: true) { @MainActor gateway in
            let harbour = try await Harbour.open(
                gateway, fleet: `Beyond Flexible Sync`.fleet, classes: [Port.self, Sailor.self, Ship.self])
            for options in [
                SyncSubscriptionOptions(limit: 1, sort: ["port"]), SyncSubscriptionOptions(limit: 1, distinct: ["port"]),
                SyncSubscriptionOptions(limit: 1, sort: ["size"], distinct: ["crew"]),
            ] {
                let error = await #expect(throws: Realm.Error.self) {
                    _ = try await harbour.realm.objects(Ship.self).subscribe(options: options, waitForSync: .always)
                }
                #expect(error?.code == .subscriptionFailed)
                #expect(error?.message.contains("a limit cannot count by it") == true, "\(error as Any)")
            }
            // The app's error handler receives each of them, and nothing else.
            #expect(harbour.said.all.allSatisfy { "\($0)".contains("a limit cannot count by it") }, "\(harbour.said.all)")
        }
    }
}
