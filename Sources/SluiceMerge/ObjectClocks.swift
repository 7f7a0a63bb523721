package import SluiceCore

/// The writer and time of a value: of a property, or of a place inside a property's value.
package struct PropertyClock: Hashable, Sendable {
    /// The stamp of the set in force. Later additions have their own stamps.
    package var stamp: WriteStamp
    /// `true` if the value is a default of the creation. Every explicit value beats it (CR-6).
    package var isDefault: Bool
    /// The hash of the value in the row, additions included. If the row has another hash, SQL wrote it. Properties only.
    package var valueHash: ValueHash
    /// The additions to apply again if an older set arrives (CR-8 to CR-10), ascending by stamp.
    package var additions: [Addition]
    /// The last replacement or clear of the whole value. It voids changes inside by writers that do not know of it (CR-16, CR-22, CR-23).
    /// `nil` if all writers know it, or for a value without inside.
    package var reset: Deletion?
    /// The recorded changes inside since then. `nil` if none are recorded.
    package var contents: Contents?
    /// The last value that SQL wrote, unless a later set has replaced it. Properties only.
    package var sql: SQLWrite?

    package struct Addition: Hashable, Sendable {
        package var stamp: WriteStamp
        package var amount: Int64

        package init(stamp: WriteStamp, amount: Int64) {
            self.stamp = stamp
            self.amount = amount
        }
    }

    package init(
        stamp: WriteStamp, isDefault: Bool = false, valueHash: ValueHash = ValueHash(rawValue: 0), additions: [Addition] = [],
        reset: Deletion? = nil, contents: Contents? = nil, sql: SQLWrite? = nil
    ) {
        self.stamp = stamp
        self.isDefault = isDefault
        self.valueHash = valueHash
        self.additions = additions
        self.reset = reset
        self.contents = contents
        self.sql = sql
    }

    /// Creates the clock of a value that SQL wrote.
    init(sql: SQLWrite, reset: Deletion? = nil) {
        self.init(stamp: sql.stamp, valueHash: sql.hash, reset: reset, sql: sql)
    }

    /// The clock of a property without a write. Every write beats it.
    package static let unwritten = PropertyClock(stamp: .zero, isDefault: true, valueHash: ValueHash(.null))

    /// The stamp of the latest change of the value, inside it too.
    var latest: WriteStamp {
        max(stamp, additions.last?.stamp ?? stamp, reset?.stamp ?? stamp, contents?.latest ?? stamp)
    }

    /// The sum of the additions, in 64 bits that wrap, as the counters do.
    var added: Int64 { additions.reduce(0) { $0 &+ $1.amount } }
}

/// The recorded changes inside a value.
package indirect enum Contents: Hashable, Sendable {
    /// By key of a dictionary or name of an embedded object's field. A key that has a clock and no value was removed.
    case keyed([String: Entry])
    /// By the hash of a member of a set. A member that has a clock and is not there was removed.
    case members([ValueHash: Member])
    case list(ListClock)

    package struct Entry: Hashable, Sendable {
        package var clock: PropertyClock
        /// The end of the log before the transaction of the last change.
        package var lsn: LSN
    }

    package struct Member: Hashable, Sendable {
        package var stamp: WriteStamp
        package var lsn: LSN
    }

    var latest: WriteStamp {
        switch self {
        case .keyed(let entries): entries.values.map(\.clock.latest).max() ?? .zero
        case .members(let members): members.values.map(\.stamp).max() ?? .zero
        case .list(let list): list.latest
        }
    }
}

/// A deletion that is remembered.
package struct Deletion: Hashable, Sendable {
    package var stamp: WriteStamp
    /// The end of the log before its transaction writes. A writer that has applied more counts as knowing the deletion. Zero: all writers
    /// count as knowing it.
    package var lsn: LSN

    package init(stamp: WriteStamp, lsn: LSN) {
        self.stamp = stamp
        self.lsn = lsn
    }

    /// `true` if the writer knew the deletion: its base includes it, or it is the writer's own and its changes arrive in order.
    func isKnown(to writer: WriteContext) -> Bool {
        writer.baseSees(lsn) || writer.stamp.client == stamp.client
    }
}

/// The clocks of an object: all that the merge needs besides the values.
package struct ObjectClocks: Hashable, Sendable {
    /// The clocks by `Property.id`. Numbers that the schema no longer has are kept.
    package var properties: [UInt32: PropertyClock]
    /// The stamp of the first create of this life of the object.
    package var created: WriteStamp?
    /// The last deletion, kept after a new creation. It voids writes that did not know of it.
    package var deletion: Deletion?
    /// `true` if the object is deleted. `deletion` then has the stamp.
    package var isDeleted: Bool

    package init(
        properties: [UInt32: PropertyClock] = [:], created: WriteStamp? = nil, deletion: Deletion? = nil, isDeleted: Bool = false
    ) {
        self.properties = properties
        self.created = created
        self.deletion = deletion
        self.isDeleted = isDeleted
    }
}

extension WriteStamp {
    package static let zero = WriteStamp(time: .zero, client: .server)

    /// Returns the stamp of a writer that has seen this one, or its own stamp if that is later.
    func bumped(past seen: WriteStamp) -> WriteStamp {
        let next = HybridTime(rawValue: seen.time.rawValue == .max ? .max : seen.time.rawValue + 1)
        return WriteStamp(time: max(time, next), client: client)
    }
}
