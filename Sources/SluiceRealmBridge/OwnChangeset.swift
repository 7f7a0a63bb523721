import SluiceCore

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
        /// `true` once its commit has named the object.
        var isEchoed = false
    }

    /// The version of the stream that the client had integrated.
    let base: UInt64
    /// The progress of the upload, for its last changeset; otherwise the version of the changeset.
    var progress: UInt64
    /// A position at or after the commit; nil before the acknowledgement.
    var acknowledged: LSN?
    var objects: [ObjectKey: Object] = [:]

    init(base: UInt64, progress: UInt64, changes: [ObjectChange]) {
        (self.base, self.progress) = (base, progress)
        for change in changes { objects[change.object, default: Object()].add(change) }
    }
}

extension OwnChangeset.Object {
    fileprivate mutating func add(_ change: ObjectChange) {
        switch change.kind {
        case .delete:
            self = Self(isDeleted: true)
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
