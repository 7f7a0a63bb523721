import SluiceCore

/// What is no condition: SORT, DISTINCT, LIMIT and the shapes of GEOWITHIN.
extension Parser {
    mutating func suffixes() throws(SluiceError) -> [QuerySuffix] {
        var suffixes: [QuerySuffix] = []
        while true {
            if take(.sort) {
                suffixes.append(.sort(try sortKeys()))
            } else if take(.distinct) {
                suffixes.append(.distinct(try distinctPaths()))
            } else if take(.limit) {
                try expect(.openParenthesis)
                guard case .natural(let count) = current.kind else { throw expected("a whole number") }
                advance()
                try expect(.closeParenthesis)
                suffixes.append(.limit(count))
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
            guard current.kind == .keyword(.ascending) || current.kind == .keyword(.descending) else { throw expected("ASC or DESC") }
            keys.append(QuerySuffix.SortKey(path: path, ascending: current.kind == .keyword(.ascending)))
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

    private mutating func plainPath() throws(SluiceError) -> SyntaxPath {
        let position = current.position
        guard case .operand(let operand) = try primary(), case .path(let path) = operand.kind, path.quantifier == nil,
            path.suffix == nil
        else { throw failure("expected the path of a property", at: position) }
        return path
    }

    // MARK: Shapes

    mutating func shape() throws(SluiceError) -> SyntaxOperand {
        let position = current.position
        if case .argument(let number) = current.kind {
            advance()
            return SyntaxOperand(kind: .argument(number, nil), position: position)
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
        return SyntaxOperand(kind: .shape(shape), position: position)
    }

    private mutating func loop() throws(SluiceError) -> [GeoPoint] {
        try expect(.openBrace)
        var points: [GeoPoint] = []
        repeat { points.append(try point()) } while take(.comma)
        try expect(.closeBrace)
        return points
    }

    private mutating func point() throws(SluiceError) -> GeoPoint {
        try expect(.openBracket)
        let longitude = try coordinate()
        try expect(.comma)
        let latitude = try coordinate()
        let altitude = take(.comma) ? try coordinate() : nil
        try expect(.closeBracket)
        return GeoPoint(longitude: longitude, latitude: latitude, altitude: altitude)
    }

    private mutating func coordinate() throws(SluiceError) -> GeoCoordinate {
        switch current.kind {
        case .natural(let value):
            advance()
            return .literal(.int(value))
        case .literal(.real(let text)):
            advance()
            return .literal(.real(text))
        case .argument(let number):
            advance()
            return .argument(number)
        default:
            throw expected("a coordinate: a number without sign, a number with a fraction, or an argument")
        }
    }
}
