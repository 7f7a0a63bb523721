/// A shape on the earth's surface, for `geoWithin`.
public protocol RealmGeoSpatial: Sendable {
    /// The shape in the query language.
    var _queryText: String { get }
}

/// A place in degrees, with an altitude in metres that queries ignore.
public struct GeoPoint: Hashable, Sendable {
    public let latitude: Double
    public let longitude: Double
    public let altitude: Double

    /// Returns nil if the latitude is outside ±90, the longitude outside ±180, or the altitude negative.
    public init?(latitude: Double, longitude: Double, altitude: Double = 0) {
        guard (-90...90).contains(latitude), (-180...180).contains(longitude), altitude >= 0 else { return nil }
        (self.latitude, self.longitude, self.altitude) = (latitude, longitude, altitude)
    }

    init?(_ degrees: (latitude: Double, longitude: Double)) { self.init(latitude: degrees.latitude, longitude: degrees.longitude) }

    var text: String { "[\(longitude), \(latitude)]" }
}

/// A rectangle between two parallels and two meridians.
public struct GeoBox: Hashable, RealmGeoSpatial {
    public let bottomLeft: GeoPoint
    public let topRight: GeoPoint

    public init(bottomLeft: GeoPoint, topRight: GeoPoint) { (self.bottomLeft, self.topRight) = (bottomLeft, topRight) }

    /// Creates a box from corners as (latitude, longitude); nil if a corner is not a valid place.
    public init?(bottomLeft: (Double, Double), topRight: (Double, Double)) {
        guard let low = GeoPoint(bottomLeft), let high = GeoPoint(topRight) else { return nil }
        self.init(bottomLeft: low, topRight: high)
    }

    public var _queryText: String { "geoBox(\(bottomLeft.text), \(topRight.text))" }
}

/// A polygon with great circles as edges, optionally with holes.
public struct GeoPolygon: Hashable, RealmGeoSpatial {
    public let outerRing: [GeoPoint]
    public let holes: [[GeoPoint]]

    /// Returns nil if a ring has fewer than three distinct corners. An open ring is closed automatically.
    public init?(outerRing: [GeoPoint], holes: [[GeoPoint]] = []) {
        guard let outer = GeoPolygon.closed(outerRing) else { return nil }
        let inner = holes.compactMap(GeoPolygon.closed)
        guard inner.count == holes.count else { return nil }
        (self.outerRing, self.holes) = (outer, inner)
    }

    public init?(outerRing: [GeoPoint], holes: [GeoPoint]...) { self.init(outerRing: outerRing, holes: holes) }

    /// Creates a polygon from corners as (latitude, longitude); nil also if a corner is not a valid place.
    public init?(outerRing: [(Double, Double)], holes: [[(Double, Double)]] = []) {
        let rings = ([outerRing] + holes).map { $0.compactMap { GeoPoint($0) } }
        guard zip(rings, [outerRing] + holes).allSatisfy({ $0.count == $1.count }) else { return nil }
        self.init(outerRing: rings[0], holes: Array(rings.dropFirst()))
    }

    public init?(outerRing: [(Double, Double)], holes: [(Double, Double)]...) { self.init(outerRing: outerRing, holes: holes) }

    private static func closed(_ ring: [GeoPoint]) -> [GeoPoint]? {
        guard let first = ring.first else { return nil }
        let closed = ring.last == first ? ring : ring + [first]
        return Set(closed).count >= 3 ? closed : nil
    }

    public var _queryText: String {
        let rings = ([outerRing] + holes).map { "{\($0.map(\.text).joined(separator: ", "))}" }
        return "geoPolygon(\(rings.joined(separator: ", ")))"
    }
}

/// A distance along the earth's surface, at an earth radius of 6,378.1 km.
public struct Distance: Hashable, Sendable {
    /// The distance as an angle at the earth's centre.
    public let radians: Double

    private static let earthRadiusMetres = 6_378_100.0

    private init?(checked radians: Double) {
        guard radians.isFinite, radians >= 0 else { return nil }
        self.radians = radians
    }

    /// Returns nil for a negative or non-finite distance, as do the other units.
    public static func kilometers(_ kilometers: Double) -> Distance? { Distance(checked: kilometers * 1000 / earthRadiusMetres) }
    public static func miles(_ miles: Double) -> Distance? { Distance(checked: miles * 1609.344 / earthRadiusMetres) }
    public static func degrees(_ degrees: Double) -> Distance? { Distance(checked: degrees * .pi / 180) }
    public static func radians(_ radians: Double) -> Distance? { Distance(checked: radians) }

    public func asKilometers() -> Double { radians * Distance.earthRadiusMetres / 1000 }
    public func asMiles() -> Double { radians * Distance.earthRadiusMetres / 1609.344 }
    public func asDegrees() -> Double { radians * 180 / .pi }
}

/// All places within a distance of a centre.
public struct GeoCircle: Hashable, RealmGeoSpatial {
    public let center: GeoPoint
    public let radiusInRadians: Double

    /// Returns nil if the radius, in radians, is negative or not finite.
    public init?(center: GeoPoint, radiusInRadians: Double) {
        guard radiusInRadians.isFinite, radiusInRadians >= 0 else { return nil }
        (self.center, self.radiusInRadians) = (center, radiusInRadians)
    }

    public init?(center: GeoPoint, radius: Distance) { self.init(center: center, radiusInRadians: radius.radians) }

    /// Creates a circle with the centre as (latitude, longitude).
    public init?(center: (Double, Double), radiusInRadians: Double) {
        guard let center = GeoPoint(center) else { return nil }
        self.init(center: center, radiusInRadians: radiusInRadians)
    }

    public init?(center: (Double, Double), radius: Distance) { self.init(center: center, radiusInRadians: radius.radians) }

    public var _queryText: String { "geoCircle(\(center.text), \(radiusInRadians))" }
}
