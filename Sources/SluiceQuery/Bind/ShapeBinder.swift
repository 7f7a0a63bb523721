import SluiceCore

/// Converts the shape after GEOWITHIN to a geometry.
struct ShapeBinder {
    let diagnostic: QueryDiagnostic
    let arguments: [QueryArgument]

    func geometry(_ operand: SyntaxOperand) throws(SluiceError) -> Geometry {
        switch operand.kind {
        case .shape(let shape): return try geometry(shape, at: operand.position)
        case .argument(let number, _):
            switch try argument(number, at: operand.position) {
            case .shape(let shape): return try geometry(shape, at: operand.position)
            case .value(.string(let text)):
                // A shape in a string has the form of a query's text.
                if let query = try? Query.parse("x GEOWITHIN " + text), case .compare(let comparison) = query.tree.root.kind,
                    case .shape(let shape) = comparison.right.kind
                {
                    return try geometry(shape, at: operand.position)
                }
            case .value: break
            }
            throw diagnostic.error(
                .queryArgument, "The right side of GEOWITHIN must be a shape, but argument $\(number) is none", at: operand.position)
        default: throw diagnostic.error(.queryTypeMismatch, "The right side of GEOWITHIN must be a shape", at: operand.position)
        }
    }

    private func geometry(_ shape: GeoShape, at position: SourcePosition) throws(SluiceError) -> Geometry {
        switch shape {
        case .box(let low, let high):
            let corners = (try place(low, of: position), try place(high, of: position))
            return try valid(position) { () throws(QueryError) in try Geometry(box: corners.0, corners.1) }
        case .circle(let center, let radians):
            let (center, radians) = (try place(center, of: position), try coordinate(radians))
            return try valid(position) { () throws(QueryError) in try Geometry(circle: center, radians: radians) }
        case .polygon(let loops):
            var places: [[Geometry.Place]] = []
            for loop in loops {
                var points: [Geometry.Place] = []
                for point in loop { points.append(try place(point, of: position)) }
                places.append(points)
            }
            return try valid(position) { () throws(QueryError) in try Geometry(polygon: places) }
        }
    }

    /// Returns the shape at a position.
    private func valid(_ position: SourcePosition, _ shape: () throws(QueryError) -> Geometry) throws(SluiceError) -> Geometry {
        do throws(QueryError) { return try shape() } catch { throw invalid(error.text, at: position) }
    }

    private func invalid(_ reason: String, at position: SourcePosition) -> SluiceError {
        diagnostic.error(.queryShape, "Invalid region in GEOWITHIN query: \(reason)", at: position)
    }

    /// - Parameter position: The position of the shape.
    private func place(_ point: GeoPoint, of position: SourcePosition) throws(SluiceError) -> Geometry.Place {
        let (longitude, latitude) = (try coordinate(point.longitude), try coordinate(point.latitude))
        guard let place = Geometry.Place(longitude: longitude, latitude: latitude) else {
            throw invalid("Longitude/latitude is out of bounds, lng: \(longitude) lat: \(latitude)", at: position)
        }
        if let altitude = point.altitude { _ = try coordinate(altitude) }
        return place
    }

    private func coordinate(_ coordinate: GeoCoordinate) throws(SluiceError) -> Double {
        switch coordinate.kind {
        case .literal(let literal):
            guard let number = Number(QueryConstant(literal).value) else { return .nan }
            return number.asDouble
        case .argument(let index):
            guard case .value(let inner) = try argument(index, at: coordinate.position), let number = Number(inner) else {
                throw diagnostic.error(
                    .queryArgument, "Invalid parameter $\(index) used in a shape: it is no number", at: coordinate.position)
            }
            return number.asDouble
        }
    }

    private func argument(_ number: Int, at position: SourcePosition) throws(SluiceError) -> QueryArgument {
        guard number < arguments.count else { throw diagnostic.missingArgument(number, of: arguments.count, at: position) }
        return arguments[number]
    }
}
