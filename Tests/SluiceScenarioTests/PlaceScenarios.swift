import Foundation
import GatewayTestSupport
import SluiceSDK
import Testing

final class Spot: EmbeddedObject {
    @Persisted var type: String = "Point"
    @Persisted var coordinates: List<Double>

    convenience init(_ longitude: Double, _ latitude: Double) {
        self.init()
        coordinates.append(objectsIn: [longitude, latitude])
    }
}

final class Taxi: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var spot: Spot?
}

/// Subscriptions to what lies in a shape (QL-5).
@Suite(.timeLimit(.minutes(5))) struct `Places in subscriptions` {
    @MainActor
    private final class Driver {
        let realm: Realm
        let said: Phone.Said
        private let folder: Phone.Folder

        static func open(_ gateway: RunningGateway) async throws -> Driver {
            let (said, folder) = (Phone.Said(), try Phone.Folder())
            var configuration = try await Phone.user(gateway, said, folder).flexibleSyncConfiguration()
            configuration.objectTypes = [Taxi.self, Spot.self]
            let realm = try await Realm(configuration: configuration)
            try await realm.syncSession?.wait(for: .download)
            return Driver(realm, said, folder)
        }

        private init(_ realm: Realm, _ said: Phone.Said, _ folder: Phone.Folder) {
            (self.realm, self.said, self.folder) = (realm, said, folder)
        }

        var taxis: [String] { realm.objects(Taxi.self).map(\._id).sorted() }

        func subscribe(to shape: some RealmGeoSpatial) async throws {
            let subscriptions = realm.subscriptions
            try await subscriptions.update {
                subscriptions.removeAll()
                subscriptions.append(QuerySubscription<Taxi> { $0.spot.geoWithin(shape) })
            }
        }

        func synced() async throws -> [String] {
            try await realm.syncSession?.wait(for: .upload)
            try await realm.waitUntilSynced(timeout: 60)
            return taxis
        }
    }

    private static func point(_ longitude: Double, _ latitude: Double) -> String {
        #"'{"type": "Point", "coordinates": [\#(longitude), \#(latitude)]}'"#
    }

    @MainActor
    @Test func `Scenario 6: what lies in a shape comes, and goes when it leaves it`() async throws {
        try await RunningGateway.with(files: ShopApp.withoutRules, isDevelopment: true) { @MainActor gateway in
            let (driver, other) = (try await Driver.open(gateway), try await Driver.open(gateway))
            try await gateway.sql(
                """
                INSERT INTO "Taxi" (_id, spot) VALUES
                    ('paris', \(Self.point(2.35, 48.85))), ('rome', \(Self.point(12.5, 41.9))), ('fiji', \(Self.point(178, -17.7))),
                    ('samoa', \(Self.point(-171.8, -13.8))), ('nowhere', NULL), ('beyond', \(Self.point(1, 99))),
                    ('line', '{"type": "LineString", "coordinates": [2.35, 48.85]}'), ('half', '{"type": "Point", "coordinates": [2.35]}')
                """)
            try await driver.subscribe(to: try #require(GeoBox(bottomLeft: (40, 0), topRight: (50, 20))))
            #expect(driver.taxis == ["paris", "rome"])
            try await driver.subscribe(to: try #require(GeoBox(bottomLeft: (-20, 170), topRight: (0, -170))))
            #expect(driver.taxis == ["fiji", "samoa"])
            let hundred = try #require(Distance.kilometers(100))
            try await driver.subscribe(to: try #require(GeoCircle(center: (48.8566, 2.3522), radius: hundred)))
            #expect(driver.taxis == ["paris"])
            // Around the pole every longitude is near.
            try await gateway.sql(#"INSERT INTO "Taxi" (_id, spot) VALUES ('pole', \#(Self.point(-100, 89.5)))"#)
            let pole = try #require(GeoCircle(center: (89.9, 60), radius: hundred))
            try await driver.subscribe(to: pole)
            #expect(driver.taxis == ["pole"])
            let europe = try #require(GeoPolygon(outerRing: [(36, -10), (36, 30), (60, 30), (60, -10), (36, -10)]))
            try await driver.subscribe(to: europe)
            #expect(driver.taxis == ["paris", "rome"])
            // By the stream: one comes, one goes, one changes within.
            try await gateway.sql(
                """
                INSERT INTO "Taxi" (_id, spot) VALUES ('berlin', \(Self.point(13.4, 52.5))), ('oslo', \(Self.point(10.7, 69)));
                UPDATE "Taxi" SET spot = \(Self.point(100, 13)) WHERE _id = 'rome';
                UPDATE "Taxi" SET spot = \(Self.point(2.4, 48.9)) WHERE _id = 'paris'
                """)
            #expect(try await driver.synced() == ["berlin", "paris"])
            #expect(driver.realm.object(ofType: Taxi.self, forPrimaryKey: "paris")?.spot?.coordinates.first == 2.4)
            // And by the edits of a device, to the list inside as well.
            try await other.subscribe(to: europe)
            try other.realm.write {
                other.realm.create(Taxi.self, value: ["_id": "madrid", "spot": Spot(-3.7, 40.4)])
                other.realm.object(ofType: Taxi.self, forPrimaryKey: "berlin")?.spot?.coordinates[1] = -52.5
            }
            #expect(try await other.synced() == ["madrid", "paris"])
            #expect(try await driver.synced() == ["madrid", "paris"])
            #expect(driver.said.all.isEmpty, "\(driver.said.all)")
        }
    }

    @MainActor
    @Test func `Scenario 30: CW-7 that would put what is no point where a subscription looks for points`() async throws {
        try await RunningGateway.with(files: ShopApp.withoutRules, isDevelopment: true) { @MainActor gateway in
            let driver = try await Driver.open(gateway)
            try await driver.subscribe(to: try #require(GeoBox(bottomLeft: (-90, -180), topRight: (90, 180))))
            try driver.realm.write { driver.realm.create(Taxi.self, value: ["_id": "good", "spot": Spot(1, 2)]) }
            try driver.realm.write {
                driver.realm.object(ofType: Taxi.self, forPrimaryKey: "good")?.spot?.type = "LineString"
                driver.realm.create(Taxi.self, value: ["_id": "far", "spot": Spot(181, 0)])
                driver.realm.create(Taxi.self, value: ["_id": "next", "spot": Spot(3, 4)])
            }
            #expect(try await driver.synced() == ["good", "next"])
            #expect(driver.realm.object(ofType: Taxi.self, forPrimaryKey: "good")?.spot?.type == "Point")
            await driver.said.wait { $0.sync.flatMap { $0.compensatingWriteInfo ?? [] }.count == 2 }
            let writes = driver.said.sync.flatMap { $0.compensatingWriteInfo ?? [] }
            #expect(writes.allSatisfy { $0.cause == .point && $0.fields == ["spot"] && $0.reason.contains("no point of GeoJSON") })
            #expect(try await gateway.count(#"SELECT count(*) FROM "Taxi""#) == 2)
        }
    }
}
