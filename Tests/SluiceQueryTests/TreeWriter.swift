import SluiceCore
import SluiceValues
import TestSupport

@testable import SluiceQuery

/// Makes random syntax trees, each one that some text parses to.
struct TreeWriter {
    var random: SplitMix64
    /// How much there is to choose from: few choices make trees that nearly meet.
    var isNarrow = false

    static let names = [
        "a", "b", "name", "a-1", "a_b", "$", "$a", "é", "e\u{301}", "日本", "🦄x", "first name", "a\nb\rc\td ", "sort", "LIMIT", "contains",
        "in", "Like", "FIRST", "size", "binary", "between", "Not", "T2017-12-04", "O1", "L2", "True", "B64", "uuid", "infinite", "ASC",
    ]
    static let texts = [
        "", "a", "'", "\"", "\\", "\\n", "\n", "\0", "\u{7f}", "\u{80}", "\u{9f}", "é", "e\u{301}", "\u{200b}", "\u{202e}abc", "\u{feff}",
        "\u{fffd}",
        "\u{2028}", "👩‍👩‍👧", "Z̷̢̛a̶l̸go", "[c]", "*?", "NULL", "B64\"YQ==\"", "a b", "class_a", "𐍈", "\u{10ffff}", "ﷺ", "\r\n", "%s",
    ]
    static let reals = [
        "1.5", "10.", ".5", "-.034", "1e5", "-2.5E-3", "99999999999999999999", "-99999999999999999999", "1.e3", "0.10", "0.1",
    ]
    static let floats = ["1.5", "10.", "-.5", "1e2", "2.5E-3"]

    mutating func tree() -> SyntaxTree {
        var suffixes: [QuerySuffix] = []
        while random.chance(25), suffixes.count < 4 { suffixes.append(suffix()) }
        return SyntaxTree(root: query(depth: isNarrow ? 1 : 4), suffixes: suffixes)
    }

    private mutating func some<T>(_ range: ClosedRange<Int>, _ make: (inout TreeWriter) -> T) -> [T] {
        (0..<range.lowerBound + random.below(range.count)).map { _ in make(&self) }
    }

    private mutating func pick<T>(_ values: [T]) -> T { isNarrow ? values[random.below(min(3, values.count))] : random.pick(values) }

    // MARK: Conditions

    mutating func query(depth: Int) -> SyntaxQuery {
        guard depth > 0, random.chance(60) else {
            return random.chance(8) ? SyntaxQuery(.constant(random.chance(50))) : SyntaxQuery(.compare(comparison(depth: depth)))
        }
        switch random.below(3) {
        case 0: return SyntaxQuery(.not(query(depth: depth - 1)))
        case 1:
            return SyntaxQuery(
                .and(some(2...4) { writer in writer.query(depth: depth - 1) { if case .and = $0.kind { true } else { false } } }))
        default:
            return SyntaxQuery(
                .or(some(2...4) { writer in writer.query(depth: depth - 1) { if case .or = $0.kind { true } else { false } } }))
        }
    }

    private mutating func query(depth: Int, butNot isExcluded: (SyntaxQuery) -> Bool) -> SyntaxQuery {
        let query = query(depth: depth)
        return isExcluded(query) ? SyntaxQuery(.not(query)) : query
    }

    private mutating func comparison(depth: Int) -> SyntaxComparison {
        let comparison = pick([
            ComparisonOperator.equal, .isIn, .contains, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual, .beginsWith, .endsWith,
            .like, .fullText, .between, .geoWithin,
        ])
        let left: SyntaxOperand
        let right: SyntaxOperand
        var folds = random.chance(30)
        switch comparison {
        case .beginsWith, .endsWith, .contains, .like: (left, right) = (value(depth: depth), value(depth: depth))
        case .fullText: (left, right, folds) = (value(depth: depth), value(depth: depth), false)
        case .between: (left, right, folds) = (value(depth: depth), list(), false)
        case .geoWithin:
            (left, right, folds) = (operand(.path(path())), random.chance(20) ? argument(nil) : operand(.shape(shape())), false)
        case .less, .lessOrEqual, .greater, .greaterOrEqual: (left, right, folds) = (sum(depth: depth), sum(depth: depth), false)
        case .equal, .notEqual, .isIn: (left, right) = (sum(depth: depth), sum(depth: depth))
        }
        return SyntaxComparison(left: left, comparison: comparison, foldsCase: folds, right: right, position: .unknown)
    }

    // MARK: Operands

    private func operand(_ kind: SyntaxOperand.Kind) -> SyntaxOperand { SyntaxOperand(kind: kind, position: .unknown) }

    private mutating func sum(depth: Int) -> SyntaxOperand {
        guard depth > 0, random.chance(20) else { return value(depth: depth) }
        let arithmetic = pick([Arithmetic.subtract, .add, .multiply, .divide])
        return operand(.arithmetic(sum(depth: depth - 1), arithmetic, sum(depth: depth - 1)))
    }

    private mutating func value(depth: Int) -> SyntaxOperand {
        switch random.below(isNarrow ? 5 : 9) {
        case 0, 1: return operand(.path(path()))
        case 2: return operand(.literal(literal()))
        case 3: return list()
        case 4: return argument(quantifier())
        case 5:
            let property = random.chance(50) ? SyntaxName(pick(TreeWriter.names)) : nil
            return operand(.aggregate(plainPath(), pick([.max, .min, .sum, .average]), property: property))
        case 6 where depth > 0:
            let variable = SyntaxName(pick(["$x", "$y", "$é", "$-1", "$K", "$a b"]))
            return operand(.subqueryCount(plainPath(), variable: variable, query(depth: depth - 1)))
        case 7: return object()
        default: return operand(.rowKey(table: Int64(random.below(9)) - 4, row: Int64(random.below(9)) - 4))
        }
    }

