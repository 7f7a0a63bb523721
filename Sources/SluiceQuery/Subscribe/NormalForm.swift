import SluiceCore

/// A condition in normal form. Negations are at the leaves, and nested parts of one kind are one list. Equal parts occur once, equalities
/// of one property are one IN, and parts have a fixed order.
///
/// Its digest is computed from the digests of its parts. Creating, sorting and comparing normal forms thus costs about the size of the
/// condition at any depth.
struct NormalForm: Sendable {
    let condition: BoundPredicate
    let digest: Digest
    /// The sort key of parts: by cost, then by property.
    private let rank: UInt64
    /// The cost of a copy: about a unit for each comparison and for each 8 bytes of constants.
    let weight: Int
    /// The parts of an AND or OR.
    let parts: [NormalForm]

    init(_ condition: BoundPredicate) { self = NormalForm.make(condition, isNegated: false) }

    private init(leaf condition: BoundPredicate) {
        self.condition = condition
        (digest, weight) = Digest.of(leaf: condition)
        rank = NormalForm.rank(condition)
        parts = []
    }

    private init(_ parts: [NormalForm], isAnd: Bool) {
        condition = isAnd ? .and(parts.map(\.condition)) : .or(parts.map(\.condition))
        digest = Digest(parts: parts.map(\.digest), isAnd: isAnd)
        rank = NormalForm.rank(condition)
        weight = parts.reduce(0) { $0 + $1.weight }
        self.parts = parts
    }

    var constant: Bool? { if case .constant(let value) = condition { value } else { nil } }
    var isAnd: Bool { if case .and = condition { true } else { false } }
    var isOr: Bool { if case .or = condition { true } else { false } }

    // MARK: Making

    private static func make(_ condition: BoundPredicate, isNegated: Bool) -> NormalForm {
        switch condition {
        case .constant(let value): return NormalForm(leaf: .constant(value != isNegated))
        case .not(let inner): return make(inner, isNegated: !isNegated)
        case .test, .properties, .within: return NormalForm(leaf: isNegated ? complement(condition) : condition)
        case .and, .or:
            // De Morgan: a negated AND is an OR of negated parts, and the reverse.
            var isAnd = isNegated
            if case .and = condition { isAnd = !isNegated }
            var parts: [NormalForm] = []
            gather(condition, isNegated, isAnd, &parts)
            return join(parts, isAnd: isAnd)
        }
    }

    /// Collects the parts of nested conditions of one kind.
    private static func gather(_ condition: BoundPredicate, _ isNegated: Bool, _ isAnd: Bool, _ parts: inout [NormalForm]) {
        switch condition {
        case .not(let inner): gather(inner, !isNegated, isAnd, &parts)
        case .and(let inner) where isAnd != isNegated: for part in inner { gather(part, isNegated, isAnd, &parts) }
        case .or(let inner) where isAnd == isNegated: for part in inner { gather(part, isNegated, isAnd, &parts) }
        case .and, .or, .constant, .test, .properties, .within: parts.append(make(condition, isNegated: isNegated))
        }
    }

    /// Returns the complement of a leaf. `==` and `!=` are complements, also for null and NaN. Opposite orders are not, as null has no
    /// order.
    private static func complement(_ leaf: BoundPredicate) -> BoundPredicate {
        guard case .test(let subject, var test) = leaf else { return .not(leaf) }
        if case .elements = subject { return .not(leaf) }
        switch test.comparison {
        case .equal: test.comparison = .notEqual
        case .notEqual: test.comparison = .equal
        default: return .not(leaf)
        }
        return .test(subject, test)
    }

    /// Returns the conjunction or disjunction of normal forms.
    static func join(_ parts: [NormalForm], isAnd: Bool) -> NormalForm {
        var flat: [NormalForm] = []
        for part in parts {
            if let constant = part.constant {
                if constant != isAnd { return part }
            } else if isAnd ? part.isAnd : part.isOr {
                flat += part.parts
            } else {
                flat.append(part)
            }
        }
        flat = merged(flat, isAnd: isAnd)
        // Ties in rank are in the order of digests, which is equal in every process.
        flat.sort { ($0.rank, $0.digest) < ($1.rank, $1.digest) }
        var distinct: [NormalForm] = []
        for part in flat where distinct.last.map({ $0 != part }) ?? true { distinct.append(part) }
        if distinct.isEmpty { return NormalForm(leaf: .constant(isAnd)) }
        return distinct.count == 1 ? distinct[0] : NormalForm(distinct, isAnd: isAnd)
    }

    // MARK: Equalities

    private struct Family: Hashable {
        var property: Int
        var foldsCase: Bool
    }

    /// Merges the equalities of a property in an OR into one IN, and its inequalities in an AND into one negated IN.
    private static func merged(_ parts: [NormalForm], isAnd: Bool) -> [NormalForm] {
        var others: [NormalForm] = []
        var families: [Family: [NormalForm]] = [:]
        for part in parts {
            if let family = members(part, isAnd)?.family { families[family, default: []].append(part) } else { others.append(part) }
        }
        for (family, parts) in families {
            guard parts.count > 1 else {
                others += parts
                continue
            }
            let values = Set(parts.flatMap { members($0, isAnd)?.values ?? [] }).sorted { $0.precedes($1) }
            let subject = Subject.property(family.property)
            if values.count == 1 {
                others.append(NormalForm(leaf: .test(subject, Test(isAnd ? .notEqual : .equal, values[0], foldsCase: family.foldsCase))))
            } else {
                let test = BoundPredicate.test(subject, Test(.isIn, .list(values), foldsCase: family.foldsCase))
                others.append(NormalForm(leaf: isAnd ? .not(test) : test))
            }
        }
        return others
    }

    /// Returns the constants of an equality of a scalar property, or in an AND of an inequality.
    private static func members(_ part: NormalForm, _ isAnd: Bool) -> (family: Family, values: [Value])? {
        var condition = part.condition
        var wanted = isAnd ? TestOperator.notEqual : .equal
        if isAnd, case .not(let inner) = condition { (condition, wanted) = (inner, .isIn) }
        guard case .test(.property(let property), let test) = condition else { return nil }
        let family = Family(property: property, foldsCase: test.foldsCase)
        switch (test.comparison, test.value) {
        case (wanted, let value) where wanted != .isIn: return (family, [value])
        case (.isIn, .list(let values)) where !isAnd || wanted == .isIn: return (family, values)
        default: return nil
        }
    }

    // MARK: Order

    private static func rank(_ condition: BoundPredicate) -> UInt64 {
        func rank(_ cost: UInt64, _ property: Int, _ comparison: TestOperator) -> UInt64 {
            cost << 56 | UInt64(UInt32(truncatingIfNeeded: property)) << 8 | UInt64(comparison.rawValue)
        }
        switch condition {
        case .test(.property(let index), let test): return rank(test.comparison.isText ? 2 : 0, index, test.comparison)
        case .test(.count(let index), let test): return rank(1, index, test.comparison)
        case .test(.elements(let index, _), let test): return rank(3, index, test.comparison)
        case .properties(let left, let comparison, _, _): return rank(4, left, comparison)
        case .within(let property, _): return rank(5, property, .isIn)
        case .not(let inner): return NormalForm.rank(inner) + (16 << 56)
        case .or: return 64 << 56
        case .and: return 65 << 56
        case .constant: return 0
        }
    }
}

extension NormalForm: Hashable {
    static func == (lhs: NormalForm, rhs: NormalForm) -> Bool { lhs.digest == rhs.digest && lhs.condition == rhs.condition }
    func hash(into hasher: inout Hasher) { hasher.combine(digest) }
}
