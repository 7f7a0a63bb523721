import SluiceCore

/// One edit of a writer, with the rules for changes inside values (CR-11 to CR-24).
struct EditMerge {
    let edit: Edit
    let writer: WriteContext

    /// - Throws: `badChangeset` if the edit contradicts the list that its writer can have seen (CR-26).
    func apply(to value: inout Value, _ clock: inout PropertyClock) throws(SluiceError) -> Merge.Outcome {
        try descend(edit.path[...], &value, &clock)
    }

    private func descend(
        _ path: ArraySlice<EditStep>, _ value: inout Value, _ clock: inout PropertyClock
    ) throws(SluiceError) -> Merge.Outcome {
        guard let step = path.first else { return try perform(&value, &clock) }
        guard clock.reset?.admits(writer) ?? true else { return .lost }
        let rest = path.dropFirst()
        switch (step, value) {
        case (.key(let key), .dictionary(var fields)):
            // Drops the second reference, which would force a copy of the container.
            value = .null
            defer { value = .dictionary(fields) }
            return try descend(rest, into: key, &fields, &clock)
        case (.element(let reference), .list(let elements)):
            let list = OpenList.open(elements, &clock.contents, by: writer)
            value = .null
            defer { list.close(&value, &clock.contents) }
            return try descend(rest, into: reference, list)
        default: return .lost
        }
    }

    // MARK: Keys

    func descend(
        _ rest: ArraySlice<EditStep>, into key: String, _ fields: inout [String: Value], _ clock: inout PropertyClock
    ) throws(SluiceError) -> Merge.Outcome {
        let isNew = fields[key] == nil
        var entry = clock.entry(key) ?? (isNew ? .unwritten : .ofWhole)
        if rest.isEmpty, edit.action == .remove {
            guard writer.stamp >= entry.stamp || entry.isDefault else { return .lost }
            let before = fields.removeValue(forKey: key)
            // Later additions count if a set arrives that lies between, in either order of the two (CR-10).
            entry = PropertyClock(
                stamp: writer.stamp, additions: entry.additions.filter { $0.stamp > writer.stamp },
                reset: Deletion(stamp: writer.stamp, lsn: writer.now))
            clock.setEntry(key, entry, writer.now)
            return before == nil ? .same : .changed
        }
        if isNew {
            guard rest.isEmpty else { return .lost }
            if case .add(let amount) = edit.action { return add(amount, toAbsent: key, &entry, &clock) }
        }
        var value = fields[key] ?? .null
        let outcome = try descend(rest, &value, &entry)
        if isNew, outcome == .lost { return .lost }
        fields[key] = value
        clock.setEntry(key, entry, writer.now)
        return isNew ? .changed : outcome
    }

    /// Records an addition to an absent key. It has no effect now, but counts if an older set arrives (CR-10).
    private func add(
        _ amount: Int64, toAbsent key: String, _ entry: inout PropertyClock, _ clock: inout PropertyClock
    ) -> Merge.Outcome {
        var nothing = Value.null
        let outcome = Merge.add(amount, to: &nothing, writer.stamp, &entry)
        if outcome != .lost { clock.setEntry(key, entry, writer.now) }
        return .lost
    }

    // MARK: Elements

    func descend(
        _ rest: ArraySlice<EditStep>, into reference: ElementRef, _ list: OpenList
    ) throws(SluiceError) -> Merge.Outcome {
        // The size is that of the edit's own list. An insertion at this place concerns the list inside of the element.
        if rest.isEmpty, !edit.action.isInsertion, let size = edit.priorSize { try list.checkSize(size) }
        guard let found = try list.find(reference) else { return .lost }
        if rest.isEmpty, case .remove = edit.action { return list.remove(found.first) }
        if rest.isEmpty, case .move(let after, let tag) = edit.action { return try list.move(found.first, behind: after, tag) }
        // A removed element is neither restored nor changed (CR-12).
        guard list.presentPlace(of: found.first) != nil else { return .lost }
        var inner = list.clock(of: found.first)
        let hash = list.originalHash(of: found.first)
        let outcome = try descend(rest, &list.values[found.first], &inner)
        if outcome == .lost { return .lost }
        list.change(found.first, hash, inner)
        return outcome
    }

