package import SluiceCore

/// What a device shows: the server's state with its own pending changes on top, by the same rules as the gateway's.
package enum Overlay {
    /// - Parameters:
    ///   - server: The values of the server's row by property name; nil when the row is not on the device.
    ///   - pending: The changes of this object in the changesets not yet acknowledged, oldest first.
    /// - Returns: The values to show, the primary key left out; nil when the object is not to be shown. A pending edit of a row that the
    ///   server has taken away shows nothing: deletions win.
    /// - Throws: like `Merge.apply`.
    package static func apply(
        server: [String: Value]?, pending: [ObjectChange], type: ObjectType
    ) throws(SluiceError) -> [String: Value]? {
        try state(server: server, pending: pending, type: type).values
    }

    /// The same with what has to be known to name places in the values (`ShownPlace`).
    package static func state(
        server: [String: Value]?, pending: [ObjectChange], type: ObjectType
    ) throws(SluiceError) -> ObjectState {
        var state = ObjectState(values: server, clocks: ObjectClocks())
        if let index = type.primaryKey { state.values?[type.properties[index].name] = nil }
        // A value that the server has counts as explicit: a default of a pending create does not hide it.
        let known = PropertyClock(stamp: .zero, valueHash: ValueHash(rawValue: 0))
        for property in type.properties {
            if let value = state.values?[property.name], !value.isNull { state.clocks.properties[property.id] = known }
        }
        for (index, change) in pending.enumerated() { try add(change, number: index, to: &state, type: type) }
        return state
    }

    /// Applies one more pending change.
    /// - Parameter number: How many there were before.
    package static func add(
        _ change: ObjectChange, number: Int, to state: inout ObjectState, type: ObjectType
    ) throws(SluiceError) {
        // What is pending comes after everything that the device has seen, so each change gets a time of its own, in order.
        // Its own elements lie after the base: the server's are named by their places in what the server sent.
        let stamp = WriteStamp(time: HybridTime(rawValue: UInt64(number) + 1), client: ClientID(rawValue: .max))
        let writer = WriteContext(stamp: stamp, base: .zero, now: LSN(rawValue: 1))
        try Merge.apply(change, by: writer, to: &state, type: type)
    }
}
