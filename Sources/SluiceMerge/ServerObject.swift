package import SluiceCore

/// The server's state of an object with pending writes, as far as a device knows it.
package struct ServerObject: Hashable, Sendable {
    /// The values by property name. `nil` if the row is not on the device.
    package private(set) var row: [String: Value]?
    /// The clocks of the row. `nil` until an update arrives after the device's write. A write is later than all that its device had seen,
    /// so it needs none until then.
    package private(set) var clocks: ObjectClocks?
    /// The time of the row's last commit, in milliseconds since 1970.
    package private(set) var rowTime: Int64

    package init(row: [String: Value]?, clocks: ObjectClocks? = nil, rowTime: Int64 = 0) {
        self.row = row
        self.clocks = clocks
        self.rowTime = rowTime
    }

    /// Replaces the row by a newer one.
    ///
    /// If a property differs and has no write time, SQL wrote it at `rowTime` at the latest. `ObjectState` detects that by the hash.
    /// Without `rowTime`, it counts as older than the pending writes.
    /// - Parameters:
    ///   - new: The new row. `nil` if the object has left the device.
    ///   - times: The write times of the new row. `nil` for SQL.
    ///   - rowTime: The commit time, in milliseconds since 1970. `nil` if unknown.
    package mutating func replace(with new: [String: Value]?, times: WriteTimes?, rowTime: Int64?, type: ObjectType) {
        guard let new else {
            // The object may have left the view alive and come back, so its last deletion is kept.
            let deletion = times?.deletion ?? clocks?.deletion
            clocks = deletion.map { ObjectClocks(deletion: $0, isDeleted: times?.isDeleted ?? false) }
            row = nil
            return
        }
        // A row that comes into the view may be old: it is not known when its values were written.
        var known = ObjectClocks(deletion: clocks?.deletion)
        if let row { known = clocks ?? ObjectClocks(seen: row, type) }
        // The object was deleted and created again, which the device may not have seen.
        if let deletion = times?.deletion { known.deletion = deletion }
        for (index, property) in type.properties.enumerated() where index != type.primaryKey {
            let value = new[property.name] ?? .null
            if var clock = times?.properties[property.id] {
                clock.valueHash = ValueHash(value)
                known.properties[property.id] = clock
            } else if row == nil || rowTime == nil && row?[property.name] ?? .null != value {
                known.properties[property.id] = PropertyClock(seen: value)
            }
        }
        row = new
        clocks = known
        self.rowTime = max(rowTime ?? 0, self.rowTime)
    }

    /// The state as merging sees it.
    package func state(_ type: ObjectType) -> ObjectState {
        if let clocks { return ObjectState(row: row, clocks: clocks, type: type, rowTime: rowTime) }
        var state = ObjectState(values: row, clocks: ObjectClocks())
        if let index = type.primaryKey { state.values?[type.properties[index].name] = nil }
        let known = PropertyClock(stamp: .zero)
        for property in type.properties {
            if let value = state.values?[property.name], !value.isNull { state.clocks.properties[property.id] = known }
        }
        return state
    }
}

extension ObjectClocks {
    fileprivate init(seen row: [String: Value], _ type: ObjectType) {
        self.init()
        for (index, property) in type.properties.enumerated() where index != type.primaryKey {
            properties[property.id] = PropertyClock(seen: row[property.name] ?? .null)
        }
    }
}

extension PropertyClock {
    /// Creates the clock of a value that the writer of the pending changes had seen. It counts as explicit, so a default of a pending
    /// create does not hide it.
    fileprivate init(seen value: Value) {
        self = value.isNull ? .unwritten : PropertyClock(stamp: .zero, valueHash: ValueHash(value))
    }
}
