import SluiceCore

/// What remains of a subscription under a key: a condition in normal form, and its program.
///
/// Two residuals of one type are equal when their normal forms are, in whatever order and with whatever superfluous parts their queries
/// were written.
package struct Residual: Hashable, Sendable {
    package let condition: BoundPredicate
    package let program: Program
    fileprivate let digest: Digest

    package static func == (lhs: Residual, rhs: Residual) -> Bool { lhs.digest == rhs.digest && lhs.condition == rhs.condition }
    package func hash(into hasher: inout Hasher) { hasher.combine(digest) }
}

/// Keeps each residual once: equal conditions share one tree and one program.
package struct ResidualTable: Sendable {
    /// Those of one digest, which is one unless two digests collide.
    private var residuals: [Digest: [Residual]] = [:]
    /// How many different ones there are.
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
