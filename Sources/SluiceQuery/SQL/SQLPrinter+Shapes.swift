import SluiceCore

/// Points in documents. The database selects by the box around a shape, and the residual tests the selected rows.
extension SQLPrinter {
    func within(_ column: SQLText, _ geometry: Geometry, negated: Bool) -> SQLPiece {
        guard dialect == .postgres, !negated else { return .unknown }
        let bounds = geometry.bounds
        var conditions = ["@.type == \"Point\"", "@.coordinates[1] >= \(bounds.south)", "@.coordinates[1] <= \(bounds.north)"]
        if let (west, east) = bounds.meridians {
            conditions += ["@.coordinates[0] >= \(west)", "@.coordinates[0] <= \(east)"]
        }
        // In a jsonpath filter a comparison with another type fails without an error. SQL writers may store such values.
        let path = Value.string("$ ? (\(conditions.joined(separator: " && ")))")
        return SQLPiece("jsonb_path_exists(\(column), \(parameter: path, .string)::jsonpath)", isExact: false)
    }
}

extension Geometry {
    /// Bounds of the shape in degrees, with a margin: PostgreSQL compares a point's decimals before they are rounded to doubles.
    fileprivate struct Bounds {
        var south: Double
        var north: Double
        /// Nil for all longitudes.
        var meridians: (west: Double, east: Double)?
    }

    private static let margin = 1e-9

    fileprivate var bounds: Bounds {
        switch self {
        case .box(let low, let high):
            return Bounds(
                south: low.latitude - Geometry.margin, north: high.latitude + Geometry.margin,
                meridians: low.longitude <= high.longitude
                    ? (low.longitude - Geometry.margin, high.longitude + Geometry.margin) : nil)
        case .circle(let center, let radians): return Geometry.bounds(around: center, radians)
        case .polygon(let loops):
            // A circle that contains all vertices also contains the arcs between them and the area inside, if it is smaller than a
            // hemisphere.
            guard let outer = loops.first, let middle = Geometry.middle(of: outer) else { return .everything }
            let center = Vector(middle)
            let radians = outer.map { center.angle(to: Vector($0)) }.max() ?? .pi
            return radians < .pi / 2 ? Geometry.bounds(around: middle, radians) : .everything
        }
    }

    /// Returns the centre of the vertices, or nil if they are spread evenly over the sphere.
    private static func middle(of loop: [Place]) -> Place? {
        let sum = loop.reduce(Vector(x: 0, y: 0, z: 0)) {
            let vector = Vector($1)
            return Vector(x: $0.x + vector.x, y: $0.y + vector.y, z: $0.z + vector.z)
        }
        let length = sum.dot(sum).squareRoot()
        guard length > 1e-6 else { return nil }
        let latitude = Trigonometry.arcTangent(sum.z, (sum.x * sum.x + sum.y * sum.y).squareRoot()) * 180 / .pi
        return Place(longitude: Trigonometry.arcTangent(sum.y, sum.x) * 180 / .pi, latitude: latitude)
    }

    private static func bounds(around center: Place, _ radians: Double) -> Bounds {
        let degrees = radians * 180 / .pi
        let (south, north) = (center.latitude - degrees - margin, center.latitude + degrees + margin)
        guard south > -90, north < 90 else { return Bounds(south: max(south, -90), north: min(north, 90), meridians: nil) }
        // The meridians that touch the circle: sin(width) = sin(radius) / cos(latitude).
        let sine = Trigonometry.sine(radians) / Trigonometry.cosine(center.latitude * .pi / 180)
        guard sine < 1, radians < .pi / 2 else { return Bounds(south: south, north: north, meridians: nil) }
        let width = Trigonometry.arcTangent(sine, (1 - sine * sine).squareRoot()) * 180 / .pi + margin
        let (west, east) = (center.longitude - width, center.longitude + width)
        return Bounds(south: south, north: north, meridians: west < -180 || east > 180 ? nil : (west, east))
    }
}

extension Geometry.Bounds {
    fileprivate static var everything: Self { Self(south: -90, north: 90, meridians: nil) }
}
