package import SluiceCore

/// What happened to a row in a session's view.
package enum ViewEvent: UInt8, Hashable, Sendable {
    case entered = 1
    case updated = 2
    /// Gone from the database.
    case deleted = 3
    /// Still there, no longer matches.
    case leftQuery = 4
    case lostPermission = 5

    /// Whether the change carries the whole row; otherwise its key.
    package var hasRow: Bool { self == .entered || self == .updated }
}

/// Writes one `ServerMessage` with `Commits`: rows that are encoded already are spliced in as they are.
///
/// Order of calls: for each transaction `beginCommit`, its changes, `endCommit`; then `finish`. The writer is then empty
/// and can be used again.
package struct CommitsWriter: Sendable {
    private var writer = ByteWriter()
    private var message = 0
    private var commit = 0
    package private(set) var changeCount = 0

    package init() {}

    /// Bytes so far; the measure for the bound of a message.
    package var byteCount: Int { writer.count }
    package var isEmpty: Bool { writer.count == 0 }

    private mutating func begin() { if writer.count == 0 { message = writer.open(5) } }

    /// - Parameters:
    ///   - commitTime: microseconds since 1970, UTC.
    ///   - changeset: the receiver's own changeset that the transaction is; 0: none.
    ///   - writeTime: of a client's writes; zero for SQL.
    package mutating func beginCommit(_ lsn: LSN, commitTime: Int64, changeset: UInt64 = 0, writeTime: HybridTime = .zero) {
        begin()
        commit = writer.open(1)
        writer.ifNotZero(1, fixed64: lsn.rawValue)
        writer.ifNotZero(2, zigzag: commitTime)
        writer.ifNotZero(4, varint: changeset)
        writer.ifNotZero(5, fixed64: writeTime.rawValue)
    }

    /// Adds a change whose row, or key, is encoded already.
    /// - Parameters:
    ///   - content: of the `Row` message when the event has a row, of the key's `Value` otherwise.
    ///   - times: the encoded write times; empty for SQL.
    package mutating func addChange(
        _ type: String, _ event: ViewEvent, _ content: UnsafeRawBufferPointer, times: UnsafeRawBufferPointer? = nil
    ) {
        let change = open(type, event)
        writer.field(event.hasRow ? 3 : 4, bytes: content)
        if let times, !times.isEmpty { writer.field(5, bytes: times) }
        writer.close(change)
        changeCount += 1
    }

    package mutating func addChange(_ type: String, _ event: ViewEvent, _ content: [UInt8]) {
        content.withUnsafeBytes { addChange(type, event, $0) }
    }

    /// Adds a change with those fields of an encoded row that the mask shows.
    /// - Parameter times: the encoded write times of these fields.
    /// - Throws: `badSyntax`; the change is then not in the message.
    package mutating func addChange(
        _ event: ViewEvent, _ row: UnsafeRawBufferPointer, codec: RowCodec, mask: [Bool], times: [UInt8] = []
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
        writer.close(change)
        changeCount += 1
    }

    private mutating func open(_ type: String, _ event: ViewEvent) -> Int {
        let change = writer.open(3)
        writer.ifNotEmpty(1, string: type)
        writer.field(2, varint: UInt64(event.rawValue))
        return change
    }

    package mutating func endCommit() { writer.close(commit) }

    /// Closes the message.
    /// - Parameters:
    ///   - lsn: everything up to here has been said.
    ///   - witness: the last transaction that is known up to there.
    ///   - more: another piece of the same run follows, and the client applies nothing before the last.
    /// - Returns: the `ServerMessage`.
    package mutating func finish(_ lsn: LSN, witness: Witness? = nil, more: Bool = false) -> [UInt8] {
        begin()
        writer.ifNotZero(2, fixed64: lsn.rawValue)
        writer.ifNotZero(3, varint: more ? 1 : 0)
        if let witness { writer.field(4, bytes: witness.bytes) }
        writer.close(message)
        changeCount = 0
        return writer.take()
    }
}

/// Writes one `ServerMessage` with `BootstrapRows` of one type; rows first, then keys of objects that left the view or stay as they are.
package struct BootstrapRowsWriter: Sendable {
    private var writer = ByteWriter()
    private let message: Int
    package let codec: RowCodec
    package private(set) var rowCount = 0
    /// Why the objects left, as numbers, in the order of `addGone`.
    private var reasons: [UInt8] = []

    package init(_ codec: RowCodec) {
        self.codec = codec
        message = writer.open(3)
        writer.ifNotEmpty(1, string: codec.type.name)
    }

    package var byteCount: Int { writer.count }
    /// Whether a bound of one message is reached (`Limits.bootstrapRows`, `Limits.bootstrapBytes`).
    package var isFull: Bool { rowCount >= Limits.bootstrapRows || byteCount >= Limits.bootstrapBytes }

    package mutating func add(_ row: RowView, mask: [Bool]? = nil) {
        let content = writer.open(2)
        codec.encode(row, mask: mask, into: &writer)
        writer.close(content)
        rowCount += 1
    }

    /// Adds a row that is encoded already.
    package mutating func add(_ row: UnsafeRawBufferPointer) {
        writer.field(2, bytes: row)
        rowCount += 1
    }

    /// Adds the key of an object that is no longer in the view; removals count after all rows of the message.
    /// - Parameter reason: nil when it is not known.
    package mutating func addGone(_ key: Value, _ reason: ViewEvent? = nil) {
        ValueCodec.nested(3, key, into: &writer)
        reasons.append(reason?.rawValue ?? 0)
        rowCount += 1
    }

    /// Adds the key of an object that the client has as it is.
    package mutating func addKept(_ key: Value) {
        ValueCodec.nested(4, key, into: &writer)
        rowCount += 1
    }

    /// Adds the write times of a row, which count after all rows of the message.
    /// - Parameter commitTime: of the row, milliseconds since 1970.
    package mutating func addTimes(_ key: Value, _ times: [UInt8], commitTime: Int64) {
        let content = writer.open(7)
        ValueCodec.nested(1, key, into: &writer)
        if !times.isEmpty { times.withUnsafeBytes { writer.field(2, bytes: $0) } }
        writer.ifNotZero(3, zigzag: commitTime)
        writer.close(content)
        rowCount += 1
    }

    /// - Parameter checkpoint: a `PBCheckpoint`, of how far the bootstrap has come with this message; empty for none.
    /// - Returns: the `ServerMessage`.
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
