import SluiceCore
import SluiceMerge
package import SluicePorts
import Synchronization

/// The writes to PostgreSQL.
///
/// It writes the objects of a changeset in an order that satisfies the foreign keys between the app's tables.
package struct PostgresWrites: WriteStore {
    private let rows: PostgresRowStore
    private let foreignKeys: @Sendable () -> [ForeignKey]

    /// - Parameter foreignKeys: Returns the foreign keys between the app's tables. Called in each transaction.
    package init(rows: PostgresRowStore, foreignKeys: @escaping @Sendable () -> [ForeignKey]) {
        self.rows = rows
        self.foreignKeys = foreignKeys
    }

    package func durable() async throws { try await rows.durable() }

    package func transaction(_ request: WriteRequest, _ decide: WriteDecider) async throws -> WriteOutcome {
        let written: ((decision: WriteDecision, compensation: UInt64?), lsn: LSN)
        let keys = foreignKeys()
        let attempt = Attempt()
        do {
            switch decide {
            case .atOnce(let decide):
                // The transaction may run more than once. `attempt` keeps the images of the last run for the error below.
                written = try await rows.transaction { transaction, session in
                    let basis = try Self.begin(request, transaction, session)
                    let decision = try decide(basis)
                    attempt.set(ChangesetImages(decision, basis, request, keys))
                    return try Self.write(decision, attempt.images, keys, request, transaction, session)
                }
            case .waiting(let decide):
                written = try await rows.waitingTransaction { transaction, connection in
                    let basis = try await connection.withSession { try Self.begin(request, transaction, $0) }
                    let decision = try await decide(basis)
                    attempt.set(ChangesetImages(decision, basis, request, keys))
                    return try await connection.withSession {
                        try Self.write(decision, attempt.images, keys, request, transaction, $0)
                    }
                }
            }
        } catch var refused as DatabaseRejection {
            // Objects of one changeset that reference each other are rejected together, so the committer must recognize the case.
            refused.isWithin = refused.isReference && attempt.images.links(refused.object, keys)
            throw refused
        }
        let (decision, compensation) = written.0
        return WriteOutcome(lsn: written.lsn, rejected: decision.rejected, compensation: compensation, futile: decision.futile)
    }

    private static func begin(
        _ request: WriteRequest, _ transaction: PostgresRowTransaction, _ session: PostgresSession
    ) throws -> WriteBasis {
        try transaction.open(
            session, request.origin, session: request.session, acknowledged: request.acknowledged,
            keys: request.objects.map { ($0.type.name, $0.keys) })
    }

    private static func write(
        _ decision: WriteDecision, _ images: ChangesetImages, _ keys: [ForeignKey], _ request: WriteRequest,
        _ transaction: PostgresRowTransaction, _ session: PostgresSession
    ) throws -> (decision: WriteDecision, compensation: UInt64?) {
        // The changeset has been committed before: this transaction must not write anything.
        guard !decision.isOld else { return (decision, nil) }
        let order = WriteOrder(images.written, keys)
        transaction.postpone(order.deferred)
        let told = decision.writes.filter { write in
            if case .nothing = write.change { false } else { !write.times.isEmpty }
        }
        // The write times precede the rows in the WAL, so the decoder has them when a row arrives.
        transaction.announce(told.map { (ObjectKey(type: $0.type.name, key: $0.key), $0.times.encoded) })
        for write in keys.isEmpty ? decision.writes : order.indices.map({ decision.writes[$0] }) {
            try transaction.write(write.type.name, key: write.key, write.change, clocks: write.clocks)
        }
        let rejected = decision.rejected
        let client = request.origin.client
        let compensation = rejected.isEmpty ? nil : try transaction.reject(session, client: client, rejected)
        transaction.finish(request.origin, time: request.time, base: request.base)
        return (decision, compensation)
    }
}

/// The images of the last attempt to write a changeset.
private final class Attempt: Sendable {
    private let kept = Mutex(ChangesetImages())

    var images: ChangesetImages { kept.withLock(\.self) }

    func set(_ images: ChangesetImages) { kept.withLock { $0 = images } }
}

/// The images of the objects that a changeset writes or names.
private struct ChangesetImages: Sendable {
    /// The images of the decision's writes, in their order; empty without foreign keys.
    private(set) var written: [RowImages] = []
    private var objects: [(object: ObjectKey, images: RowImages, primaryKey: Int?)] = []

    init() {}

    init(_ decision: WriteDecision, _ basis: WriteBasis, _ request: WriteRequest, _ keys: [ForeignKey]) {
        guard !keys.isEmpty else { return }
        var images: [ObjectKey: RowImages] = [:]
        for write in decision.writes {
            let object = ObjectKey(type: write.type.name, key: write.key)
            let before = basis.stored[object]?.row
            let row = RowImages(type: object.type, before: before, after: write.change.row(after: before))
            written.append(row)
            images[object] = row
        }
        for (type, keys) in request.objects {
            for key in keys {
                let object = ObjectKey(type: type.name, key: key)
                let row = basis.stored[object]?.row
                objects.append((object, images[object] ?? RowImages(type: type.name, before: row, after: row), type.primaryKey))
            }
        }
    }

    /// `true` if a foreign key leads from the object to another one of the changeset, or from another one to it.
    func links(_ object: ObjectKey, _ keys: [ForeignKey]) -> Bool {
        guard let own = objects.first(where: { $0.object == object })?.images else { return false }
        let others = objects.filter { $0.object != object }
        return keys.contains { key in
            let refers = key.child == object.type ? WriteOrder.tuple(own.after, key.childProperties) : nil
            let referred = key.parent == object.type ? WriteOrder.tuple(own.before, key.parentProperties) : nil
            return others.contains { other in
                if let refers, other.object.type == key.parent {
                    // A rejected object has no row, so its key is compared.
                    if key.parentProperties == [other.primaryKey], refers == [other.object.key] { return true }
                    if [other.images.before, other.images.after].contains(where: { WriteOrder.tuple($0, key.parentProperties) == refers }) {
                        return true
                    }
                }
                guard let referred, other.object.type == key.child else { return false }
                return WriteOrder.tuple(other.images.before, key.childProperties) == referred
            }
        }
    }
}

extension StoredWrite {
    /// Returns the row after the write; nil if there is none.
    fileprivate func row(after before: Row?) -> Row? {
        switch self {
        case .insert(let row): return row
        case .delete: return nil
        case .nothing: return before
        case .update(let values):
            var row = before
            for (index, value) in values { row?[index] = value }
            return row
        }
    }
}
