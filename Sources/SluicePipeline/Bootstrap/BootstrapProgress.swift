import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceWire
import SwiftProtobuf
import Synchronization

/// The rows that a client has staged from unfinished bootstraps, so that the next bootstrap continues from them.
/// The gateway sends checkpoints; the client returns the last one in its next Hello. See docs/decisions/0007-checkpoints.md.
final class BootstrapProgress: Sendable {
    /// The rows of a class in key order, as one snapshot saw them.
    private struct Part: Sendable {
        var form: Fingerprint
        var transaction: UInt64
        /// The last staged key; nil if all rows are staged.
        var through: Value?
    }

    private struct State {
        var cluster = ""
        /// A transaction that proves the history of the newest part, and so of the older parts.
        var witness: HistoryAnchor?
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

    /// Decodes a client's Hello, for a history that this database contains.
    /// A client that invents parts harms only itself: it receives keys of its view in place of rows.
    init(_ message: PBCheckpoint, _ schema: Schema) {
        var parts: [String: Part] = [:]
        for part in message.types {
            let through = part.hasThrough ? try? Value(part.through) : nil
            // An unreadable or impossible part is dropped: its class then bootstraps from the start.
            guard let type = schema[part.name], !part.hasThrough || through.map({ type.hasKey($0) }) == true,
                let transaction = SnapshotPoint.transaction(told: part.transaction)
            else { continue }
            parts[part.name] = Part(form: Fingerprint(rawValue: part.form), transaction: transaction, through: through)
        }
        state.withLock { $0 = State(cluster: message.cluster, witness: message.point, parts: parts) }
    }

    init() {}

    /// Returns the staged rows of each class of a view, in the view's order.
    func staged(of view: View, held: ClientViewRecord?) -> [SnapshotQuery.Staged?] {
        state.withLock { state in
            view.types.map { type in
                // Rows staged for another query, mask or known view do not belong to this bootstrap.
                guard let part = state.parts[type.predicate.type.name], part.form == Self.form(of: type, held) else { return nil }
                let point = SnapshotPoint(cluster: state.cluster, transaction: part.transaction)
                return SnapshotQuery.Staged(point: point, through: part.through)
            }
        }
    }

    /// Records that a bootstrap begins. Afterwards only the rows that it continues from are staged.
    /// - Returns: the checkpoint of those rows.
    func begin(_ view: View, held: ClientViewRecord?, at start: SnapshotStart) -> PBCheckpoint {
        let staged = staged(of: view, held: held)
        return state.withLock { state in
            // Rows staged too long ago, or in another cluster, cannot be compared with this snapshot.
            let names = zip(view.types, staged).filter { $1?.point.isComparable(at: start) == true }.map(\.0.predicate.type.name)
            state.parts = state.parts.filter { names.contains($0.key) }
            state.cluster = start.cluster
            return state.message
        }
    }

    /// Records that a bootstrap has reached a key of one class of its view. All earlier classes are complete.
    /// - Returns: the encoded checkpoint; empty if it cannot be encoded.
    func reached(_ key: Value, of number: Int, _ view: View, held: ClientViewRecord?, at point: SnapshotPoint) -> [UInt8] {
        state.withLock { state in
            // Classes are read in order, so every class before this one is complete.
            for (index, type) in view.types[...number].enumerated() {
                let through = index == number ? key : nil
                state.parts[type.predicate.type.name] = Part(
                    form: Self.form(of: type, held), transaction: point.transaction, through: through)
            }
            state.witness = point.witness
            return (try? WireProtocol.encode(state.message)) ?? []
        }
    }

    /// Drops everything: the client has no staged rows any more.
    func clear() { state.withLock { $0.parts = [:] } }

    /// Hashes the query, its form and the known rows. Staged rows are valid only for an equal hash.
    private static func form(of type: TypeView, _ held: ClientViewRecord?) -> Fingerprint {
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
    /// Returns `true` if a value can be the key of an object, also in PostgreSQL.
    fileprivate func hasKey(_ value: Value) -> Bool {
        guard let primaryKey else { return false }
        return switch (properties[primaryKey].type, value) {
        case (.int, .int), (.objectId, .objectId), (.uuid, .uuid): true
        case (.string, .string(let text)): !text.utf8.contains(0)
        default: false
        }
    }
}
