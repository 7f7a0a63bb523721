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
        do throws(Geometry.Flaw) {
            switch shape {
            case .box(let low, let high): return try Geometry(box: place(low), place(high))
            case .circle(let center, let radians): return try Geometry(circle: place(center), radians: coordinate(radians))
            case .polygon(let loops):
                var places: [[Geometry.Place]] = []
                for loop in loops {
                    var points: [Geometry.Place] = []
                    for point in loop { points.append(try place(point)) }
                    places.append(points)
                }
                return try Geometry(polygon: places)
            }
        } catch {
            switch error {
            case .shape(let sentence): throw diagnostic.error(.queryShape, "Invalid region in GEOWITHIN query: \(sentence)", at: position)
            case .argument(let error): throw error
            }
        }
    }

    private func place(_ point: GeoPoint) throws(Geometry.Flaw) -> Geometry.Place {
        let (longitude, latitude) = (try coordinate(point.longitude), try coordinate(point.latitude))
        guard let place = Geometry.Place(longitude: longitude, latitude: latitude) else {
            throw .shape("Longitude/latitude is out of bounds, lng: \(longitude) lat: \(latitude)")
        }
        if let altitude = point.altitude { _ = try coordinate(altitude) }
        return place
    }

    private func coordinate(_ coordinate: GeoCoordinate) throws(Geometry.Flaw) -> Double {
        switch coordinate.kind {
        case .literal(let literal):
            guard let number = Number(QueryConstant(literal).value) else { return .nan }
            return number.asDouble
        case .argument(let index):
            let value: QueryArgument
            do throws(SluiceError) { value = try argument(index, at: coordinate.position) } catch { throw .argument(error) }
            guard case .value(let inner) = value, let number = Number(inner) else {
                throw .argument(
                    diagnostic.error(
                        .queryArgument, "Invalid parameter $\(index) used in a shape: it is no number", at: coordinate.position))
            }
            return number.asDouble
        }
    }

    private func argument(_ number: Int, at position: SourcePosition) throws(SluiceError) -> QueryArgument {
        guard number < arguments.count else { throw diagnostic.missingArgument(number, of: arguments.count, at: position) }
        return arguments[number]
    }
}