    private mutating func quantifier() -> Quantifier? { random.chance(40) ? pick([Quantifier.any, .all, .none]) : nil }

    private mutating func argument(_ quantifier: Quantifier?) -> SyntaxOperand {
        operand(.argument(random.below(isNarrow ? 2 : 1_000), quantifier))
    }

    private mutating func list() -> SyntaxOperand { operand(.list(some(0...4) { $0.member() }, quantifier())) }

    private mutating func member() -> SyntaxOperand {
        switch random.below(6) {
        case 0: argument(quantifier())
        case 1: object()
        case 2: operand(.rowKey(table: random.chance(50) ? nil : 3, row: Int64(random.below(9)) - 4))
        default: operand(.literal(literal()))
        }
    }

    private mutating func object() -> SyntaxOperand {
        let key: SyntaxOperand
        switch random.below(5) {
        case 0: key = argument(nil)
        case 1: key = operand(.literal(.int(random.pick([0, -1, .max, .min]))))
        case 2: key = operand(.literal(.string(pick(TreeWriter.texts))))
        case 3: key = operand(.literal(.uuid(UUIDBytes(high: random.next(), low: random.next()))))
        default: key = operand(.literal(.objectId(ObjectIdentifierBytes(high: random.next(), low: 7))))
        }
        return operand(.object(type: SyntaxName(pick(TreeWriter.texts + ["class_class_b"])), key: key))
    }

    mutating func literal() -> Literal {
        switch random.below(13) {
        case 0: return .null
        case 1: return .bool(random.chance(50))
        case 2: return .int(pick([0, 1, -1, 42, .max, .min]))
        case 3: return .real(pick(TreeWriter.reals))
        case 4: return .float(pick(TreeWriter.floats))
        case 5: return .infinity(negative: random.chance(50))
        case 6: return .nan
        case 7: return .bytes(pick([[0xFF], [0xC3], [0x80, 0x41], [0xED, 0xA0, 0x80], [0xF8]]))
        case 8: return .binary(some(0...3) { UInt8($0.random.below(256)) })
        case 9:
            let sign: Int64 = random.chance(50) ? 1 : -1
            return .timestamp(
                Timestamp(seconds: sign * Int64(random.below(5)), nanoseconds: Int32(sign) * Int32(random.below(999_999_999))))
        case 10: return .objectId(ObjectIdentifierBytes(high: isNarrow ? 1 : random.next(), low: 0))
        case 11: return .uuid(UUIDBytes(high: 0, low: isNarrow ? 1 : random.next()))
        default: return .string(pick(TreeWriter.texts))
        }
    }

    // MARK: Paths

    private mutating func plainPath() -> SyntaxPath {
        let first: PathStep.Kind = pick([
            .name(pick(TreeWriter.names)), .name(pick(TreeWriter.names)), .backlinks, .keys, .values, .argument(1),
        ])
        return SyntaxPath(steps: [PathStep(first)] + some(0...3) { $0.step() })
    }

    private mutating func path() -> SyntaxPath {
        var path = plainPath()
        path.quantifier = quantifier()
        path.suffix = random.chance(25) ? pick([.count, .type]) : nil
        return path
    }

    private mutating func step() -> PathStep {
        let name = PathStep.Kind.name(pick(TreeWriter.names))
        let key = PathStep.Kind.key(pick(TreeWriter.texts))
        return PathStep(
            pick([name, key, .index(Int64(random.below(3))), name, .first, .last, .every, .keyArgument(2), .backlinks, .keys, .values]))
    }

    // MARK: Shapes and suffixes

    private mutating func coordinate() -> GeoCoordinate {
        switch random.below(3) {
        case 0: GeoCoordinate(kind: .argument(random.below(9)), position: .unknown)
        case 1: GeoCoordinate(kind: .literal(.int(Int64(random.below(180)))), position: .unknown)
        default: fraction()
        }
    }

    private mutating func fraction() -> GeoCoordinate {
        let literal: Literal = random.chance(50) ? .real(pick(TreeWriter.reals)) : .float(pick(TreeWriter.floats))
        return GeoCoordinate(kind: .literal(literal), position: .unknown)
    }

    private mutating func point() -> GeoPoint {
        GeoPoint(
            longitude: coordinate(), latitude: coordinate(), altitude: random.chance(30) ? fraction() : nil, position: .unknown)
    }

    private mutating func shape() -> GeoShape {
        switch random.below(3) {
        case 0: .box(point(), point())
        case 1: .circle(point(), radians: coordinate())
        default: .polygon(some(1...3) { $0.some(1...4) { $0.point() } })
        }
    }

    private mutating func suffix() -> QuerySuffix {
        switch random.below(3) {
        case 0:
            return QuerySuffix(
                .sort(
                    some(1...3) { writer in
                        QuerySuffix.SortKey(path: writer.plainPath(), ascending: writer.random.chance(50))
                    }))
        case 1: return QuerySuffix(.distinct(some(1...3) { $0.plainPath() }))
        default: return QuerySuffix(.limit(pick([0, 1, 2, .max])))
        }
    }
}
