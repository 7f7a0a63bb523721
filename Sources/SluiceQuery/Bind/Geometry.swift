package import SluiceCore

/// A valid shape on the sphere.
package enum Geometry: Hashable, Sendable {
    /// The area between two parallels and two meridians, eastward from the first to the second, including its edges.
    case box(Place, Place)
    /// The places within a distance along the sphere, in radians.
    case circle(Place, radians: Double)
    /// Loops without their repeated last point, each counterclockwise. The first is the outer one, the others are holes.
    case polygon([[Place]])

    /// A place in degrees.
    package struct Place: Hashable, Sendable {
        package let longitude: Double
        package let latitude: Double

        /// Returns nil beyond ±180 degrees of longitude or ±90 degrees of latitude.
        package init?(longitude: Double, latitude: Double) {
            guard abs(longitude) <= 180, abs(latitude) <= 90 else { return nil }
            self.longitude = longitude
            self.latitude = latitude
        }
    }

    init(box low: Place, _ high: Place) throws(QueryError) {
        guard low.latitude <= high.latitude else {
            throw QueryError("the first corner of a box is the south-western one, but \(low.latitude) is north of \(high.latitude)")
        }
        self = .box(low, high)
    }

    init(circle center: Place, radians: Double) throws(QueryError) {
        guard radians >= 0, radians.isFinite else { throw QueryError("The radius of a circle must be a non-negative number") }
        self = .circle(center, radians: radians)
    }

    init(polygon loops: [[Place]]) throws(QueryError) {
        guard let outer = loops.first else { throw QueryError("Polygon has no rings.") }
        var closed: [[Place]] = []
        for loop in loops { closed.append(try Geometry.opened(loop)) }
        for (index, hole) in closed.enumerated().dropFirst() {
            for vertex in hole where !Geometry.contains(closed[0], vertex) && !outer.contains(vertex) {
                throw QueryError(
                    "Secondary ring \(index) not contained by first exterior ring - secondary rings must be holes in the first ring")
            }
        }
        self = .polygon(closed)
    }

    /// Returns a loop without its last point, counterclockwise.
    private static func opened(_ loop: [Place]) throws(QueryError) -> [Place] {
        guard let first = loop.first, let last = loop.last else { throw QueryError("Ring has no vertices") }
        guard loop.count > 1, first == last else {
            throw QueryError(
                "Ring is not closed, first vertex '[\(first.longitude), \(first.latitude)]' does not equal last vertex "
                    + "'[\(last.longitude), \(last.latitude)]'")
        }
        var vertices = Array(loop.dropLast())
        guard Set(vertices).count >= 3 else { throw QueryError("Ring with \(vertices.count) vertices must have at least 3 distinct ones") }
        // A point repeated in a row counts once.
        vertices = vertices.indices.filter { vertices[$0] != vertices[($0 + 1) % vertices.count] }.map { vertices[$0] }
        guard Set(vertices).count == vertices.count else { throw QueryError("Ring has a vertex twice") }
        return area(vertices) < 0 ? vertices.reversed() : vertices
    }

    // MARK: Containing

    package func contains(_ place: Place) -> Bool {
        switch self {
        case .box(let low, let high):
            guard place.latitude >= low.latitude, place.latitude <= high.latitude else { return false }
            // A box whose west is east of its east crosses the antimeridian.
            if low.longitude <= high.longitude { return place.longitude >= low.longitude && place.longitude <= high.longitude }
            return place.longitude >= low.longitude || place.longitude <= high.longitude
        case .circle(let center, let radians): return Vector(center).angle(to: Vector(place)) <= radians
        case .polygon(let loops):
            guard let outer = loops.first, Geometry.contains(outer, place) else { return false }
            return !loops.dropFirst().contains { Geometry.contains($0, place) }
        }
    }

    /// `true` if a counterclockwise loop of great circle arcs, smaller than a hemisphere, contains a place.
    ///
    /// Seen from a place inside, the vertices turn once to the left. From the antipode of a place inside they turn once to the right.
    private static func contains(_ loop: [Place], _ place: Place) -> Bool {
        if loop.contains(place) { return true }
        let center = Vector(place)
        let vectors = loop.map { Vector($0) }
        var turned = 0.0
        for index in vectors.indices {
            let (a, b) = (vectors[index], vectors[(index + 1) % vectors.count])
            turned += center.turn(from: a, to: b)
        }
        return turned > .pi
    }

    /// Returns the signed area in steradians, positive if counterclockwise.
    private static func area(_ loop: [Place]) -> Double {
        let vectors = loop.map { Vector($0) }
        guard vectors.count > 2 else { return 0 }
        var area = 0.0
        for index in 1..<vectors.count - 1 {
            let (a, b, c) = (vectors[0], vectors[index], vectors[index + 1])
            area += 2 * Trigonometry.arcTangent(a.dot(b.cross(c)), 1 + a.dot(b) + b.dot(c) + c.dot(a))
        }
        return area
    }
}

/// A point of the unit sphere.
struct Vector {
    var x, y, z: Double

    init(_ place: Geometry.Place) {
        let (longitude, latitude) = (place.longitude * .pi / 180, place.latitude * .pi / 180)
        self.init(
            x: Trigonometry.cosine(latitude) * Trigonometry.cosine(longitude),
            y: Trigonometry.cosine(latitude) * Trigonometry.sine(longitude), z: Trigonometry.sine(latitude))
    }

    init(x: Double, y: Double, z: Double) { (self.x, self.y, self.z) = (x, y, z) }

    func dot(_ other: Vector) -> Double { x * other.x + y * other.y + z * other.z }

    func cross(_ other: Vector) -> Vector {
        Vector(x: y * other.z - z * other.y, y: z * other.x - x * other.z, z: x * other.y - y * other.x)
    }

    func angle(to other: Vector) -> Double {
        let normal = cross(other)
        return Trigonometry.arcTangent(normal.dot(normal).squareRoot(), dot(other))
    }

    /// Returns the angle in radians, seen from here, from one point to another. Positive is to the left.
    func turn(from a: Vector, to b: Vector) -> Double {
        let (toA, toB) = (cross(a), cross(b))
        return Trigonometry.arcTangent(dot(toA.cross(toB)), toA.dot(toB))
    }
}

extension ObjectType {
    /// `true` if its objects can be GeoJSON points.
    var isPoint: Bool {
        guard let type = self["type"], let coordinates = self["coordinates"] else { return false }
        return type.type == .string && type.collection == .none && coordinates.type == .double && coordinates.collection == .list
    }
}

extension Schema {
    /// `true` if the property holds one embedded object that can be a GeoJSON point.
    package func isPoint(_ property: Property) -> Bool {
        guard case .embedded(let name) = property.type, property.collection == .none else { return false }
        return self[name]?.isPoint ?? false
    }
}
