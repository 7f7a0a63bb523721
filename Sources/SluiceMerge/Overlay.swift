package import SluiceCore

/// A change of a changeset that the server's row does not have.
package struct PendingChange: Hashable, Sendable {
    package var change: ObjectChange
    /// The time of its changeset.
    package var time: HybridTime
    /// The position that the device had applied when it was made.
    package var base: LSN

    package init(_ change: ObjectChange, time: HybridTime, base: LSN) {
        self.change = change
        self.time = time
        self.base = base
    }

    /// A change of the transaction under way, later than everything that the device has seen.
    package init(underWay change: ObjectChange) {
        self.init(change, time: HybridTime(rawValue: .max), base: LSN(rawValue: .max - 1))
    }
}

/// The rows that a device shows: the server's state with its own pending changes merged in, as the gateway will merge them.
package enum Overlay {
    /// The client number of a client replica without a number yet.
    package static let unnumbered = ClientID(rawValue: .max)

    /// - Parameters:
    ///   - pending: The changes of this object that the server's row lacks, oldest first.
    ///   - client: The device's own number. It decides between equal times.
    /// - Returns: The values to show, without the primary key. `nil` if the object is not shown. A pending edit of a row that the server
    ///   removed shows nothing: deletions win.
    /// - Throws: The errors of `Merge.apply`.
    package static func apply(
        server: ServerObject, pending: [PendingChange], client: ClientID, type: ObjectType
    ) throws(SluiceError) -> [String: Value]? {
        try state(server: server, pending: pending, client: client, type: type).values
    }

    /// The same with the clocks that places in the values are named by (`ShownPlace`).
    package static func state(
        server: ServerObject, pending: [PendingChange], client: ClientID, type: ObjectType
    ) throws(SluiceError) -> ObjectState {
        var state = server.state(type)
        for change in pending { try add(change, client: client, to: &state, type: type) }
        return state
    }

    /// Applies one more pending change.
    package static func add(
        _ pending: PendingChange, client: ClientID, to state: inout ObjectState, type: ObjectType
    ) throws(SluiceError) {
        // The device's own elements are after every base. Server elements are named by their index in the list that the server sent.
        let writer = WriteContext(stamp: WriteStamp(time: pending.time, client: client), base: pending.base, now: .max)
        try Merge.apply(pending.change, by: writer, to: &state, type: type)
    }
}

extension WriteContext {
    /// The context of the open transaction's edits: later than everything that the device has seen, as `PendingChange.init(underWay:)`.
    package static func underWay(by client: ClientID) -> WriteContext {
        WriteContext(stamp: WriteStamp(time: HybridTime(rawValue: .max), client: client), base: LSN(rawValue: .max - 1), now: .max)
    }
}

// MARK: What is shown by itself

extension Overlay {
    /// Applies changes one after another to values of which nothing else is known.
    package static func apply(
        server: [String: Value]?, pending: [ObjectChange], type: ObjectType
    ) throws(SluiceError) -> [String: Value]? {
        try state(server: server, pending: pending, type: type).values
    }

    /// The same with the clocks that places in the values are named by.
    package static func state(
        server: [String: Value]?, pending: [ObjectChange], type: ObjectType
    ) throws(SluiceError) -> ObjectState {
        var state = ServerObject(row: server).state(type)
        for (index, change) in pending.enumerated() { try add(change, number: index, to: &state, type: type) }
        return state
    }

    /// Applies one more change.
    /// - Parameter number: The number of changes applied before.
    package static func add(
        _ change: ObjectChange, number: Int, to state: inout ObjectState, type: ObjectType
    ) throws(SluiceError) {
        let pending = PendingChange(change, time: HybridTime(rawValue: UInt64(number) + 1), base: .zero)
        try add(pending, client: unnumbered, to: &state, type: type)
    }
}
