package import SluiceCore

/// An event of a row in a session's view.
package enum ViewEvent: UInt8, Hashable, Sendable {
    case entered = 1
    case updated = 2
    /// Deleted from the database.
    case deleted = 3
    /// Still in the database, but no longer matches.
    case leftQuery = 4
    case lostPermission = 5

    /// `true` if the change carries the whole row, `false` if only its key.
    package var hasRow: Bool { self == .entered || self == .updated }
}

/// Writes one `ServerMessage` with `Commits`. Splices in rows that are already encoded.
///
/// Order of calls: for each transaction `beginCommit`, its changes, `endCommit`; then `finish`. The writer is then empty and reusable.
package struct CommitsWriter: Sendable {
    private var writer = ByteWriter()
    private var message = 0
    private var commit = 0
    package private(set) var changeCount = 0

    package init() {}

    /// The bytes written so far, the measure for the bound of a message.
    package var byteCount: Int { writer.count }
    package var isEmpty: Bool { writer.count == 0 }

    private mutating func begin() { if writer.count == 0 { message = writer.open(5) } }

    /// Begins a transaction.
    /// - Parameters:
    ///   - commitTime: microseconds since 1970, UTC.
    ///   - changeset: the receiver's own changeset that the transaction committed. 0: none.
    ///   - writeTime: the time of a client's writes. Zero for SQL.
    package mutating func beginCommit(_ lsn: LSN, commitTime: Int64, changeset: UInt64 = 0, writeTime: HybridTime = .zero) {
        begin()
        commit = writer.open(1)
        writer.ifNotZero(1, fixed64: lsn.rawValue)
        writer.ifNotZero(2, zigzag: commitTime)
        writer.ifNotZero(4, varint: changeset)
        writer.ifNotZero(5, fixed64: writeTime.rawValue)
    }

    /// Adds a change whose row or key is already encoded.
    /// - Parameters:
    ///   - content: the `Row` message if the event has a row, otherwise the key's `Value`.
    ///   - times: the encoded write times. Empty for SQL.
    ///   - changed: the numbers of the changed properties of a row that existed; nil to leave them out.
    package mutating func addChange(
        _ type: String, _ event: ViewEvent, _ content: UnsafeRawBufferPointer, times: UnsafeRawBufferPointer? = nil,
        changed: [UInt32]? = nil
    ) {
        let change = open(type, event)
        writer.field(event.hasRow ? 3 : 4, bytes: content)
        if let times, !times.isEmpty { writer.field(5, bytes: times) }
        add(changed: changed)
        writer.close(change)
        changeCount += 1
    }

    package mutating func addChange(_ type: String, _ event: ViewEvent, _ content: [UInt8]) {
        content.withUnsafeBytes { addChange(type, event, $0) }
    }

    /// Adds a change with those fields of an encoded row that the mask allows.
    /// - Parameters:
    ///   - times: the encoded write times of these fields.
    ///   - changed: the numbers of the changed properties of a row that existed; nil to leave them out.
    /// - Throws: `badSyntax`. The change is then not in the message.
    package mutating func addChange(
        _ event: ViewEvent, _ row: UnsafeRawBufferPointer, codec: RowCodec, mask: [Bool], times: [UInt8] = [], changed: [UInt32]? = nil
    ) throws(SluiceError) {
        let start = writer.count
        let change = open(codec.type.name, event)
        let content = writer.open(3)
        do throws(SluiceError) {
            try codec.copy(row, mask: mask, into: &writer)
        } catch {
            writer.truncate(to: start)
            throw error
        }
        writer.close(content)
        if !times.isEmpty { times.withUnsafeBytes { writer.field(5, bytes: $0) } }
        add(changed: changed)
        writer.close(change)
        changeCount += 1
    }

    /// Writes the field even if it is empty: an existing row may have no visible change.
    private mutating func add(changed: [UInt32]?) {
        guard let changed else { return }
        let content = writer.open(6)
        for number in changed { writer.varint(UInt64(number)) }
        writer.close(content)
    }

    private mutating func open(_ type: String, _ event: ViewEvent) -> Int {
        let change = writer.open(3)
        writer.ifNotEmpty(1, string: type)
        writer.field(2, varint: UInt64(event.rawValue))
        return change
    }

    package mutating func endCommit() { writer.close(commit) }

    /// Ends the message and resets the writer.
    /// - Parameters:
    ///   - lsn: the message, with those before it, covers all commits up to here.
    ///   - witness: the history anchor, the last known transaction up to `lsn`.
    ///   - more: `true` if another piece of the same run follows. The client applies nothing before the last piece.
    /// - Returns: the encoded `ServerMessage`.
    package mutating func finish(_ lsn: LSN, witness: HistoryAnchor? = nil, more: Bool = false) -> [UInt8] {
        begin()
        writer.ifNotZero(2, fixed64: lsn.rawValue)
        writer.ifNotZero(3, varint: more ? 1 : 0)
        if let witness { writer.field(4, bytes: witness.bytes) }
        writer.close(message)
        changeCount = 0
        return writer.take()
    }
}