    func insert(
        _ new: Value, behind after: ElementRef?, _ tag: UInt64, into list: OpenList
    ) throws(SluiceError) -> Merge.Outcome {
        if let size = edit.priorSize { try list.checkSize(size) }
        return try list.insert(new, behind: after, tag)
    }

    // MARK: Places

    func perform(_ value: inout Value, _ clock: inout PropertyClock) throws(SluiceError) -> Merge.Outcome {
        switch edit.action {
        case .set(let new, let isDefault): return Merge.set(&value, to: new, isDefault: isDefault, writer, &clock)
        case .add(let amount): return Merge.add(amount, to: &value, writer.stamp, &clock)
        case .become(let container): return become(container, &value, &clock)
        case .clear(let container): return clear(container, &value, &clock)
        case .insert(let new, let after, let tag): return try insert(new, behind: after, tag, &value, &clock)
        case .setInsert(let member): return change(member, isThere: true, &value, &clock)
        case .setErase(let member): return change(member, isThere: false, &value, &clock)
        case .remove, .move: return .lost
        }
    }

    /// Makes the place a container. An embedded object needs a writer that knows the last reset of the place, at any time (CR-22). Two
    /// sides that make the same container share it (CR-21, CR-24). Against other values, the later one wins.
    private func become(_ container: Edit.Container, _ value: inout Value, _ clock: inout PropertyClock) -> Merge.Outcome {
        let isKnown = clock.reset?.admits(writer) ?? true
        if value.isContainer(container) {
            if container == .object, !isKnown { return .lost }
            clock.makeExplicit()
            if container != .object { clock.stamp = max(clock.stamp, writer.stamp) }
            return .same
        }
        if container == .object {
            guard isKnown else { return .lost }
            clock.makeExplicit()
        } else {
            guard clock.isDefault || writer.stamp >= clock.stamp else { return .lost }
            // Other writers share the container, so its reset voids only the changes that this writer did not know of.
            let reset = isKnown ? clock.reset : Deletion(stamp: writer.stamp, lsn: writer.now)
            clock = PropertyClock(stamp: writer.stamp, valueHash: clock.valueHash, reset: reset)
        }
        clock.additions = []
        clock.contents = nil
        value = container.empty
        return .changed
    }

    /// Empties a container and voids the changes inside that the writer does not know of (CR-16). Of two clears that did not know of each
    /// other, the later one counts (CR-17).
    private func clear(_ container: Edit.Container, _ value: inout Value, _ clock: inout PropertyClock) -> Merge.Outcome {
        guard value.isContainer(container) else { return .lost }
        var stamp = writer.stamp
        if let last = clock.reset {
            guard last.admits(writer) || stamp > last.stamp else { return .lost }
            if stamp < last.stamp { stamp = stamp.bumped(past: last.stamp) }
        }
        clock.makeExplicit()
        clock.stamp = max(clock.stamp, stamp)
        clock.reset = Deletion(stamp: stamp, lsn: writer.now)
        clock.contents = nil
        defer { value = container.empty }
        return value == container.empty ? .same : .changed
    }

    private func insert(
        _ new: Value, behind after: ElementRef?, _ tag: UInt64, _ value: inout Value, _ clock: inout PropertyClock
    ) throws(SluiceError) -> Merge.Outcome {
        guard case .list(let elements) = value, clock.reset?.admits(writer) ?? true else { return .lost }
        let list = OpenList.open(elements, &clock.contents, by: writer)
        value = .null
        defer { list.close(&value, &clock.contents) }
        let outcome = try insert(new, behind: after, tag, into: list)
        if outcome == .changed { clock.makeExplicit() }
        return outcome
    }

