import SluiceCore
import SluiceRealm

/// A changeset of the file on its way through the pipeline, until the stream has passed its commit.
struct OwnChangeset: Hashable {
    /// The changes of one object.
    struct Object: Hashable {
        /// `true` if the changeset creates the object.
        var isCreated = false
        /// `true` if the object does not exist after the changeset.
        var isDeleted = false
        /// The properties that the changeset writes.
        var written: Set<String> = []
        /// The values that it sets as a whole. Additions and edits have none.
        var values: [String: Value] = [:]
        /// `true` if the changeset erases the object, perhaps before it creates it again.
        var isErased = false
        /// `true` once its commit has named the object.
        var isEchoed = false
    }

    /// The time of the changeset, and the version of the stream that the client had integrated.
    let writer: RealmWriter
    /// The progress of the upload, for its last changeset; otherwise the version of the changeset.
    var progress: UInt64
    /// The operations of the client up to this changeset, since the one before it; nil for the last of the upload.
    var operations: [OutgoingOperation]?
    var objects: [ObjectKey: Object] = [:]

    init(_ writer: RealmWriter, progress: UInt64, operations: [OutgoingOperation]?, changes: [ObjectChange]) {
        (self.writer, self.progress, self.operations) = (writer, progress, operations)
        for change in changes { objects[change.object, default: Object()].add(change) }
    }
}

extension OwnChangeset.Object {
    fileprivate mutating func add(_ change: ObjectChange) {
        switch change.kind {
        case .delete:
            self = Self(isDeleted: true, isErased: true)
            return
        case .create: (isCreated, isDeleted) = (true, false)
        case .set: break
        }
        for (name, value) in change.values { values[name] = value }
        written.formUnion(change.values.keys)
        for name in Array(change.counters.keys) + change.edits.map(\.property) {
            written.insert(name)
            values[name] = nil
        }
    }
}
