import SluiceCore
import SluiceQuery
import SluiceWire
import SwiftProtobuf

/// What a client's file has: of each type the rows of a view as one point saw them, or newer.
///
/// The next bootstrap sends only what that lacks (docs/decisions/0005). The session knows the conditions themselves; the client
/// keeps a `Held` for its next session, in which fingerprints stand for them, and they are sealed where they are not long.
struct HeldView: Sendable {
    struct Part: Sendable {
        var form: Fingerprint
        var condition: Fingerprint
        /// Nil when only its fingerprint is known; and what was asked for when the rules made it that.
        var predicate: Predicate?
        var asked: Predicate?
    }

    var point: SnapshotPoint
    /// Whether it is of an earlier session: what has been written since the client may not have.
    private let isEarlier: Bool
    private var parts: [String: Part]

    /// What a client has after the bootstrap of a view.
    init(_ view: View, at point: SnapshotPoint) {
        self.point = point
        isEarlier = false
        parts = Dictionary(
            view.types.map { type in
                let part = Part(
                    form: type.form, condition: Fingerprint(type.predicate.canonicalText), predicate: type.predicate,
                    asked: type.asked ?? type.predicate)
                return (type.predicate.type.name, part)
            }, uniquingKeysWith: { first, _ in first })
    }

    /// What a client says that it has; nil when it says nothing, or what cannot be.
    init?(_ message: PBHeld, user: String, _ sealer: any Sealer, _ schema: Schema) {
        guard !message.cluster.isEmpty, let transaction = SnapshotPoint.transaction(told: message.transaction) else { return nil }
        point = SnapshotPoint(cluster: message.cluster, transaction: transaction)
        isEarlier = true
        let sealed = SealedCondition(sealer: sealer, user: user, point: point)
        parts = Dictionary(
            message.types.map { part in
                let known = schema[part.name].flatMap { sealed.open(part.sealedBytes, of: $0) }
                return (
                    part.name,
                    Part(
                        form: Fingerprint(rawValue: part.form), condition: Fingerprint(rawValue: part.condition),
                        predicate: known?.predicate, asked: known?.asked)
                )
            }, uniquingKeysWith: { first, _ in first })
    }

    /// What the client keeps.
    func message(user: String, _ sealer: any Sealer) -> PBHeld {
        let sealed = SealedCondition(sealer: sealer, user: user, point: point)
        return .with { held in
            held.cluster = point.cluster
            held.transaction = point.transaction
            held.point = point.witness
            held.types = parts.sorted { $0.key < $1.key }.map { name, part in
                .with {
                    $0.name = name
                    $0.form = part.form.rawValue
                    $0.condition = part.condition.rawValue
                    if let predicate = part.predicate, let asked = part.asked { $0.sealedBytes = sealed.seal(predicate, asked: asked) }
                }
            }
        }
    }

    /// Whether it is all of a view, and nothing else.
    func isAll(of view: View) -> Bool {
        parts.count == view.types.count
            && view.types.allSatisfy { type in
                let part = parts[type.predicate.type.name]
                return part?.form == type.form && part?.condition == Fingerprint(type.predicate.canonicalText)
            }
    }

    /// What the client has of a type that a new view asks for and the rules do not show any more; nil when the rules are not what
    /// changed, or nobody knows.
    func lost(of type: TypeView) -> SnapshotQuery.Lost? {
        guard let asked = type.asked, let part = parts[type.predicate.type.name], let known = part.predicate, part.asked == asked,
            known != type.predicate
        else { return nil }
        return SnapshotQuery.Lost(predicate: .and(known, .and(asked, !type.predicate)), before: isEarlier ? point : nil)
    }

    /// What the client has of a type of a new view; nil when nothing of it can be told apart.
    func known(of type: TypeView) -> SnapshotQuery.Known? {
        guard let part = parts[type.predicate.type.name], part.form == type.form else { return nil }
        if let predicate = part.predicate { return SnapshotQuery.Known(predicate: predicate, point: point) }
        guard part.condition == Fingerprint(type.predicate.canonicalText) else { return nil }
        return SnapshotQuery.Known(predicate: type.predicate, point: point)
    }
}

extension View {
    /// What a client has of it that a view with other members does not have.
    func displaced(by type: TypeView) -> SnapshotQuery.Lost? {
        guard let old = self.type(type.type)?.predicate, old != type.predicate else { return nil }
        return SnapshotQuery.Lost(predicate: .and(old, !type.predicate))
    }
}
