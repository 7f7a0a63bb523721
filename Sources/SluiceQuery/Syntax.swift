package import SluiceCore

/// A query as written, before names and types are known. Equality ignores places.
package indirect enum SyntaxQuery: Hashable, Sendable {
    case constant(Bool)
    /// Two or more, never directly nested.
    case and([SyntaxQuery])
    case or([SyntaxQuery])
    case not(SyntaxQuery)
    case compare(SyntaxComparison)
}

package struct SyntaxComparison: Hashable, Sendable {
    package var left: SyntaxOperand
    package var comparison: ComparisonOperator
    /// `[c]`
    package var foldsCase: Bool
    package var right: SyntaxOperand
    /// Where the operator stands.
    package var position: SourcePosition
}

package enum ComparisonOperator: String, Hashable, Sendable {
    case equal = "=="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case isIn = "IN"
    case beginsWith = "BEGINSWITH"
    case endsWith = "ENDSWITH"
    case contains = "CONTAINS"
    case like = "LIKE"
    case fullText = "TEXT"
    case between = "BETWEEN"
    case geoWithin = "GEOWITHIN"
}

package struct SyntaxOperand: Hashable, Sendable {
    package var kind: Kind
    package var position: SourcePosition

    package indirect enum Kind: Hashable, Sendable {
        case literal(Literal)
        case argument(Int, Quantifier?)
        case path(SyntaxPath)
        case list([SyntaxOperand], Quantifier?)
        case aggregate(SyntaxPath, Aggregate, property: String?)
        case arithmetic(SyntaxOperand, Arithmetic, SyntaxOperand)
        case subqueryCount(SyntaxPath, variable: String, SyntaxQuery)
        /// `obj("Class", key)`; the key is a literal or an argument.
        case object(type: String, key: SyntaxOperand)
        case shape(GeoShape)
    }
}

package enum Quantifier: String, Hashable, Sendable { case any = "ANY", all = "ALL", none = "NONE" }

package enum Aggregate: String, Hashable, Sendable { case max = "@max", min = "@min", sum = "@sum", average = "@avg" }

package enum Arithmetic: String, Hashable, Sendable { case add = "+", subtract = "-", multiply = "*", divide = "/" }

/// A constant as written. Numbers keep their digits until the type they are compared with is known.
package enum Literal: Hashable, Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    /// A number with a fraction or an exponent, or a whole number beyond 64 bits: its text without a leading plus.
    case real(String)
    /// The text of a number with the suffix `f`, without the suffix.
    case float(String)
    case infinity(negative: Bool)
    case nan
    case string(String)
    /// `B64"…"` whose bytes are not UTF-8 (otherwise it is a string).
    case bytes([UInt8])
    /// `binary(…)`
    case binary([UInt8])
    case timestamp(Timestamp)
    case objectId(ObjectIdentifierBytes)
    case uuid(UUIDBytes)
}

package struct SyntaxPath: Hashable, Sendable {
    package var quantifier: Quantifier?
    package var steps: [PathStep]
    package var suffix: PathSuffix?
    package var position: SourcePosition
}

package enum PathStep: Hashable, Sendable {
    case name(String)
    case argument(Int)
    case index(Int64)
    case first, last, every
    case key(String)
    case keyArgument(Int)
    case backlinks
    case keys, values
}

package enum PathSuffix: String, Hashable, Sendable { case count = "@count", type = "@type" }

package enum GeoShape: Hashable, Sendable {
    case box(GeoPoint, GeoPoint)
    case circle(GeoPoint, radians: GeoCoordinate)
    case polygon([[GeoPoint]])
}

package struct GeoPoint: Hashable, Sendable {
    package var longitude: GeoCoordinate
    package var latitude: GeoCoordinate
    package var altitude: GeoCoordinate?
}

package enum GeoCoordinate: Hashable, Sendable {
    case literal(Literal)
    case argument(Int)
}

/// What may follow a query; applied in order.
package enum QuerySuffix: Hashable, Sendable {
    case sort([SortKey])
    case distinct([SyntaxPath])
    case limit(Int64)

    package struct SortKey: Hashable, Sendable {
        package var path: SyntaxPath
        package var ascending: Bool
    }

    package var keyword: String {
        switch self {
        case .sort: "SORT"
        case .distinct: "DISTINCT"
        case .limit: "LIMIT"
        }
    }
}

/// A whole parsed text.
package struct SyntaxTree: Hashable, Sendable {
    package var root: SyntaxQuery
    package var suffixes: [QuerySuffix]
}
