import SluiceCore

/// TEXT and GEOWITHIN.
extension QueryBinder {
    func fullText(_ comparison: SyntaxComparison) throws(SluiceError) -> BoundCondition {
        guard case .bound(let side) = try side(comparison.left), case .value(.string) = side.type, case .path = side.operand else {
            throw mismatch("TEXT searches a string property", at: comparison.left.position)
        }
        guard case .constant(.string(let text), _) = try self.side(comparison.right) else {
            throw mismatch("TEXT takes the words to search as a string", at: comparison.right.position)
        }
        let search = TextSearch(text)
        if search.isEmpty { throw mismatch("Missing search token: TEXT takes at least one word", at: comparison.right.position) }
        return .fullText(side, search)
    }

    func within(_ comparison: SyntaxComparison) throws(SluiceError) -> BoundCondition {
        guard case .path(let path) = comparison.left.kind, path.suffix == nil else {
            throw mismatch("GEOWITHIN takes the path of a point on its left", at: comparison.left.position)
        }
        var walk = PathWalk(binder: self, path: path)
        try walk.walk()
        guard try walk.enterObject(), let type = walk.objectType, type.isPoint else {
            throw mismatch(
                "'\(written(path))' links to data in the wrong format for GEOWITHIN: a point has the properties type (string) and "
                    + "coordinates (list of doubles)", at: path.position)
        }
        if let quantifier = path.quantifier, !walk.reachesMany {
            throw mismatch(
                "The keypath following '\(quantifier.rawValue)' must contain a list. Found '\(written(path))'", at: path.position)
        }
        let bound = BoundPath(
            steps: walk.steps, result: .values, type: .value(.embedded(type.name)), isMany: walk.reachesMany, sequence: .none)
        let side = BoundSide(
            operand: .path(bound), quantifier: path.quantifier ?? .any, isQuantified: path.quantifier != nil, type: bound.type,
            isMany: bound.isMany)
        return .within(side, try geometry(comparison.right))
    }

    private func geometry(_ operand: SyntaxOperand) throws(SluiceError) -> Geometry {
        switch operand.kind {
        case .shape(let shape): return try geometry(shape, at: operand.position)
        case .argument(let number, _):
            switch try argument(number, at: operand.position) {
            case .shape(let shape): return try geometry(shape, at: operand.position)
            case .value(.string(let text)):
                // A shape in a string is one as a query would have it.
                if let query = try? Query.parse("x GEOWITHIN " + text), case .compare(let comparison) = query.tree.root.kind,
                    case .shape(let shape) = comparison.right.kind
                {
                    return try geometry(shape, at: operand.position)
                }
            case .value: break
            }
            throw diagnostic.error(
                .queryArgument, "The right side of GEOWITHIN must be a shape, but argument $\(number) is none", at: operand.position)
        default: throw mismatch("The right side of GEOWITHIN must be a shape", at: operand.position)
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
}

extension ObjectType {
    /// Whether its objects can be points of GeoJSON.
    var isPoint: Bool {
        guard let type = self["type"], let coordinates = self["coordinates"] else { return false }
        return type.type == .string && type.collection == .none && coordinates.type == .double && coordinates.collection == .list
    }
}
