import SluiceCore
import SluiceQuery
import SluiceWire
import SwiftProtobuf
import Synchronization

/// What a client has put aside of bootstraps that did not come to their end, so that the next goes on from there
/// (docs/decisions/0007-checkpoints.md). It tells the client in checkpoints, and is told in its next Hello.
final class BootstrapProgress: Sendable {
    /// The rows of a type in the order of their keys, as a snapshot saw them.
    private struct Part: Sendable {
        var form: Fingerprint
        var transaction: UInt64
        /// Up to this key; nil: all.
        var through: Value?
    }

    private struct State {
        var cluster = ""
        /// Proves the history that the newest part is of, and so that of the others.
        var witness: Witness?
        var parts: [String: Part] = [:]

        var message: PBCheckpoint {
            .with { checkpoint in
                guard !parts.isEmpty else { return }
                checkpoint.cluster = cluster
                checkpoint.point = witness
                checkpoint.types = parts.sorted { $0.key < $1.key }.map { name, part in
                    .with {
                        $0.name = name
                        $0.form = part.form.rawValue
                        $0.transaction = part.transaction
                        if let through = part.through { $0.through = PBValue(through) }
                    }
                }
            }
        }
    }

    private let state = Mutex(State())

    /// What a client says in its Hello and this history of the database has. It may say what it likes: it is told keys of its view
    /// instead of rows then.
    init(_ message: PBCheckpoint, _ schema: Schema) {
        var parts: [String: Part] = [:]
        for part in message.types {
            let through = part.hasThrough ? try? Value(part.through) : nil
            guard let type = schema[part.name], !part.hasThrough || through.map({ type.hasKey($0) }) == true,
                let transaction = SnapshotPoint.transaction(told: part.transaction)
            else { continue }
            parts[part.name] = Part(form: Fingerprint(rawValue: part.form), transaction: transaction, through: through)
        }
        state.withLock { $0 = State(cluster: message.cluster, witness: message.point, parts: parts) }
    }

    init() {}

    /// What there is of the types of a view, by their order in it.
    func staged(of view: View, held: HeldView?) -> [SnapshotQuery.Staged?] {
        state.withLock { state in
            view.types.map { type in
                guard let part = state.parts[type.predicate.type.name], part.form == Self.form(of: type, held) else { return nil }
                let point = SnapshotPoint(cluster: state.cluster, transaction: part.transaction)
                return SnapshotQuery.Staged(point: point, through: part.through)
            }
        }
    }

    /// A bootstrap begins. Only what it goes on from is put aside from here on.
    /// - Returns: what that is.
    func begin(_ view: View, held: HeldView?, at start: SnapshotStart) -> PBCheckpoint {
        let staged = staged(of: view, held: held)
        return state.withLock { state in
            let names = zip(view.types, staged).filter { $1?.point.isComparable(at: start) == true }.map(\.0.predicate.type.name)
            state.parts = state.parts.filter { names.contains($0.key) }
            state.cluster = start.cluster
            return state.message
        }
    }

    /// A bootstrap has come to a key of one type of its view; all types before are whole.
    /// - Returns: the checkpoint, as bytes.
    func reached(_ key: Value, of number: Int, _ view: View, held: HeldView?, at point: SnapshotPoint) -> [UInt8] {
        state.withLock { state in
            for (index, type) in view.types[...number].enumerated() {
                let through = index == number ? key : nil
                state.parts[type.predicate.type.name] = Part(
                    form: Self.form(of: type, held), transaction: point.transaction, through: through)
            }
            state.witness = point.witness
            return (try? WireProtocol.encode(state.message)) ?? []
        }
    }

    /// The client has put nothing aside any more.
    func clear() { state.withLock { $0.parts = [:] } }

    private static func form(of type: TypeView, _ held: HeldView?) -> Fingerprint {
        var form = Fingerprint(type.predicate.canonicalText)
        form.add(String(type.form.rawValue))
        if let known = held?.known(of: type) {
            form.add(known.predicate.canonicalText)
            form.add("\(known.point.cluster) \(known.point.transaction)")
        }
        return form
    }
}

extension ObjectType {
    /// Whether a value can be the key of an object, in PostgreSQL too.
    fileprivate func hasKey(_ value: Value) -> Bool {
        guard let primaryKey else { return false }
        return switch (properties[primaryKey].type, value) {
        case (.int, .int), (.objectId, .objectId), (.uuid, .uuid): true
        case (.string, .string(let text)): !text.utf8.contains(0)
        default: false
        }
    }
}
