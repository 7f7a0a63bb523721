import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceWire
import SwiftProtobuf

/// A client view record: for each class, the rows of a view as one point saw them, or newer.
///
/// The next bootstrap sends only the difference; see docs/decisions/0005-difference-bootstrap.md. The session knows the predicates. The
/// client keeps a `Held` message for its next session, with a hash of each predicate and, if short, its sealed text.
struct ClientViewRecord: Sendable {
    struct Part: Sendable {
        var form: Fingerprint
        var condition: Fingerprint
        /// The predicate, and the requested one before the rules narrowed it; nil if only the hash is known.
        var predicate: Predicate?
        var asked: Predicate?
    }

    var point: SnapshotPoint
    /// `true` if the record is from an earlier session. The client may lack writes since its point.
    private let isEarlier: Bool
    private var parts: [String: Part]

    /// Creates the record of a client after the bootstrap of `view`.
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

    /// Decodes a client's record; nil if it is empty or impossible.
    init?(_ message: PBHeld, user: String, _ sealer: any Sealer, _ schema: Schema) {
        guard !message.cluster.isEmpty, let transaction = SnapshotPoint.transaction(told: message.transaction) else { return nil }
        point = SnapshotPoint(cluster: message.cluster, transaction: transaction)
        isEarlier = true
        let sealed = SealedCondition(sealer: sealer, user: user, point: point)
        parts = Dictionary(
            message.types.map { part in
                let known = schema[part.name].flatMap { sealed.open(part.sealedBytes, of: $0, in: schema) }
                return (
                    part.name,
                    Part(
                        form: Fingerprint(rawValue: part.form), condition: Fingerprint(rawValue: part.condition),
                        predicate: known?.predicate, asked: known?.asked)
                )
            }, uniquingKeysWith: { first, _ in first })
    }

    /// Encodes the record for the client to keep.
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

    /// Returns `true` if the record covers exactly the classes and predicates of a view.
    func isAll(of view: View) -> Bool {
        parts.count == view.types.count
            && view.types.allSatisfy { type in
                let part = parts[type.predicate.type.name]
                return part?.form == type.form && part?.condition == Fingerprint(type.predicate.canonicalText)
            }
    }

    /// Returns the client's rows of a class that a new view still requests but the rules now hide.
    /// - Returns: nil if the rules are not the cause of the change, or if the earlier predicate is unknown.
    func lost(of type: TypeView) -> SnapshotQuery.Lost? {
        guard let asked = type.asked, let part = parts[type.predicate.type.name], let known = part.predicate, part.asked == asked,
            known != type.predicate
        else { return nil }
        // After a gap the client may lack rows written since the point, and must not receive their keys.
        return SnapshotQuery.Lost(predicate: .and(known, .and(asked, !type.predicate)), before: isEarlier ? point : nil)
    }

    /// Returns the client's known rows of a class of a new view; nil if the record does not identify them.
    func known(of type: TypeView) -> SnapshotQuery.Known? {
        guard let part = parts[type.predicate.type.name], part.form == type.form else { return nil }
        if let predicate = part.predicate { return SnapshotQuery.Known(predicate: predicate, point: point) }
        // Without the predicate's text, only an equal hash identifies the known rows.
        guard part.condition == Fingerprint(type.predicate.canonicalText) else { return nil }
        return SnapshotQuery.Known(predicate: type.predicate, point: point)
    }
}

extension View {
    /// Returns the rows of this view that the same view with other members lacks.
    func displaced(by type: TypeView) -> SnapshotQuery.Lost? {
        guard let old = self.type(type.type)?.predicate, old != type.predicate else { return nil }
        return SnapshotQuery.Lost(predicate: .and(old, !type.predicate))
    }
}
