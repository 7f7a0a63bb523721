package import SluiceCore

/// The clocks of some properties of an object, as a gateway sends them to devices.
///
/// A device merges its unacknowledged writes with these times and shows the later value of each property. They omit value hashes, which the
/// device derives from the row. They also omit the order of lists and the contents of large collections. There the device's own writes
/// count as later until they are acknowledged.
package struct WriteTimes: Hashable, Sendable {
    /// The number of additions to a property that are sent one by one. It is all that the gateway keeps, so both sides count the same.
    static let sentAdditions = Merge.rememberedAdditions
    /// The number of additions to a counter inside a value that are sent one by one. Older ones count at the time of the oldest one sent.
    static let sentInnerAdditions = 4
    /// The maximum number of entries of one collection, or embedded object, that are sent.
    static let sentEntries = 32

    /// By `Property.id`.
    package var properties: [UInt32: PropertyClock]
    /// The last recorded deletion of the object, also after a new creation: a device's writes to the earlier life are void.
    package var deletion: Deletion?
    /// `true` if the object is deleted.
    package var isDeleted: Bool

    package init(properties: [UInt32: PropertyClock] = [:], deletion: Deletion? = nil, isDeleted: Bool = false) {
        self.properties = properties
        self.deletion = deletion
        self.isDeleted = isDeleted
    }

    /// The times that a change leaves.
    /// - Parameter before: The clocks stored before the change. `nil` if there were none: all times are sent.
    package init(_ clocks: ObjectClocks, since before: ObjectClocks? = nil) {
        self.init(deletion: clocks.deletion, isDeleted: clocks.isDeleted && clocks.deletion != nil)
        let isSameLife = before?.isDeleted == clocks.isDeleted
        for (id, clock) in clocks.properties {
            if isSameLife, let old = before?.properties[id], old == clock { continue }
            properties[id] = clock.sent(additions: WriteTimes.sentAdditions)
        }
    }

    package var isEmpty: Bool { properties.isEmpty && deletion == nil }

    /// The time of the latest write among them. Zero if there is none.
    package var latest: HybridTime {
        properties.values.reduce(deletion?.stamp.time ?? .zero) { max($0, $1.latest.time) }
    }

    /// The times of the properties that a session may read.
    package func visible(_ isVisible: (UInt32) -> Bool) -> WriteTimes {
        WriteTimes(properties: properties.filter { isVisible($0.key) }, deletion: deletion, isDeleted: isDeleted)
    }

    /// The times by the property numbers of another schema. Properties that it lacks are left out.
    /// - Parameter numbers: The numbers here, in the order of the type's properties. Empty if they are the same.
    package func numbered(as type: ObjectType, from numbers: [UInt32]) -> WriteTimes {
        guard numbers.count == type.properties.count else { return self }
        var times = WriteTimes(deletion: deletion, isDeleted: isDeleted)
        for (property, number) in zip(type.properties, numbers) {
            if let clock = properties[number] { times.properties[property.id] = clock }
        }
        return times
    }

    /// The combined times of two changes of an object, this one first.
    package func followed(by later: WriteTimes) -> WriteTimes {
        if later.isDeleted { return later }
        return WriteTimes(properties: properties.merging(later.properties) { $1 }, deletion: later.deletion ?? deletion)
    }
}

extension PropertyClock {
    /// - Parameter count: The additions that are sent one by one.
    fileprivate func sent(additions count: Int) -> PropertyClock {
        var clock = PropertyClock(stamp: stamp, isDefault: isDefault, reset: reset, contents: contents?.sent, sql: sql)
        clock.additions = Array(additions.suffix(count))
        let folded = additions.dropLast(count)
        for addition in folded { clock.additions[0].amount &+= addition.amount }
        return clock
    }
}

extension Contents {
    fileprivate var sent: Contents? {
        switch self {
        case .keyed(let entries) where entries.count <= WriteTimes.sentEntries:
            .keyed(entries.mapValues(\.sent))
        case .members(let members) where members.count <= WriteTimes.sentEntries: self
        case .list(let list): list.sent.map { .list($0) }
        case .keyed, .members: nil
        }
    }
}

extension Contents.Entry {
    fileprivate var sent: Contents.Entry {
        Contents.Entry(clock: clock.sent(additions: WriteTimes.sentInnerAdditions), lsn: lsn)
    }
}

extension ListClock {
    /// The present elements, with the clocks of the values changed in place. `nil` without such values, or with more than
    /// `WriteTimes.sentEntries` elements.
    ///
    /// A device names an element by its place in the list that it was sent, so the order of insertions and moves is left out.
    fileprivate var sent: ListClock? {
        guard places.contains(where: { $0.value != nil }) else { return nil }
        let present = elements
        guard present.count <= WriteTimes.sentEntries else { return nil }
        var list = ListClock(count: present.count)
        for (index, element) in present.enumerated() {
            let place = places[element.first]
            list.places[index].value = place.value?.sent
            list.places[index].original = place.original
        }
        return list
    }
}

// MARK: Coding

/// Version byte, flag byte, stamp table, then the deletion and the properties, as in the stored form of clocks: about three bytes for a
/// property and ten for each different stamp.
extension WriteTimes {
    private static let version: UInt8 = 1
    private static let hasDeletion: UInt8 = 1
    private static let isDeletedFlag: UInt8 = 2

    package var encoded: [UInt8] {
        var body = ClockWriter()
        if let deletion { body.deletion(deletion) }
        body.number(UInt64(properties.count))
        for (id, clock) in properties.sorted(by: { $0.key < $1.key }) {
            body.number(UInt64(id))
            body.clock(clock, ofProperty: false)
        }
        // The stamp table precedes the body, but is complete only after it.
        var writer = ClockWriter()
        writer.byte(WriteTimes.version)
        writer.byte((deletion == nil ? 0 : WriteTimes.hasDeletion) | (isDeleted ? WriteTimes.isDeletedFlag : 0))
        writer.table(of: body)
        writer.append(body)
        return writer.bytes
    }

    /// - Throws: `badSyntax` if the bytes are damaged or of another version.
    package init(encoded bytes: [UInt8]) throws(SluiceError) {
        do throws(SluiceError) {
            self = try WriteTimes(reading: bytes)
        } catch {
            throw SluiceError(
                .badSyntax, "The write times of an object, \(bytes.count) bytes, cannot be read: \(error.message)",
                fix: "Run a gateway and an SDK of the same release.")
        }
    }

    private init(reading bytes: [UInt8]) throws(SluiceError) {
        var reader = ClockReader(bytes: bytes)
        guard try reader.byte() == WriteTimes.version else { throw reader.damaged }
        let flags = try reader.byte()
        try reader.readTable()
        self.init()
        if flags & WriteTimes.hasDeletion != 0 { deletion = try reader.deletion() }
        isDeleted = flags & WriteTimes.isDeletedFlag != 0
        guard deletion != nil || !isDeleted else { throw reader.damaged }
        for _ in 0..<(try reader.count(of: 3)) {
            guard let id = UInt32(exactly: try reader.number()) else { throw reader.damaged }
            properties[id] = try reader.clock(ofProperty: false, depth: 0)
        }
        guard reader.isAtEnd else { throw reader.damaged }
    }
}
