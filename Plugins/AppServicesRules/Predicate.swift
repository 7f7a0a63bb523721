import SluicePluginKit

/// A query under construction.
indirect enum Predicate: Hashable {
    case constant(Bool)
    /// A comparison with a missing value. It permits nothing, also if it is negated.
    case unknown
    /// One comparison in the query language.
    case text(ByteText)
    case all([Predicate])
    case any([Predicate])
    case not(Predicate)

    /// The whole predicate in the query language.
    var queryText: String {
        settled(isNegated: false).rendered
    }

    /// `true` if the predicate permits no object.
    var isNever: Bool { settled(isNegated: false) == .constant(false) }

    /// Replaces unknown parts by the constant that denies at their place, and folds constants.
    private func settled(isNegated: Bool) -> Predicate {
        switch self {
        case .constant, .text: return self
        case .unknown: return .constant(isNegated)
        case .not(let part):
            switch part.settled(isNegated: !isNegated) {
            case .constant(let value): return .constant(!value)
            case .not(let inner): return inner
            case let inner: return .not(inner)
            }
        case .all(let parts):
            let parts = Self.distinct(parts.map { $0.settled(isNegated: isNegated) }.filter { $0 != .constant(true) })
            if parts.contains(.constant(false)) { return .constant(false) }
            return parts.isEmpty ? .constant(true) : parts.count == 1 ? parts[0] : .all(parts)
        case .any(let parts):
            let parts = Self.distinct(parts.map { $0.settled(isNegated: isNegated) }.filter { $0 != .constant(false) })
            if parts.contains(.constant(true)) { return .constant(true) }
            return parts.isEmpty ? .constant(false) : parts.count == 1 ? parts[0] : .any(parts)
        }
    }

    /// Removes duplicates. The read filter and the write filter are often equal.
    private static func distinct(_ parts: [Predicate]) -> [Predicate] {
        var seen: Set<Predicate> = []
        return parts.filter { seen.insert($0).inserted }
    }

    private var rendered: String {
        switch self {
        case .constant(let value): value ? "TRUEPREDICATE" : "FALSEPREDICATE"
        case .unknown: "FALSEPREDICATE"
        case .text(let text): text.text
        case .all(let parts): parts.map(\.grouped).joined(separator: " AND ")
        case .any(let parts): parts.map(\.grouped).joined(separator: " OR ")
        case .not(let part): "NOT (\(part.rendered))"
        }
    }

    private var grouped: String {
        switch self {
        case .all, .any: "(\(rendered))"
        default: rendered
        }
    }
}
