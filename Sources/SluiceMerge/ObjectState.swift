package import SluiceCore

/// An object as merging sees it.
package struct ObjectState: Hashable, Sendable {
    /// The values by property name, without the primary key. `nil` if the object does not exist. A missing property is null.
    package var values: [String: Value]?
    package var clocks: ObjectClocks

    /// Creates an object without any write.
    package init() { self.init(values: nil, clocks: ObjectClocks()) }

    package init(values: [String: Value]?, clocks: ObjectClocks) {
        self.values = values
        self.clocks = clocks
    }

    /// Joins a row with its stored clocks and detects writes by SQL.
    /// - SQL wrote a property whose value differs from its clock's hash, or that has no clock (`SQLWrite`). A null without a clock has no
    ///   writer, unless SQL created the row. The write is at `rowTime` at the latest. Its stamp is later than the replaced one, which SQL
    ///   saw.
    /// - SQL deleted a missing row without a tombstone. SQL created again a row with a tombstone.
    ///
    /// - Parameters:
    ///   - row: The values of all properties by name, with or without the primary key. A missing value is null.
    ///   - clocks: The stored clocks. `nil` if none are stored.
    ///   - rowTime: The commit time of the row's last transaction, in milliseconds since 1970. The current time if the row is missing.
    ///   - deletedAt: The position of SQL's deletion if the clocks have none. Zero: all writers know it.
    ///   - now: The end of the log. A writer that has applied more has seen SQL's values.
    package init(
        row: [String: Value]?, clocks stored: ObjectClocks?, type: ObjectType, rowTime: Int64, deletedAt: LSN = .zero, now: LSN = .max
    ) {
        self.init(values: row, clocks: stored ?? ObjectClocks())
        if let index = type.primaryKey { values?[type.properties[index].name] = nil }
        let server = WriteStamp(time: HybridTime(milliseconds: rowTime), client: .server)
        guard values != nil else {
            if let stored, !stored.isDeleted {
                let stamp = stored.deletion.map { server.bumped(past: $0.stamp) } ?? server
                clocks = ObjectClocks(deletion: Deletion(stamp: stamp, lsn: deletedAt), isDeleted: true)
            }
            return
        }
        // SQL created a row that has a tombstone, or no clocks.
        let isMadeBySQL = clocks.isDeleted || stored == nil
        if isMadeBySQL { clocks = ObjectClocks(created: server, deletion: clocks.deletion) }
        for (index, property) in type.properties.enumerated() where index != type.primaryKey {
            notice(property, server, now, isMadeBySQL: isMadeBySQL)
        }
    }

    private mutating func notice(_ property: Property, _ server: WriteStamp, _ now: LSN, isMadeBySQL: Bool) {
        let value = values?[property.name] ?? .null
        let hash = ValueHash(value)
        if let clock = clocks.properties[property.id] {
            if clock.valueHash == hash { return }
            let stamp = server.bumped(past: clock.latest)
            // Places in the old value are void. Each writer into the new one has seen it, or writes later.
            clocks.properties[property.id] = PropertyClock(
                sql: SQLWrite(stamp: stamp, hash: hash), reset: property.hasInside ? Deletion(stamp: stamp, lsn: now) : nil)
        } else if isMadeBySQL || !value.isNull {
            clocks.properties[property.id] = PropertyClock(sql: SQLWrite(stamp: server, hash: hash))
        } else {
            // The null of a property that is newer than the last merge of the row: it has no writer.
            clocks.properties[property.id] = .unwritten
        }
    }
}
