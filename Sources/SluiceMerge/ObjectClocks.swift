package import SluiceCore

/// Who wrote a value, and when: of a property, or of a place inside of a property's value.
package struct PropertyClock: Hashable, Sendable {
    /// The set that holds; amounts added since have their own stamps.
    package var stamp: WriteStamp
    /// Whether the value is one given by default at creation: it loses against every explicit one (CR-6).
    package var isDefault: Bool
    /// Of the value in the row, additions included. Another hash in the row means that SQL wrote it. Of properties only.
    package var valueHash: ValueHash
    /// What was added and must be added again should an older set arrive (CR-8 to CR-10); ascending by stamp.
    package var additions: [Addition]
    /// When the value was last replaced or emptied as a whole: what is written inside by somebody who does not know of it is
    /// void (CR-16, CR-22, CR-23). Nil when everybody knows, and for what has no inside.
    package var reset: Deletion?
    /// What was changed inside since; nil when nothing is remembered.
    package var contents: Contents?
    /// What SQL wrote last, unless a later set has replaced it. Of properties only.
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

    /// Of a value that SQL wrote.
    init(sql: SQLWrite, reset: Deletion? = nil) {
        self.init(stamp: sql.stamp, valueHash: sql.hash, reset: reset, sql: sql)
    }

    /// Of a property that nobody has written: everything beats it.
    package static let unwritten = PropertyClock(stamp: .zero, isDefault: true, valueHash: ValueHash(.null))

    /// Of the latest thing that happened to the value, inside of it too.
    var latest: WriteStamp {
        max(stamp, additions.last?.stamp ?? stamp, reset?.stamp ?? stamp, contents?.latest ?? stamp)
    }

    /// The sum of the additions; they wrap like the counters themselves.
    var added: Int64 { additions.reduce(0) { $0 &+ $1.amount } }
}

/// What is remembered of changes inside of a value.
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
    /// The end of the log before its transaction wrote anything: who has applied more than that has seen it, or could have.
    /// Zero: everybody counts as having seen it.
    package var lsn: LSN

    package init(stamp: WriteStamp, lsn: LSN) {
        self.stamp = stamp
        self.lsn = lsn
    }

    /// Whether a writer had seen it: it is in what they had applied, or their own and their changes come in order.
    func isKnown(to writer: WriteContext) -> Bool {
        lsn == .zero || writer.base > lsn || writer.stamp.client == stamp.client
    }

    /// The same of a value that was replaced. Where SQL replaced it nobody saw; who writes later counts as having seen it.
    func admits(_ writer: WriteContext) -> Bool {
        isKnown(to: writer) || stamp.client == .server && writer.stamp > stamp
    }
}

/// The companion of an object: what merging needs to know besides the values.
package struct ObjectClocks: Hashable, Sendable {
    /// By `Property.id`; numbers that the schema no longer has are kept.
    package var properties: [UInt32: PropertyClock]
    /// Of the first create of this life of the object.
    package var created: WriteStamp?
    /// The last deletion, kept after the object has been created again: what was written without knowing of it is void.
    package var deletion: Deletion?
    /// Whether the object is gone; then `deletion` says since when.
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

    /// The stamp of a writer who has seen this one, or an independent later one.
    func bumped(past seen: WriteStamp) -> WriteStamp {
        let next = HybridTime(rawValue: seen.time.rawValue == .max ? .max : seen.time.rawValue + 1)
        return WriteStamp(time: max(time, next), client: client)
    }
}
