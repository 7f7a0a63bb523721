package import SluiceValues

/// A query as written, before names and types are resolved. Equality ignores positions.
package struct SyntaxQuery: Hashable, Sendable {
    package var kind: Kind
    /// The position of the first token. A negation begins at its operator, AND and OR at their first part.
    package var position: SourcePosition

    package init(_ kind: Kind, at position: SourcePosition = .unknown) {
        self.kind = kind
        self.position = position
    }

    package indirect enum Kind: Hashable, Sendable {
        case constant(Bool)
        /// Two or more parts, never of the same kind.
        case and([SyntaxQuery])
        case or([SyntaxQuery])
        case not(SyntaxQuery)
        case compare(SyntaxComparison)
    }
}

extension SyntaxQuery {
    /// Returns the query with every comparison replaced.
    package func mapComparisons(_ transform: (SyntaxComparison) -> SyntaxComparison) -> SyntaxQuery {
        var result = self
        switch kind {
        case .constant: break
        case .and(let parts): result.kind = .and(parts.map { $0.mapComparisons(transform) })
        case .or(let parts): result.kind = .or(parts.map { $0.mapComparisons(transform) })
        case .not(let inner): result.kind = .not(inner.mapComparisons(transform))
        case .compare(let comparison): result.kind = .compare(transform(comparison))
        }
        return result
    }
}

package struct SyntaxComparison: Hashable, Sendable {
    package var left: SyntaxOperand
    package var comparison: ComparisonOperator
    /// `true` for `[c]`.
    package var foldsCase: Bool
    package var right: SyntaxOperand
    /// The position of the operator.
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
    /// The position of the first token.
    package var position: SourcePosition

    package enum Kind: Hashable, Sendable {
        case literal(Literal)
        case argument(Int, Quantifier?)
        case path(SyntaxPath)
        /// Members are literals, arguments, objects and row keys.
        case list([SyntaxOperand], Quantifier?)
        /// The path's `suffixPosition` is the position of the aggregate's word.
        indirect case aggregate(SyntaxPath, Aggregate, property: SyntaxName?)
        indirect case arithmetic(SyntaxOperand, Arithmetic, SyntaxOperand)
        indirect case subqueryCount(SyntaxPath, variable: SyntaxName, SyntaxQuery)
        /// `obj("Class", key)`. The key is a literal or an argument.
        indirect case object(type: SyntaxName, key: SyntaxOperand)
        indirect case shape(GeoShape)
        /// `L1:2` and, in a list, `O2`: row numbers in a Realm file, which are meaningless elsewhere.
        case rowKey(table: Int64?, row: Int64)
    }
}

/// A name with its position. Names are equal if their bytes are: the language never normalises Unicode.
package struct SyntaxName: Hashable, Sendable {
    package var text: String
    package var position: SourcePosition

    package init(_ text: String, at position: SourcePosition = .unknown) {
        self.text = text
        self.position = position
    }

    package static func == (lhs: SyntaxName, rhs: SyntaxName) -> Bool { lhs.text.hasSameBytes(as: rhs.text) }
    package func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}

package enum Quantifier: String, Hashable, Sendable { case any = "ANY", all = "ALL", none = "NONE" }

package enum Aggregate: String, Hashable, Sendable { case max = "@max", min = "@min", sum = "@sum", average = "@avg" }

package enum Arithmetic: String, Hashable, Sendable { case add = "+", subtract = "-", multiply = "*", divide = "/" }

/// A constant as written. Numbers keep their digits until the type that they compare with is known.
package enum Literal: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    /// A number with a fraction or an exponent, or an integer beyond 64 bits: its text without a leading plus.
    case real(String)
    /// The text of a number with the suffix `f`, without the suffix.
    case float(String)
    case infinity(negative: Bool)
    case nan
    case string(String)
    /// `B64"…"` with bytes that are not UTF-8. Otherwise it is a string.
    case bytes([UInt8])
    /// The bytes of `binary(…)`.
    case binary([UInt8])
    case timestamp(Timestamp)
    case objectId(ObjectIdentifierBytes)
    case uuid(UUIDBytes)
}

package struct SyntaxPath: Hashable, Sendable {
    package var quantifier: Quantifier?
    /// One step or more.
    package var steps: [PathStep]
    package var suffix: PathSuffix?
    /// The position of the first token, which is the quantifier if there is one.
    package var position: SourcePosition
    /// The position of the suffix, or of the path's aggregate.
    package var suffixPosition: SourcePosition

    package init(
        quantifier: Quantifier? = nil, steps: [PathStep], suffix: PathSuffix? = nil, position: SourcePosition = .unknown,
        suffixPosition: SourcePosition = .unknown
    ) {
        self.quantifier = quantifier
        self.steps = steps
        self.suffix = suffix
        self.position = position
        self.suffixPosition = suffixPosition
    }
}

package struct PathStep: Hashable, Sendable {
    package var kind: Kind
    package var position: SourcePosition

    package init(_ kind: Kind, at position: SourcePosition = .unknown) {
        self.kind = kind
        self.position = position
    }

    package enum Kind: Sendable {
        case name(String)
        /// `$K0`, the only step of its path.
        case argument(Int)
        case index(Int64)
        case first, last, every
        case key(String)
        case keyArgument(Int)
        case backlinks
        case keys, values
    }
}

package enum PathSuffix: String, Hashable, Sendable { case count = "@count", type = "@type" }

package enum GeoShape: Hashable, Sendable {
    case box(GeoPoint, GeoPoint)
    case circle(GeoPoint, radians: GeoCoordinate)
    /// The outer loop, then holes. Each loop is as written, with its last point.
    case polygon([[GeoPoint]])
}

package struct GeoPoint: Hashable, Sendable {
    package var longitude: GeoCoordinate
    package var latitude: GeoCoordinate
    package var altitude: GeoCoordinate?
    package var position: SourcePosition
}

package struct GeoCoordinate: Hashable, Sendable {
    package var kind: Kind
    package var position: SourcePosition

    package enum Kind: Hashable, Sendable {
        /// `.int`, `.real` or `.float`.
        case literal(Literal)
        case argument(Int)
    }
}

/// A suffix of a query. Suffixes apply in order.
package struct QuerySuffix: Hashable, Sendable {
    package var kind: Kind
    package var position: SourcePosition

    package init(_ kind: Kind, at position: SourcePosition = .unknown) {
        self.kind = kind
        self.position = position
    }

    package enum Kind: Hashable, Sendable {
        case sort([SortKey])
        case distinct([SyntaxPath])
        case limit(Int64)
    }

    package struct SortKey: Hashable, Sendable {
        package var path: SyntaxPath
        package var ascending: Bool
    }

    package var keyword: String {
        switch kind {
        case .sort: "SORT"
        case .distinct: "DISTINCT"
        case .limit: "LIMIT"
        }
    }
}

/// The tree of a whole text.
package struct SyntaxTree: Hashable, Sendable {
    package var root: SyntaxQuery
    package var suffixes: [QuerySuffix]
}
