import SluiceCore

/// The remaining condition of a subscription under a key, in normal form, and its program.
///
/// Two residuals of one class are equal if their normal forms are. The order and the superfluous parts of the queries do not matter.
package struct Residual: Hashable, Sendable {
    package let condition: BoundPredicate
    package let program: Program
    fileprivate let digest: Digest

    package static func == (lhs: Residual, rhs: Residual) -> Bool { lhs.digest == rhs.digest && lhs.condition == rhs.condition }
    package func hash(into hasher: inout Hasher) { hasher.combine(digest) }
}

/// Stores each residual once: equal conditions share one tree and one program.
package struct ResidualTable: Sendable {
    /// The residuals by digest. A digest has one, unless digests collide.
    private var residuals: [Digest: [Residual]] = [:]
    /// The number of distinct residuals.
    package private(set) var count = 0

    package init() {}

    mutating func intern(_ normal: NormalForm, of type: ObjectType) -> Residual {
        let digest = normal.digest.seeded(type.name)
        if let known = residuals[digest]?.first(where: { $0.condition == normal.condition }) { return known }
        let residual = Residual(condition: normal.condition, program: normal.condition.compile(for: type), digest: digest)
        residuals[digest, default: []].append(residual)
        count += 1
        return residual
    }
}
