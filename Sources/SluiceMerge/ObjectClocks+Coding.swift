package import SluiceCore

/// The stored form: about nine bytes for a property and ten for each different stamp.
///
/// Version byte 1, flag byte, stamp table, then creation, deletion and properties, which name stamps by their index in the table. Counts,
/// numbers and indices are LEB128. Hashes, times and LSNs of deletions are eight bytes, little-endian.
extension ObjectClocks {
    private static let version: UInt8 = 1

    private enum Flag {
        static let created: UInt8 = 1
        static let deletion: UInt8 = 2
        static let isDeleted: UInt8 = 4
    }

    package var encoded: [UInt8] {
        var body = ClockWriter()
        if let created { body.stamp(created) }
        if let deletion { body.deletion(deletion) }
        body.number(UInt64(properties.count))
        for (id, clock) in properties.sorted(by: { $0.key < $1.key }) {
            body.number(UInt64(id))
            body.clock(clock, ofProperty: true)
        }
        // The stamp table precedes the body, but is complete only after it.
        var writer = ClockWriter()
        writer.byte(ObjectClocks.version)
        writer.byte(
            (created == nil ? 0 : Flag.created) | (deletion == nil ? 0 : Flag.deletion) | (isDeleted ? Flag.isDeleted : 0))
        writer.table(of: body)
        writer.append(body)
        return writer.bytes
    }

    /// - Throws: `internalError` if the bytes are damaged or of another version.
    package init(encoded bytes: [UInt8]) throws(SluiceError) {
        var reader = ClockReader(bytes: bytes)
        let version = try reader.byte()
        guard version == ObjectClocks.version else {
            throw SluiceError(
                .internalError, "The clocks of an object have version \(version), this release needs \(ObjectClocks.version).",
                fix: "Run the release that wrote them.")
        }
        let flags = try reader.byte()
        try reader.readTable()
        self.init(isDeleted: flags & Flag.isDeleted != 0)
        if flags & Flag.created != 0 { created = try reader.stamp() }
        if flags & Flag.deletion != 0 { deletion = try reader.deletion() }
        for _ in 0..<(try reader.count(of: 11)) {
            guard let id = UInt32(exactly: try reader.number()) else { throw reader.damaged }
            properties[id] = try reader.clock(ofProperty: true, depth: 0)
        }
        guard reader.isAtEnd else { throw reader.damaged }
    }
}

private enum ClockFlag {
    static let isDefault: UInt8 = 1
    static let additions: UInt8 = 2
    static let reset: UInt8 = 4
    static let contents: UInt8 = 8
    static let sql: UInt8 = 16
}

private enum ContentsKind {
    static let keyed: UInt8 = 1
    static let members: UInt8 = 2
    static let list: UInt8 = 3
}

private enum PlaceFlag {
    static let isLeft: UInt8 = 1
    static let parent: UInt8 = 2
    static let element: UInt8 = 4
    static let removals: UInt8 = 8
    static let value: UInt8 = 16
    static let original: UInt8 = 32
    /// The removals have the numbers of their changesets.
    static let numbered: UInt8 = 64
}

extension ListClock.Place {
    fileprivate var hasNumberedRemovals: Bool { removals.contains { $0.changeset > 0 } }
}

extension PropertyClock {
    /// The SQL write that the server's stamp implies without a stored one.
    fileprivate var standingSQL: SQLWrite? {
        stamp.client == .server && stamp != .zero ? SQLWrite(stamp: stamp, hash: valueHash) : nil
    }

    fileprivate var untoldSQL: SQLWrite? { sql == standingSQL ? nil : sql }
}

extension ClockWriter {
    mutating func deletion(_ deletion: Deletion) {
        stamp(deletion.stamp)
        fixed(deletion.lsn.rawValue)
    }

    mutating func clock(_ clock: PropertyClock, ofProperty: Bool) {
        byte(
            (clock.isDefault ? ClockFlag.isDefault : 0) | (clock.additions.isEmpty ? 0 : ClockFlag.additions)
                | (clock.reset == nil ? 0 : ClockFlag.reset) | (clock.contents == nil ? 0 : ClockFlag.contents)
                | (clock.untoldSQL == nil ? 0 : ClockFlag.sql))
        stamp(clock.stamp)
        if ofProperty { fixed(clock.valueHash.rawValue) }
        if !clock.additions.isEmpty {
            number(UInt64(clock.additions.count))
            for addition in clock.additions {
                stamp(addition.stamp)
                fixed(UInt64(bitPattern: addition.amount))
            }
        }
        if let reset = clock.reset { deletion(reset) }
        if let contents = clock.contents { self.contents(contents) }
        if let sql = clock.untoldSQL {
            stamp(sql.stamp)
            fixed(sql.hash.rawValue)
        }
    }

    private mutating func entry(_ entry: Contents.Entry) {
        number(entry.lsn.rawValue)
        clock(entry.clock, ofProperty: false)
    }

