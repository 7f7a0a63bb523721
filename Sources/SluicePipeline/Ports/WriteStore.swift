package import SluiceCore
package import SluiceMerge

/// The authority's write side: one transaction for each changeset.
package protocol WriteStore: Sendable {
    /// Locks the client's line and the objects of the request, reads what the changeset is judged by, writes what was decided and
    /// commits. The transaction is marked with the request's origin, so that capture knows whose it is.
    ///
    /// What is decided may be asked for more than once, when the transaction has to begin again.
    /// - Throws: `writeNotAllowed` when PostgreSQL refuses values (a constraint of its own), `resync` when the client's file has
    ///   begun a session after this one, and what the decision throws: nothing is written then.
    func transaction(_ request: WriteRequest, _ decide: WriteDecider) async throws -> WriteOutcome
    /// Returns once what was committed before the call will outlive a crash: a commit by itself does not wait for that.
    func durable() async throws
}

/// How it is decided what a changeset writes.
package enum WriteDecider: Sendable {
    case atOnce(@Sendable (WriteBasis) throws -> WriteDecision)
    /// Somebody else is asked meanwhile.
    case waiting(@Sendable (WriteBasis) async throws -> WriteDecision)
}

package struct WriteRequest: Sendable {
    package var origin: Origin
    /// The client file's session.
    package var session: UInt64
    /// The last compensation that the client has applied.
    package var acknowledged: UInt64
    /// When the changeset was made, as its file says.
    package var time: HybridTime
    /// Of the changeset; no later one of the client has an older.
    package var base: LSN
    /// What the changeset names, in an order that is the same for all changesets.
    package var objects: [(type: ObjectType, keys: [Value])]

    package init(
        origin: Origin, session: UInt64, acknowledged: UInt64, time: HybridTime, base: LSN, objects: [(type: ObjectType, keys: [Value])]
    ) {
        self.origin = origin
        self.session = session
        self.acknowledged = acknowledged
        self.time = time
        self.base = base
        self.objects = objects
    }
}

package struct WriteDecision: Sendable {
    package struct Write: Sendable {
        package var type: ObjectType
        package var key: Value
        package var change: StoredWrite
        package var clocks: ObjectClocks
        /// What devices are sent of the clocks; empty for nothing.
        package var times: WriteTimes

        package init(type: ObjectType, key: Value, change: StoredWrite, clocks: ObjectClocks, times: WriteTimes = WriteTimes()) {
            self.type = type
            self.key = key
            self.change = change
            self.clocks = clocks
            self.times = times
        }
    }

    package var writes: [Write] = []
    package var rejected: [RejectedWrite] = []
    /// Objects that are deleted, so that nothing came of what was written to them.
    package var futile: [ObjectKey] = []
    /// The changeset has taken effect before: nothing is noted of it now.
    package var isOld = false

    package init(writes: [Write] = [], rejected: [RejectedWrite] = [], futile: [ObjectKey] = [], isOld: Bool = false) {
        self.writes = writes
        self.rejected = rejected
        self.futile = futile
        self.isOld = isOld
    }
}

package struct WriteOutcome: Sendable {
    /// At or after the commit.
    package var lsn: LSN
    package var rejected: [RejectedWrite]
    /// The number under which the rejections are kept; nil when there are none.
    package var compensation: UInt64?
    /// Of the decision.
    package var futile: [ObjectKey]

    package init(lsn: LSN, rejected: [RejectedWrite], compensation: UInt64?, futile: [ObjectKey] = []) {
        self.lsn = lsn
        self.rejected = rejected
        self.compensation = compensation
        self.futile = futile
    }
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
    /// The same of the clocks; nil where there are none, or it was not asked for.
    package var clocksWriter: UInt32?

    package init(row: Row?, clocks: ObjectClocks?, rowTime: Int64, writer: UInt32?, clocksWriter: UInt32? = nil) {
        self.row = row
        self.clocks = clocks
        self.rowTime = rowTime
        self.writer = writer
        self.clocksWriter = clocksWriter
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

/// The values of one object are refused by the database; nothing was written.
package struct RefusedByDatabase: Error {
    package var object: ObjectKey
    package var error: SluiceError
    /// `true` if a foreign key refused it that leads to or from another object of the changeset.
    package var isWithin: Bool

    package init(object: ObjectKey, error: SluiceError, isWithin: Bool = false) {
        self.object = object
        self.error = error
        self.isWithin = isWithin
    }
}

/// A write that was refused, as it is kept and reported.
package struct RejectedWrite: Hashable, Sendable {
    package var changeset: UInt64
    package var object: ObjectKey
    package var code: ErrorCode
    /// Nil for asymmetric objects, where the code says it.
    package var cause: RefusalCause?
    package var reason: String
    /// The fields at fault; empty where it is the whole object.
    package var fields: [String]
    /// What decided, for operators: the role and its clause. The client is not told; nil where it is read back for one.
    package var rule: String?
    /// What the client wanted to write.
    package var values: [String: Value]

    package init(
        changeset: UInt64, object: ObjectKey, code: ErrorCode, cause: RefusalCause? = nil, reason: String, fields: [String] = [],
        rule: String? = nil, values: [String: Value]
    ) {
        self.changeset = changeset
        self.object = object
        self.code = code
        self.cause = cause
        self.reason = reason
        self.fields = fields
        self.rule = rule
        self.values = values
    }
}

/// What a changeset is judged by, read in the transaction that writes it.
package struct WriteBasis: Sendable {
    /// The number of the last changeset of this client that took effect.
    package var changeset: UInt64
    /// The write-ahead log's end now.
    package var now: LSN
    /// The oldest position that a client can still write from.
    package var horizon: LSN
    /// Objects that a compensation concerns which the client has not applied.
    package var rejected: Set<ObjectKey>
    /// What is stored of the objects asked for; one without row or clocks is missing.
    package var stored: [ObjectKey: StoredObject]

    package init(changeset: UInt64, now: LSN, horizon: LSN, rejected: Set<ObjectKey>, stored: [ObjectKey: StoredObject]) {
        self.changeset = changeset
        self.now = now
        self.horizon = horizon
        self.rejected = rejected
        self.stored = stored
    }
}
