import SluiceCore
import SluiceRealm
import SluiceValues

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
        /// The properties with edits whose values PostgreSQL may store in another form.
        var converted: Set<String> = []
        /// `true` if the changeset erases the object, perhaps before it creates it again.
        var isErased = false
        /// `true` once its commit has named the object.
        var isEchoed = false
    }

    /// The number of the changeset.
    let number: UInt64
    /// The time of the changeset, and the version of the stream that the client had integrated.
    let writer: RealmWriter
    /// The progress of the upload, for its last changeset; otherwise the version of the changeset.
    var progress: UInt64
    /// The operations of the client up to this changeset, since the one before it; nil for the last of the upload.
    var operations: [OutgoingOperation]?
    var objects: [ObjectKey: Object] = [:]

    init(
        _ number: UInt64, _ writer: RealmWriter, progress: UInt64, operations: [OutgoingOperation]?, changes: [ObjectChange],
        _ schema: Schema
    ) {
        (self.number, self.writer, self.progress, self.operations) = (number, writer, progress, operations)
        for change in changes { objects[change.object, default: Object()].add(change, schema[change.object.type]) }
    }
}

extension OwnChangeset.Object {
    fileprivate mutating func add(_ change: ObjectChange, _ type: ObjectType?) {
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
        for edit in change.edits where !edit.isStoredAsWritten(in: type?[edit.property]) { converted.insert(edit.property) }
    }
}

extension Edit {
    fileprivate func isStoredAsWritten(in property: Property?) -> Bool {
        let mayBeMixed =
            switch property?.type {
            case .mixed, .embedded, nil: true
            default: false
            }
        return switch action {
        case .set(let value, _), .insert(let value, _, _), .setInsert(let value): value.isStoredAsWritten(mayBeMixed)
        case .add, .become, .remove, .clear, .move, .setErase: true
        }
    }
}

extension Value {
    /// `false` if PostgreSQL may return another value after a write. It cuts times to microseconds, stores decimals without exponents, and
    /// knows one zero and one NaN. In a mixed value, a float becomes a double.
    fileprivate func isStoredAsWritten(_ mayBeMixed: Bool) -> Bool {
        switch self {
        case .null, .bool, .int, .string, .binary, .objectId, .uuid, .link: true
        case .timestamp(let time): time.nanoseconds % 1_000 == 0
        case .double(let number): number.isStoredAsWritten
        case .float(let number): !mayBeMixed && number.isStoredAsWritten
        case .decimal(let number):
            number.isFinite && number.parts.exponent <= 0 && !(number.isNegative && number.parts.coefficient == 0)
        case .list(let elements): elements.allSatisfy { $0.isStoredAsWritten(mayBeMixed) }
        case .dictionary(let entries): entries.values.allSatisfy { $0.isStoredAsWritten(mayBeMixed) }
        }
    }
}

extension FloatingPoint {
    fileprivate var isStoredAsWritten: Bool { !isNaN && !(self == 0 && sign == .minus) }
}
