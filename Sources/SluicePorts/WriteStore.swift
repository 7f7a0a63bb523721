package import SluiceCore
package import SluiceMerge

/// The write side of the authority: one transaction for each changeset.
package protocol WriteStore: Sendable {
    /// Commits one changeset.
    ///
    /// Locks the client's record and the objects of the request, reads the basis, calls `decide`, writes its decision and commits. The
    /// transaction carries the request's origin, so that capture can attribute it. If the transaction has to restart, `decide` is called
    /// again.
    /// - Throws: `writeNotAllowed` if a constraint of PostgreSQL rejects values; `resync` if the replica has begun a later session; any
    ///   error of `decide`. Nothing is written then.
    func transaction(_ request: WriteRequest, _ decide: WriteDecider) async throws -> WriteOutcome
    /// Returns once everything committed before the call survives a crash. A commit alone does not wait for that.
    func durable() async throws
}

/// Computes the writes of a changeset from its basis.
package enum WriteDecider: Sendable {
    /// Decides synchronously.
    case atOnce(@Sendable (WriteBasis) throws -> WriteDecision)
    /// Suspends while a plugin is asked.
    case waiting(@Sendable (WriteBasis) async throws -> WriteDecision)
}

package struct WriteRequest: Sendable {
    package var origin: Origin
    /// The session number of the client replica.
    package var session: UInt64
    /// The last compensation that the client has applied.
    package var acknowledged: UInt64
    /// The time of the changeset, by its replica's clock.
    package var time: HybridTime
    /// The base of the changeset. No later changeset of the client has an older one.
    package var base: LSN
    /// The objects that the changeset names, in an order that is the same for all changesets, so that locks cannot deadlock.
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

/// The writes and rejections that a changeset results in.
package struct WriteDecision: Sendable {
    package struct Write: Sendable {
        package var type: ObjectType
        package var key: Value
        package var change: StoredWrite
        package var clocks: ObjectClocks
        /// The part of the clocks that devices receive; empty for nothing.
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
    package var rejected: [WriteRejection] = []
    /// Deleted objects, for which the client's writes have no effect.
    package var futile: [ObjectKey] = []
    /// `true` if the changeset has taken effect before. Nothing is recorded for it now.
    package var isOld = false

    package init(writes: [Write] = [], rejected: [WriteRejection] = [], futile: [ObjectKey] = [], isOld: Bool = false) {
        self.writes = writes
        self.rejected = rejected
        self.futile = futile
        self.isOld = isOld
    }
}

/// The result of a committed changeset.
package struct WriteOutcome: Sendable {
    /// A position at or after the commit.
    package var lsn: LSN
    package var rejected: [WriteRejection]
    /// The number under which the rejections are stored; nil if none exist.
    package var compensation: UInt64?
    /// The decision's objects without effect.
    package var futile: [ObjectKey]

    package init(lsn: LSN, rejected: [WriteRejection], compensation: UInt64?, futile: [ObjectKey] = []) {
        self.lsn = lsn
        self.rejected = rejected
        self.compensation = compensation
        self.futile = futile
    }
}

/// A stored object with the state that merging needs.
package struct StoredObject: Hashable, Sendable {
    /// The values in property order; nil if no row exists.
    package var row: Row?
    /// The clocks; nil if sync never wrote the object.
    package var clocks: ObjectClocks?
    /// The commit time of the row's last writer, in milliseconds since 1970. Merging uses it as the time of a write by SQL. It is 0 if the
    /// database no longer keeps it. Without a row it is the current time.
    package var rowTime: Int64
    /// The low 32 bits of the transaction that last wrote the row; nil if no row exists.
    package var writer: UInt32?
    /// The low 32 bits of the transaction that last wrote the clocks; nil if none exist or the caller did not request it.
    package var clocksWriter: UInt32?

    package init(row: Row?, clocks: ObjectClocks?, rowTime: Int64, writer: UInt32? = nil, clocksWriter: UInt32? = nil) {
        self.row = row
        self.clocks = clocks
        self.rowTime = rowTime
        self.writer = writer
        self.clocksWriter = clocksWriter
    }
}

/// The change of a row.
package enum StoredWrite: Hashable, Sendable {
    case insert(Row)
    /// The changed values, by property index.
    case update([Int: Value])
    case delete
    /// Stores the clocks only: the incoming write lost, and the clocks must record that.
    case nothing
}

/// The database rejected the values of one object. Nothing was written.
///
/// A type beside `SluiceError`, because the committer needs the object to commit the others.
package struct DatabaseRejection: SluiceErrorConvertible {
    package var object: ObjectKey
    /// `writeNotAllowed`, with the database's words as its cause.
    package var error: SluiceError
    /// `true` if a foreign key rejected it.
    package var isReference: Bool
    /// `true` if that foreign key leads to or from another object of the changeset.
    package var isWithin: Bool

    package var asSluiceError: SluiceError { error }

    package init(object: ObjectKey, error: SluiceError, isReference: Bool = false, isWithin: Bool = false) {
        self.object = object
        self.error = error
        self.isReference = isReference
        self.isWithin = isWithin
    }
}

/// A rejected write, as stored and reported.
package struct WriteRejection: Hashable, Sendable {
    package var changeset: UInt64
    package var object: ObjectKey
    package var code: ErrorCode
    /// The cause; nil for asymmetric objects, for which the code suffices.
    package var cause: RejectionCause?
    package var reason: String
    /// The fields at fault; empty if the whole object is.
    package var fields: [String]
    /// The deciding role and clause, for operators. The client never receives it; nil if the rejection is read back for a client.
    package var rule: String?
    /// The values that the client wanted to write.
    package var values: [String: Value]

    package init(
        changeset: UInt64, object: ObjectKey, code: ErrorCode, cause: RejectionCause? = nil, reason: String, fields: [String] = [],
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

/// The state that a changeset is judged by, read in the transaction that writes it.
package struct WriteBasis: Sendable {
    /// The number of this client's last changeset that took effect.
    package var changeset: UInt64
    /// The end of the WAL, before everything that this transaction writes.
    package var now: LSN
    /// The oldest position that a client can still write from.
    package var horizon: LSN
    /// Objects of a compensation that the client has not applied.
    package var rejected: Set<ObjectKey>
    /// The stored state of the requested objects. An object without row or clocks is absent.
    package var stored: [ObjectKey: StoredObject]

    package init(
        changeset: UInt64, now: LSN, horizon: LSN, rejected: Set<ObjectKey> = [], stored: [ObjectKey: StoredObject] = [:]
    ) {
        self.changeset = changeset
        self.now = now
        self.horizon = horizon
        self.rejected = rejected
        self.stored = stored
    }
}