    private mutating func contents(_ contents: Contents) {
        switch contents {
        case .keyed(let entries):
            byte(ContentsKind.keyed)
            number(UInt64(entries.count))
            for (key, entry) in entries.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
                text(key)
                self.entry(entry)
            }
        case .members(let members):
            byte(ContentsKind.members)
            number(UInt64(members.count))
            for (hash, member) in members.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                fixed(hash.rawValue)
                stamp(member.stamp)
                number(member.lsn.rawValue)
            }
        case .list(let list):
            byte(ContentsKind.list)
            self.list(list)
        }
    }

    /// Places name each other by their index, from left to right.
    private mutating func list(_ list: ListClock) {
        let indices = Dictionary(list.places.enumerated().map { ($1.id, $0) }, uniquingKeysWith: { first, _ in first })
        number(UInt64(list.places.count))
        for place in list.places {
            let (parent, element) = (place.parent.flatMap { indices[$0] }, place.element.flatMap { indices[$0] })
            byte(
                (place.isLeft ? PlaceFlag.isLeft : 0) | (parent == nil ? 0 : PlaceFlag.parent) | (element == nil ? 0 : PlaceFlag.element)
                    | (place.removals.isEmpty ? 0 : PlaceFlag.removals) | (place.value == nil ? 0 : PlaceFlag.value)
                    | (place.original == nil ? 0 : PlaceFlag.original) | (place.hasNumberedRemovals ? PlaceFlag.numbered : 0))
            stamp(place.stamp)
            number(place.tag)
            number(place.lsn.rawValue)
            if let parent { number(UInt64(parent)) }
            if let element { number(UInt64(element)) }
            if !place.removals.isEmpty {
                number(UInt64(place.removals.count))
                for removal in place.removals {
                    number(removal.client.rawValue)
                    number(removal.lsn.rawValue)
                    if place.hasNumberedRemovals { number(removal.changeset) }
                }
            }
            if let value = place.value { entry(value) }
            if let original = place.original {
                fixed(original.hash.rawValue)
                number(original.until.rawValue)
            }
        }
    }
}

extension ClockReader {
    mutating func deletion() throws(SluiceError) -> Deletion {
        let stamp = try self.stamp()
        return Deletion(stamp: stamp, lsn: LSN(rawValue: try fixed()))
    }

    mutating func clock(ofProperty: Bool, depth: Int) throws(SluiceError) -> PropertyClock {
        // Damaged bytes must not exhaust the stack.
        guard depth <= Limits.nestingDepth else { throw damaged }
        let flags = try byte()
        var clock = PropertyClock(stamp: try stamp(), isDefault: flags & ClockFlag.isDefault != 0)
        if ofProperty { clock.valueHash = ValueHash(rawValue: try fixed()) }
        if flags & ClockFlag.additions != 0 {
            for _ in 0..<(try count(of: 9)) {
                let stamp = try self.stamp()
                clock.additions.append(PropertyClock.Addition(stamp: stamp, amount: Int64(bitPattern: try fixed())))
            }
        }
        if flags & ClockFlag.reset != 0 { clock.reset = try deletion() }
        if flags & ClockFlag.contents != 0 { clock.contents = try contents(depth: depth) }
        if ofProperty { clock.sql = clock.standingSQL }
        if flags & ClockFlag.sql != 0 {
            let stamp = try self.stamp()
            clock.sql = SQLWrite(stamp: stamp, hash: ValueHash(rawValue: try fixed()))
        }
        return clock
    }

    private mutating func entry(depth: Int) throws(SluiceError) -> Contents.Entry {
        let lsn = LSN(rawValue: try number())
        return Contents.Entry(clock: try clock(ofProperty: false, depth: depth + 1), lsn: lsn)
    }

    private mutating func contents(depth: Int) throws(SluiceError) -> Contents {
        switch try byte() {
        case ContentsKind.keyed:
            var entries: [String: Contents.Entry] = [:]
            for _ in 0..<(try count(of: 4)) {
                let key = try text()
                entries[key] = try entry(depth: depth)
            }
            return .keyed(entries)
        case ContentsKind.members:
            var members: [ValueHash: Contents.Member] = [:]
            for _ in 0..<(try count(of: 10)) {
                let hash = ValueHash(rawValue: try fixed())
                let stamp = try self.stamp()
                members[hash] = Contents.Member(stamp: stamp, lsn: LSN(rawValue: try number()))
            }
            return .members(members)
        case ContentsKind.list: return .list(try list(depth: depth))
        default: throw damaged
        }
    }

    private mutating func list(depth: Int) throws(SluiceError) -> ListClock {
        var list = ListClock()
        var (parents, elements): ([Int: UInt64], [Int: UInt64]) = ([:], [:])
        for index in 0..<(try count(of: 4)) {
            let flags = try byte()
            let (stamp, tag) = (try self.stamp(), try number())
            var place = ListClock.Place(
                stamp: stamp, tag: tag, parent: nil, isLeft: flags & PlaceFlag.isLeft != 0, element: nil, lsn: LSN(rawValue: try number()))
            if flags & PlaceFlag.parent != 0 { parents[index] = try number() }
            if flags & PlaceFlag.element != 0 { elements[index] = try number() }
            if flags & PlaceFlag.removals != 0 {
                for _ in 0..<(try count(of: 2)) {
                    let (client, lsn) = (ClientID(rawValue: try number()), LSN(rawValue: try number()))
                    let changeset = flags & PlaceFlag.numbered != 0 ? try number() : 0
                    place.removals.append(ListClock.Removal(client: client, lsn: lsn, changeset: changeset))
                }
            }
            if flags & PlaceFlag.value != 0 { place.value = try entry(depth: depth) }
            if flags & PlaceFlag.original != 0 {
                place.original = ListClock.Original(hash: ValueHash(rawValue: try fixed()), until: LSN(rawValue: try number()))
            }
            list.places.append(place)
        }
        // A parent can follow its child, so references resolve after all places are read.
        for (index, parent) in parents { list.places[index].parent = try id(of: parent, in: list) }
        for (index, element) in elements { list.places[index].element = try id(of: element, in: list) }
        return list
    }

    private func id(of index: UInt64, in list: ListClock) throws(SluiceError) -> ListClock.ID {
        guard index < UInt64(list.places.count) else { throw damaged }
        return list.places[Int(index)].id
    }
}
