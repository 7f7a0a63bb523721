package import SluiceCore
package import SluiceMerge

/// The authority's write side.
package protocol WriteStore: Sendable {
    /// Runs `body` in one transaction and commits it; a thrown error rolls back.
    /// - Returns: what `body` returned, and an LSN at or after the commit's.
    func transaction<R: Sendable>(
        _ body: @Sendable (any WriteTransaction) async throws -> R
    ) async throws -> (result: R, lsn: LSN)
}

/// An object as it is stored, with what merging needs to know of it.
package struct StoredObject: Sendable {
    /// In index order; nil when there is no row.
    package var row: Row?
    /// Nil when sync never wrote the object.
    package var clocks: ObjectClocks?
    /// Commit time of the row's last writer, milliseconds since 1970; what a write by SQL counts as.
    package var rowTime: Int64
    /// The number of the transaction that wrote the row last, its low 32 bits; nil where there is no row.
    package var writer: UInt32?

    package init(row: Row?, clocks: ObjectClocks?, rowTime: Int64, writer: UInt32?) {
        self.row = row
        self.clocks = clocks
        self.rowTime = rowTime
        self.writer = writer
    }
}

package enum StoredWrite: Sendable {
    case insert(Row)
    /// The properties by index that changed.
    case update([Int: Value])
    case delete
    /// Only the clocks: what came lost, and that has to be remembered.
    case nothing
}

/// A write that was refused, as it is kept and reported.
package struct RejectedWrite: Hashable, Sendable {
    package var changeset: UInt64
    package var object: ObjectKey
    package var code: ErrorCode
    package var reason: String
    /// What the client wanted to write.
    package var values: [String: Value]

    package init(changeset: UInt64, object: ObjectKey, code: ErrorCode, reason: String, values: [String: Value]) {
        self.changeset = changeset
        self.object = object
        self.code = code
        self.reason = reason
        self.values = values
    }
}

package protocol WriteTransaction: Sendable {
    /// Locks the client's line and marks the transaction with its origin, so that capture knows whose it is.
    /// - Returns: the number of the last changeset of this client that took effect, the write-ahead log's end now, and the oldest
    ///   position that a client can still write from.
    /// - Throws: `resync` when the client's file has begun a session after this one.
    func begin(_ origin: Origin, session: UInt64) async throws -> (changeset: UInt64, now: LSN, horizon: LSN)
    /// Objects that a compensation newer than `acknowledged` concerns: their writes are to be discarded (CW-10).
    func rejectedObjects(client: ClientID, after acknowledged: UInt64) async throws -> Set<ObjectKey>
    /// Locks and loads objects of one type; a key without row or clocks is missing in the answer.
    func load(_ type: ObjectType, keys: [Value]) async throws -> [Value: StoredObject]
    /// Throws `writeNotAllowed` when PostgreSQL refuses the values (a constraint of its own).
    func write(_ type: ObjectType, key: Value, _ write: StoredWrite, clocks: ObjectClocks) async throws
    func reject(client: ClientID, _ writes: [RejectedWrite]) async throws -> UInt64
    /// - Parameter base: of the changeset; no later one of the client has an older.
    func finish(_ origin: Origin, base: LSN) async throws
}
