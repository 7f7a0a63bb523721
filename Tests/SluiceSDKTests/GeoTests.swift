import Foundation
import SluiceSDK
import Testing

/// Places in shapes. Where cities lie and how far apart they are is known from elsewhere.
@Suite struct GeoTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Those of some places, by latitude and longitude, that a shape contains.
    private func inside(_ shape: some RealmGeoSpatial, _ places: [String: (Double, Double)]) throws -> Set<String> {
        let realm = try Realm(configuration: folder.configuration([Walker.self]))
        try realm.write {
            realm.deleteAll()
            for (id, (name, place)) in places.enumerated() {
                let home: [String: Any] = ["coordinates": [place.1, place.0]]
                realm.create(Walker.self, value: ["_id": id, "name": name, "home": home] as [String: Any])
            }
            realm.create(Walker.self, value: ["_id": -1, "name": "nowhere"])
        }
        return Set(realm.objects(Walker.self).where { $0.home.geoWithin(shape) }.map(\.name))
    }

    @Test func `a box lies between parallels and meridians, across the antimeridian too`() throws {
        let america = try #require(GeoBox(bottomLeft: (40, -75), topRight: (42, -73)))
        #expect(try inside(america, ["New York": (40.7128, -74.006), "Philadelphia": (39.9526, -75.1652)]) == ["New York"])
        let pacific = try #require(GeoBox(bottomLeft: (-20, 170), topRight: (0, -170)))
        #expect(try inside(pacific, ["west": (-17.7, 178), "east": (-17.7, -179), "Africa": (-17.7, 0)]) == ["west", "east"])
    }

    @Test(arguments: [
        Distance.kilometers(300), .miles(186.4), .degrees(2.695), .radians(0.04704),
    ])
    func `a circle has what is no further away, in whatever unit`(radius: Distance?) throws {
        let radius = try #require(radius)
        let circle = try #require(GeoCircle(center: (48.8566, 2.3522), radius: radius))
        // 264 km and 344 km from Paris.
        #expect(try inside(circle, ["Brussels": (50.8503, 4.3517), "London": (51.5072, -0.1276)]) == ["Brussels"])
    }

    @Test func `a polygon has great circles as edges, and holes`() throws {
        let square: [(Double, Double)] = [(0, 0), (0, 10), (10, 10), (10, 0)]
        let ring = try #require(GeoPolygon(outerRing: square, holes: [[(4, 4), (4, 6), (6, 6), (6, 4)]]))
        #expect(try inside(ring, ["in": (2, 2), "hole": (5, 5), "out": (11, 5)]) == ["in"])
        // Halfway between two places on one parallel the great circle passes far north of it.
        let band = try #require(GeoPolygon(outerRing: [(40, 0), (40, 90), (50, 90), (50, 0)] as [(Double, Double)]))
        #expect(try inside(band, ["north of 50": (55, 45), "south of the arc": (45, 45), "far north": (60, 45)]) == ["north of 50"])
    }

    @Test func `what is no shape is nil`() {
        #expect(GeoPoint(latitude: 90.1, longitude: 0) == nil && GeoPoint(latitude: 0, longitude: -181) == nil)
        #expect(
            GeoPoint(latitude: 0, longitude: 0, altitude: -1) == nil && GeoPoint(latitude: -90, longitude: 180, altitude: 7)?.altitude == 7)
        #expect(GeoBox(bottomLeft: (0, 0), topRight: (91, 0)) == nil && GeoCircle(center: (0, 181), radiusInRadians: 1) == nil)
        #expect(GeoCircle(center: (0, 0), radiusInRadians: -1) == nil && Distance.kilometers(-1) == nil && Distance.degrees(.nan) == nil)
        let line: [(Double, Double)] = [(0, 0), (1, 1)]
        #expect(GeoPolygon(outerRing: line) == nil && GeoPolygon(outerRing: line + [(95, 0)]) == nil)
        #expect(GeoPolygon(outerRing: line + [(0, 1)], holes: [line]) == nil)
    }

    @Test func `a polygon is closed by itself`() throws {
        let corners = try [(0, 0), (0, 1), (1, 1)].map { try #require(GeoPoint(latitude: $0.0, longitude: $0.1)) }
        #expect(GeoPolygon(outerRing: corners) == GeoPolygon(outerRing: corners + [corners[0]]))
    }

    @Test func `distances are the same in every unit`() throws {
        let distance = try #require(Distance.miles(100))
        #expect(abs(distance.asKilometers() - 160.9344) < 1e-9 && abs(distance.asMiles() - 100) < 1e-9)
        #expect(abs(try #require(Distance.degrees(180)).radians - .pi) < 1e-12)
        #expect(abs(try #require(Distance.radians(1)).asDegrees() - 57.29577951308232) < 1e-9)
    }
}
