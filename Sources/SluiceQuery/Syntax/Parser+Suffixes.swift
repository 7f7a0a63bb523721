import SluiceCore

/// The parts other than conditions: SORT, DISTINCT, LIMIT and the shapes of GEOWITHIN.
extension Parser {
    mutating func suffixes() throws(SluiceError) -> [QuerySuffix] {
        var suffixes: [QuerySuffix] = []
        while true {
            let start = position
            if take(.sort) {
                suffixes.append(QuerySuffix(.sort(try sortKeys()), at: start))
            } else if take(.distinct) {
                suffixes.append(QuerySuffix(.distinct(try distinctPaths()), at: start))
            } else if take(.limit) {
                try expect(.openParenthesis)
                guard case .natural(let count) = current.kind else { throw expected("a whole number without a sign") }
                advance()
                try expect(.closeParenthesis)
                suffixes.append(QuerySuffix(.limit(count), at: start))
            } else {
                return suffixes
            }
        }
    }

    private mutating func sortKeys() throws(SluiceError) -> [QuerySuffix.SortKey] {
        try expect(.openParenthesis)
        var keys: [QuerySuffix.SortKey] = []
        repeat {
            let path = try plainPath()
            let ascending = sees(.ascending)
            guard ascending || sees(.descending) else { throw expected("ASC or DESC") }
            keys.append(QuerySuffix.SortKey(path: path, ascending: ascending))
            advance()
        } while take(.comma)
        try expect(.closeParenthesis)
        return keys
    }

    private mutating func distinctPaths() throws(SluiceError) -> [SyntaxPath] {
        try expect(.openParenthesis)
        var paths: [SyntaxPath] = []
        repeat { paths.append(try plainPath()) } while take(.comma)
        try expect(.closeParenthesis)
        return paths
    }

    /// Reads a path without quantifier, `@count` or `@type`.
    private mutating func plainPath() throws(SluiceError) -> SyntaxPath {
        let start = position
        guard case .path(let path) = try property(quantifier: nil, at: start).kind, path.suffix == nil else {
            throw failure("expected the path of a property, found a calculated value", at: start)
        }
        return path
    }

    // MARK: Shapes

    mutating func shape() throws(SluiceError) -> SyntaxOperand {
        let start = position
        if case .argument(let number) = current.kind {
            advance()
            return SyntaxOperand(kind: .argument(number, nil), position: start)
        }
        let shape: GeoShape
        if take(.geoBox) {
            try expect(.openParenthesis)
            let low = try point()
            try expect(.comma)
            shape = .box(low, try point())
        } else if take(.geoCircle) {
            try expect(.openParenthesis)
            let center = try point()
            try expect(.comma)
            shape = .circle(center, radians: try coordinate())
        } else if take(.geoPolygon) {
            try expect(.openParenthesis)
            var loops: [[GeoPoint]] = []
            repeat { loops.append(try loop()) } while take(.comma)
            shape = .polygon(loops)
        } else {
            throw expected("geoBox(…), geoCircle(…), geoPolygon(…) or an argument")
        }
        try expect(.closeParenthesis)
        return SyntaxOperand(kind: .shape(shape), position: start)
    }

    private mutating func loop() throws(SluiceError) -> [GeoPoint] {
        try expect(.openBrace)
        var points: [GeoPoint] = []
        repeat { points.append(try point()) } while take(.comma)
        try expect(.closeBrace)
        return points
    }

    private mutating func point() throws(SluiceError) -> GeoPoint {
        let start = position
        try expect(.openBracket)
        let longitude = try coordinate()
        try expect(.comma)
        let latitude = try coordinate()
        var altitude: GeoCoordinate?
        if take(.comma) {
            guard let height = fraction() else { throw expected("an altitude: a number with a fraction") }
            altitude = height
        }
        try expect(.closeBracket)
        return GeoPoint(longitude: longitude, latitude: latitude, altitude: altitude, position: start)
    }

    private mutating func coordinate() throws(SluiceError) -> GeoCoordinate {
        let start = position
        switch current.kind {
        case .natural(let value):
            advance()
            return GeoCoordinate(kind: .literal(.int(value)), position: start)
        case .argument(let number):
            advance()
            return GeoCoordinate(kind: .argument(number), position: start)
        default:
            guard let coordinate = fraction() else {
                throw expected("a coordinate: a number without a sign, a number with a fraction, or an argument")
            }
            return coordinate
        }
    }

    private mutating func fraction() -> GeoCoordinate? {
        let start = position
        switch current.kind {
        case .literal(let literal):
            switch literal {
            case .real, .float: break
            default: return nil
            }
            advance()
            return GeoCoordinate(kind: .literal(literal), position: start)
        default: return nil
        }
    }
}
