import SluiceCore
import SluiceMerge
import SluiceRealm

/// One step of an upload, performed at its turn in the orders.
enum BridgeUploadStep: Sendable {
    case ingest(BridgeIngest.Batch)
    /// A message for the session. It waits until the batches before it are durable.
    case message([UInt8])
}

/// The asymmetric objects of an upload, in batches for the ingest.
///
/// A changeset is never cut: the number of a batch is that of its last changeset, and the gateway ingests no number twice.
struct BridgeIngest {
    struct Batch: Sendable {
        var objects: [(changeset: UInt64, change: ObjectChange)] = []
        /// The last changeset in the batch.
        var number: UInt64 = 0
        fileprivate var bytes = 0
    }

    private let schema: Schema
    private(set) var batches: [Batch] = []

    init(_ schema: Schema) { self.schema = schema }

    /// Returns `true` if the instruction changes an object of an asymmetric class.
    static func concerns(_ instruction: RealmInstruction, _ schema: Schema) -> Bool {
        instruction.object.map { schema[$0.type]?.kind == .asymmetric } ?? false
    }

    /// Adds the changes of a changeset behind earlier ones.
    /// - Throws: `badChangeset` for a contradiction.
    mutating func add(_ changes: [ObjectChange], of changeset: UInt64, at time: HybridTime) throws(SluiceError) {
        let objects = try objects(changes, time)
        guard !objects.isEmpty else { return }
        let bytes = objects.reduce(0) { $0 + 64 + $1.object.key.recordBytes + $1.values.values.reduce(0) { $0 + $1.recordBytes } }
        let isFull = batches.last.map { batch in
            batch.objects.count + objects.count > Limits.ingestRulesObjects || batch.bytes + bytes > Limits.ingestBatchBytes
        }
        if isFull ?? true { batches.append(Batch()) }
        let last = batches.count - 1
        batches[last].objects += objects.map { (changeset, $0) }
        batches[last].bytes += bytes
        batches[last].number = changeset
    }

    /// Returns the objects that exist after the changeset, with whole values. Changes of objects that it does not create remain: the ingest
    /// rejects them.
    private func objects(_ changes: [ObjectChange], _ time: HybridTime) throws(SluiceError) -> [ObjectChange] {
        let created = Set(changes.filter { $0.kind == .create }.map(\.object))
        var last: [ObjectKey: ObjectChange.Kind] = [:]
        for change in changes { last[change.object] = change.kind }
        var objects: [ObjectChange] = []
        for change in changes where !(created.contains(change.object) && last[change.object] == .delete) {
            objects.append(change.kind == .create ? try whole(change, time) : change)
        }
        return objects
    }

    /// Returns the creation of an object with the result of its edits. The ingest takes values alone.
    private func whole(_ change: ObjectChange, _ time: HybridTime) throws(SluiceError) -> ObjectChange {
        guard let type = schema[change.object.type] else { return change }
        let writer = WriteContext(stamp: WriteStamp(time: time, client: .server), base: .zero, now: .zero)
        var state = ObjectState()
        _ = try Merge.apply(change, by: writer, to: &state, type: type)
        // An app with a smaller model may omit required members of embedded objects.
        state.fill(Set(change.values.keys).union(change.edits.map(\.property)), of: type, in: schema, now: .zero)
        return ObjectChange(object: change.object, kind: .create, values: state.values ?? [:])
    }
}
