import SluiceCore
import SluiceMerge
import SluicePorts
import SluiceQuery
import SluiceWire

/// The objects with client writes that the gateway does not have yet, as named in Subscribe.
///
/// A bootstrap carries the write times of their rows. For other rows they are unnecessary, because the client shows those unmerged.
struct PendingObjects: Sendable {
    private var keys: [String: Set<Value>] = [:]

    init() {}

    /// - Throws: `limitsExceeded` for more than `Limits.pendingObjects`, `badSyntax` for an unreadable key.
    init(_ set: PBSubscribe) throws(SluiceError) {
        let count = set.pending.reduce(0) { $0 + $1.keys.count }
        guard count <= Limits.pendingObjects else {
            throw SluiceError(
                .limitsExceeded, "Subscribe names \(count) pending objects, the limit is \(Limits.pendingObjects).",
                fix: "Name fewer; the others show what the server has once their writes are acknowledged.")
        }
        for objects in set.pending {
            for key in objects.keys { keys[objects.type, default: []].insert(try Value(key)) }
        }
    }

    func contains(_ key: Value, of type: String) -> Bool { keys[type]?.contains(key) == true }

    /// Returns the keys of a class; empty if none are pending.
    subscript(_ type: String) -> [Value] { keys[type].map { Array($0) } ?? [] }
}

extension TypeView {
    /// Returns the write times of a row of the view that the session may read.
    /// - Parameter times: The encoded times; empty if none.
    func visible(_ times: [UInt8], _ type: ObjectType) -> [UInt8] {
        guard let mask, !times.isEmpty else { return times }
        // Fail closed: unreadable times might name hidden fields.
        guard let read = try? WriteTimes(encoded: times) else { return [] }
        let visible = read.visible { id in type.index(ofID: id).map { mask[$0] } ?? false }
        return visible.isEmpty ? [] : visible.encoded
    }

    /// Returns the write times of a stored object.
    /// - Returns: nil if the session may not read the object, or if `snapshot` does not see its current version.
    func times(of object: StoredObject, _ type: ObjectType, seenBy snapshot: TransactionSnapshot) -> [UInt8]? {
        guard let row = object.row, let writer = object.writer, snapshot.sees(xid: writer),
            object.clocksWriter.map({ snapshot.sees(xid: $0) }) ?? true
        else { return nil }
        var buffer = RowBuffer()
        let place = buffer.append(row)
        guard buffer.withView(place, { predicate.matches($0) }) else { return nil }
        let state = ObjectState(row: row.named(type), clocks: object.clocks, type: type, rowTime: object.rowTime)
        return visible(WriteTimes(state.clocks).encoded, type)
    }
}

extension StagedChanges.Change {
    /// The size of the row and its write times, in bytes.
    var byteCount: Int { (row?.count ?? 0) + times.count }

    /// Merges this change with an earlier one of the same object: the new row with the write times of both.
    func following(_ earlier: StagedChanges.Change) -> StagedChanges.Change {
        guard row != nil, !earlier.times.isEmpty else { return self }
        var joined = self
        if times.isEmpty {
            joined.times = earlier.times
        } else if let before = try? WriteTimes(encoded: earlier.times), let after = try? WriteTimes(encoded: times) {
            joined.times = before.followed(by: after).encoded
        }
        return joined
    }
}