    /// Inserts or removes a member of a set. Of changes to equal members, the later one counts (CR-19).
    private func change(_ member: Value, isThere: Bool, _ value: inout Value, _ clock: inout PropertyClock) -> Merge.Outcome {
        guard case .list(var members) = value, clock.reset?.admits(writer) ?? true else { return .lost }
        let hash = ValueHash(member)
        var known = clock.members
        if let last = known[hash], writer.stamp < last.stamp { return .lost }
        known[hash] = Contents.Member(stamp: writer.stamp, lsn: writer.now)
        clock.contents = .members(known)
        clock.makeExplicit()
        let index = members.firstIndex { ValueHash($0) == hash }
        guard (index != nil) != isThere else { return .same }
        if let index { members.remove(at: index) } else { members.append(member) }
        value = .set(members)
        return .changed
    }
}

extension PropertyClock {
    /// The clock of a value at a key without a clock. The value arrived with the whole, which each writer knows.
    static let ofWhole = PropertyClock(stamp: .zero)

    func entry(_ key: String) -> PropertyClock? {
        guard case .keyed(let entries)? = contents else { return nil }
        return entries[key]?.clock
    }

    mutating func setEntry(_ key: String, _ clock: PropertyClock, _ lsn: LSN) {
        var entries: [String: Contents.Entry] = [:]
        if case .keyed(let known)? = contents { entries = known }
        contents = nil
        entries[key] = Contents.Entry(clock: clock, lsn: lsn)
        contents = .keyed(entries)
        makeExplicit()
    }

    /// Turns a default into an explicit value of time zero. A change inside a value is no default, but does not count as a set of the
    /// value.
    mutating func makeExplicit() {
        guard isDefault else { return }
        isDefault = false
        stamp = .zero
    }

    fileprivate var members: [ValueHash: Contents.Member] {
        if case .members(let members)? = contents { members } else { [:] }
    }

    /// Returns the clock of a list of `count` elements. If the stored clock has another count, it returns a new one without history.
    func list(of count: Int) -> ListClock {
        if case .list(let list)? = contents, list.elements.count == count { return list }
        return ListClock(count: count)
    }
}

extension Edit.Action {
    fileprivate var isInsertion: Bool { if case .insert = self { true } else { false } }
}

extension Edit.Container {
    fileprivate var empty: Value {
        switch self {
        case .list, .set: .list([])
        case .dictionary, .object: .dictionary([:])
        }
    }
}

extension Value {
    fileprivate func isContainer(_ container: Edit.Container) -> Bool {
        switch (self, container) {
        case (.list, .list), (.list, .set), (.dictionary, .dictionary), (.dictionary, .object): true
        default: false
        }
    }
}

extension Edit {
    /// `true` if the edit fits the kind of the property. The merge checks deeper steps.
    func fits(_ property: Property) -> Bool {
        switch (property.collection, path.first, action) {
        case (.list, .element, _), (.list, nil, .insert), (.list, nil, .clear(.list)), (.list, nil, .become(.list)): true
        case (.set, nil, .setInsert), (.set, nil, .setErase), (.set, nil, .clear(.set)), (.set, nil, .become(.set)): true
        case (.dictionary, .key, _), (.dictionary, nil, .clear(.dictionary)), (.dictionary, nil, .become(.dictionary)): true
        case (_, nil, .set): true
        case (.none, _, _): fitsSingle(property.type)
        default: false
        }
    }

    private func fitsSingle(_ type: PropertyType) -> Bool {
        switch (type, path.first, action) {
        case (.mixed, _, .setInsert), (.mixed, _, .setErase): !path.isEmpty
        case (.mixed, _, _), (.embedded, .key, _), (.embedded, nil, .become(.object)): true
        case (.int, nil, .add): true
        default: false
        }
    }
}