/// Writes one `ServerMessage` with `BootstrapRows` of one class. Rows come first, then keys of removed or kept objects.
package struct BootstrapRowsWriter: Sendable {
    private var writer = ByteWriter()
    private let message: Int
    package let codec: RowCodec
    package private(set) var rowCount = 0
    /// The reasons of removals, as numbers of `ViewEvent`, in the order of `addGone`. 0 if unknown.
    private var reasons: [UInt8] = []

    package init(_ codec: RowCodec) {
        self.codec = codec
        message = writer.open(3)
        writer.ifNotEmpty(1, string: codec.type.name)
    }

    package var byteCount: Int { writer.count }
    /// `true` if the message has reached a bound: `Limits.bootstrapRows` or `Limits.bootstrapBytes`.
    package var isFull: Bool { rowCount >= Limits.bootstrapRows || byteCount >= Limits.bootstrapBytes }

    package mutating func add(_ row: RowView, mask: [Bool]? = nil) {
        let content = writer.open(2)
        codec.encode(row, mask: mask, into: &writer)
        writer.close(content)
        rowCount += 1
    }

    /// Adds a row that is already encoded.
    package mutating func add(_ row: UnsafeRawBufferPointer) {
        writer.field(2, bytes: row)
        rowCount += 1
    }

    /// Adds the key of an object that left the view. Removals apply after all rows of the message.
    /// - Parameter reason: `nil` if unknown.
    package mutating func addGone(_ key: Value, _ reason: ViewEvent? = nil) {
        ValueCodec.nested(3, key, into: &writer)
        reasons.append(reason?.rawValue ?? 0)
        rowCount += 1
    }

    /// Adds the key of an object that the client keeps unchanged.
    package mutating func addKept(_ key: Value) {
        ValueCodec.nested(4, key, into: &writer)
        rowCount += 1
    }

    /// Adds the write times of a row. They apply after all rows of the message.
    /// - Parameter commitTime: the time of the row's last commit, in milliseconds since 1970.
    package mutating func addTimes(_ key: Value, _ times: [UInt8], commitTime: Int64) {
        let content = writer.open(7)
        ValueCodec.nested(1, key, into: &writer)
        if !times.isEmpty { times.withUnsafeBytes { writer.field(2, bytes: $0) } }
        writer.ifNotZero(3, zigzag: commitTime)
        writer.close(content)
        rowCount += 1
    }

    /// Ends the message.
    /// - Parameter checkpoint: the resume offer that covers this message, an encoded `PBCheckpoint`. Empty for none.
    /// - Returns: the encoded `ServerMessage`.
    package consuming func finish(checkpoint: [UInt8] = []) -> [UInt8] {
        if reasons.contains(where: { $0 != 0 }) {
            let content = writer.open(5)
            for reason in reasons { writer.byte(reason) }
            writer.close(content)
        }
        if !checkpoint.isEmpty { checkpoint.withUnsafeBytes { writer.field(6, bytes: $0) } }
        writer.close(message)
        return writer.take()
    }
}
