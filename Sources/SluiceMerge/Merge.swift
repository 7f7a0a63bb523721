package import SluiceCore

/// The writer of a change, and the state that it had seen.
package struct WriteContext: Hashable, Sendable {
    /// The changeset's time, cut to the bound on the future (CR-30), and its client.
    package var stamp: WriteStamp
    /// The server position that the client had applied (`Changeset.base`).
    package var base: LSN
    /// The end of the server's log before this transaction writes anything: a deletion is remembered with it.
    package var now: LSN
    /// The number of the changeset; 0 if no later changeset of the client can lack it.
    package var changeset: UInt64 = 0
    /// The own changes that the writer does not see, unless its base includes them. `nil` for none.
    package var discarded: DiscardedChanges?

    package init(stamp: WriteStamp, base: LSN, now: LSN) {
        self.stamp = stamp
        self.base = base
        self.now = now
    }

    /// Returns the context for a property with discarded changes.
    fileprivate func discarding(_ changes: DiscardedChanges?) -> WriteContext {
        var writer = self
        writer.discarded = changes
        return writer
    }

    /// `true` if the base includes changes that were made at the end of the log.
    func baseSees(_ lsn: LSN) -> Bool { lsn == .zero || base > lsn }

    /// `false` if the writer created the object, and its lists have none of the changes that its base includes.
    private var hasRow: Bool { discarded?.isBeforeCreation != true }

    /// `true` if the writer sees a place of a list.
    func sees(_ place: ListClock.Place) -> Bool {
        if hasRow, baseSees(place.lsn) { return true }
        return place.stamp.client == stamp.client && place.tag >= discarded?.nextTag ?? 0
    }

    /// `true` if the writer sees a removal of an element.
    func sees(_ removal: ListClock.Removal) -> Bool {
        if hasRow, baseSees(removal.lsn) { return true }
        return removal.client == stamp.client && discarded.map { removal.changeset > $0.changeset } ?? true
    }

    /// `true` if a clear is the writer's own and its list is another one all the same. A clear of this changeset counts.
    fileprivate func hasDiscarded(_ reset: Deletion) -> Bool {
        discarded?.hasClears == true && reset.stamp.client == stamp.client && !baseSees(reset.lsn) && reset.lsn < now
    }
}

extension Deletion {
    /// `true` if the writer knew the replacement of a value. A replacement by SQL has no known position, so later writers count as knowing
    /// it.
    func admits(_ writer: WriteContext) -> Bool {
        if writer.hasDiscarded(self) { return false }
        return isKnown(to: writer) || stamp.client == .server && writer.stamp > stamp
    }
}

/// The effect of a change on an object.
package enum MergeEffect: Hashable, Sendable {
    case inserted
    /// The names of the properties whose values differ from before.
    case updated(Set<String>)
    case deleted
    case unchanged(Reason)

    package enum Reason: Hashable, Sendable {
        /// The writer did not know of a deletion (CR-1, CR-2), or edited an object that does not exist.
        case objectDeleted
        /// Every value lost against a later or explicit one, or a deletion against a later one (CR-3, CR-5, CR-6, CR-9).
        case superseded
        /// The values were there already.
        case same
    }
}

/// The conflict rules CR-1 to CR-26 of docs/merging.md. `EditMerge` has the rules for changes inside values. A set replaces a collection as
/// a whole. An embedded object merges field by field.
///
/// Any order of arrival gives one state, if each client's changes arrive in order and once. Only counter additions have an effect when
/// repeated; `ClientStore` prevents repetition. A link keeps its target's key (CR-25): the reader decides if it resolves.
package enum Merge {
    /// The number of additions to one counter that are kept one by one. Beyond it, the two oldest are added up at the later of their times.
    /// The result is exact, unless a set arrives that lies between them.
    static let rememberedAdditions = 32

    /// Applies one change. The caller must store the clocks even if the effect is `unchanged`, since they may have changed.
    /// - Throws: `unknownProperty` if the type lacks a written property, `badChangeset` if the change writes the primary key. An edit that
    ///   does not fit its property, or contradicts the list that its writer saw, is a `badChangeset` too. If a create fails by such a
    ///   contradiction, `state` can hold an empty object, and the caller must discard it. After all other errors, `state` is unchanged.
    @discardableResult
    package static func apply(
        _ change: ObjectChange, by writer: WriteContext, to state: inout ObjectState, type: ObjectType
    ) throws(SluiceError) -> MergeEffect {
        try check(change, type)
        let knowsDeletion = state.clocks.deletion?.isKnown(to: writer) ?? true
        if change.kind == .delete { return delete(by: writer, from: &state, knowsDeletion: knowsDeletion) }
        guard knowsDeletion else { return .unchanged(.objectDeleted) }
        // An absent object accepts only a create, by a writer that knew its deletion (CR-2).
        guard state.values != nil else {
            guard change.kind == .create else { return .unchanged(.objectDeleted) }
            begin(&state, writer.stamp, type)
            _ = try write(change, writer, &state, type)
            return .inserted
        }
        return try write(change, writer, &state, type)
    }

    private static func check(_ change: ObjectChange, _ type: ObjectType) throws(SluiceError) {
        for name in change.values.keys.sorted() + change.counters.keys.sorted() + change.edits.map(\.property) {
            guard let index = type.index(of: name) else {
                let hint = Suggestion.question(for: name, in: type.properties.map(\.name))
                throw SluiceError(.unknownProperty, "\(type.name) has no property '\(name)'.\(hint)")
            }
            guard index != type.primaryKey else {
                throw SluiceError(.badChangeset, "A change of \(type.name) writes the primary key '\(name)', which is fixed.")
            }
        }
        for edit in change.edits {
            guard let property = type[edit.property], edit.fits(property) else {
                throw SluiceError(.badChangeset, "A change treats \(type.name).\(edit.property) as a property of another type.")
            }
        }
    }

    private static func delete(by writer: WriteContext, from state: inout ObjectState, knowsDeletion: Bool) -> MergeEffect {
        var stamp = writer.stamp
        if let last = state.clocks.deletion {
            // Of two deletions that did not know of each other, the later one counts (CR-3).
            guard knowsDeletion || stamp > last.stamp else { return .unchanged(.superseded) }
            // A writer that knew the last deletion is later, even with a slow clock.
            if stamp < last.stamp { stamp = stamp.bumped(past: last.stamp) }
        }
        let existed = state.values != nil
        state.values = nil
        state.clocks = ObjectClocks(deletion: Deletion(stamp: stamp, lsn: writer.now), isDeleted: true)
        return existed ? .deleted : .unchanged(.objectDeleted)
    }

    // MARK: Properties

    private static func write(
        _ change: ObjectChange, _ writer: WriteContext, _ state: inout ObjectState, _ type: ObjectType
    ) throws(SluiceError) -> MergeEffect {
        var work = PropertyWork(state: state, type: type, change: change)
        for (name, value) in change.values {
            try work.on(name) { property, old, clock throws(SluiceError) in
                try set(property, value, isDefault: change.defaults.contains(name), writer, &old, &clock)
            }
        }
        for (name, amount) in change.counters {
            try work.on(name) { _, value, clock throws(SluiceError) in add(amount, to: &value, writer.stamp, &clock) }
        }
        for edit in change.edits { try work.perform(edit, by: writer) }
        return work.finish(&state)
    }

    /// The work of one change on the properties of an object, in a copy of the state. `finish` stores the copy.
    private struct PropertyWork {
        var state: ObjectState
        let type: ObjectType
        let seen: [String: ValueHash]
        let discarded: [String: DiscardedChanges]
        var touched: Set<String> = []
        var changed: Set<String> = []
        var isSuperseded = false
        /// The properties that edits have opened.
        private var open: [String: OpenProperty] = [:]
        /// The last of them: a property is often edited many times in a row.
        private var last: (name: String, property: OpenProperty)?

        init(state: ObjectState, type: ObjectType, change: ObjectChange) {
            self.state = state
            self.type = type
            (seen, discarded) = (change.seen, change.discarded)
        }

        mutating func on(
            _ name: String, _ body: (Property, inout Value, inout PropertyClock) throws(SluiceError) -> Outcome
        ) throws(SluiceError) {
            guard let property = type[name] else { return }
            // Leaves no second reference in `state`, so that further edits of this change need no copy of the value.
            var value = state.values?.updateValue(.null, forKey: name) ?? .null
            var clock = state.clocks.properties.removeValue(forKey: property.id) ?? .unwritten
            let met = clock.meet(seen[name])
            let outcome = try body(property, &value, &clock)
            clock.part(met)
            note(outcome, of: name)
            state.values?[name] = value
            state.clocks.properties[property.id] = clock
        }

        private mutating func note(_ outcome: Outcome, of name: String) {
            touched.insert(name)
            if outcome == .changed { changed.insert(name) }
            isSuperseded = isSuperseded || outcome == .lost
        }

        /// Applies an edit. All edits follow the values and counters, which need the property closed.
        mutating func perform(_ edit: Edit, by writer: WriteContext) throws(SluiceError) {
            let name = edit.property
            guard let target = opened(name) else { return }
            note(try target.apply(edit, by: writer.discarding(discarded[name]), seen: seen[name]), of: name)
        }

        private mutating func opened(_ name: String) -> OpenProperty? {
            if let last, last.name == name { return last.property }
            guard let known = open[name] ?? type[name].map({ state.open($0) }) else { return nil }
            open[name] = known
            last = (name, known)
            return known
        }

        mutating func finish(_ result: inout ObjectState) -> MergeEffect {
            last = nil
            for (name, property) in open {
                guard let id = type[name]?.id else { continue }
                let (value, clock) = property.closed()
                state.values?[name] = value
                state.clocks.properties[id] = clock
            }
            for name in touched {
                guard let id = type[name]?.id else { continue }
                state.clocks.properties[id]?.valueHash = ValueHash(state.values?[name] ?? .null)
            }
            result = state
            if !changed.isEmpty { return .updated(changed) }
            return .unchanged(isSuperseded ? .superseded : .same)
        }
    }

    /// Begins a new life of an object. Properties that its create does not write are empty (`Property.emptyValue`), and every write beats
    /// them. Without a clock, they would look like values written by SQL.
    private static func begin(_ state: inout ObjectState, _ stamp: WriteStamp, _ type: ObjectType) {
        state.values = [:]
        state.clocks = ObjectClocks(created: stamp, deletion: state.clocks.deletion)
        for (index, property) in type.properties.enumerated() where index != type.primaryKey {
            let value = property.emptyValue
            state.values?[property.name] = value
            var clock = PropertyClock.unwritten
            clock.valueHash = ValueHash(value)
            state.clocks.properties[property.id] = clock
        }
    }

    enum Outcome { case changed, same, lost }

    /// Sets a property. An embedded object merges field by field, all other values as a whole.
    private static func set(
        _ property: Property, _ value: Value, isDefault: Bool, _ writer: WriteContext, _ old: inout Value, _ clock: inout PropertyClock
    ) throws(SluiceError) -> Outcome {
        guard case .embedded = property.type, property.collection == .none, case .dictionary(let fields) = value else {
            return set(&old, to: value, isDefault: isDefault, writer, &clock, hasInside: property.hasInside)
        }
        let before = old
        let made = try EditMerge(edit: Edit(property.name, .become(.object)), writer: writer).apply(to: &old, &clock)
        if made == .lost { return .lost }
        for (name, field) in fields {
            let edit = Edit(property.name, [.key(name)], .set(field, isDefault: isDefault))
            _ = try EditMerge(edit: edit, writer: writer).apply(to: &old, &clock)
        }
        return old == before ? .same : .changed
    }

    /// - Parameter hasInside: `true` if later changes inside the new value must be distinguished from those inside the old one. By default,
    ///   it follows from both values.
    static func set(
        _ old: inout Value, to new: Value, isDefault: Bool, _ writer: WriteContext, _ clock: inout PropertyClock, hasInside: Bool? = nil
    ) -> Outcome {
        // An explicit value beats a default, then the later stamp wins. Equal stamps are one changeset: its last set wins.
        if isDefault != clock.isDefault ? isDefault : writer.stamp < clock.stamp { return .lost }
        // A default leaves the amounts added before it in force, an explicit value those added after it (CR-9).
        let additions = isDefault ? clock.additions : clock.additions.filter { $0.stamp > writer.stamp }
        let hasInside = hasInside ?? (old.mayHaveInside || new.mayHaveInside)
        clock = PropertyClock(
            stamp: writer.stamp, isDefault: isDefault, valueHash: clock.valueHash, additions: additions,
            reset: hasInside && !isDefault ? Deletion(stamp: writer.stamp, lsn: writer.now) : nil)
        // Applies the kept additions to the new value (CR-9).
        let result = adding(clock.added, to: new)
        defer { old = result }
        return old == result ? .same : .changed
    }

    /// Returns the clock of a property that the server's rules set in a merged change.
    ///
    /// The rules saw the merged result, so their value beats all of it, at any time. Against later changes it counts as a set at the
    /// change's own time.
    /// - Parameter clock: The clock of the property after the change.
    package static func amend(
        _ property: Property, to value: Value, by writer: WriteContext, _ clock: PropertyClock?
    ) -> PropertyClock {
        let latest = clock?.latest ?? .zero
        let stamp = writer.stamp < latest ? writer.stamp.bumped(past: latest) : writer.stamp
        return PropertyClock(
            stamp: stamp, valueHash: ValueHash(value), reset: property.hasInside ? Deletion(stamp: stamp, lsn: writer.now) : nil)
    }

    static func add(_ amount: Int64, to value: inout Value, _ stamp: WriteStamp, _ clock: inout PropertyClock) -> Outcome {
        // A later explicit set discards the addition (CR-9).
        if !clock.isDefault, stamp < clock.stamp { return .lost }
        clock.remember(PropertyClock.Addition(stamp: stamp, amount: amount))
        let result = adding(amount, to: value)
        defer { value = result }
        return value == result ? .same : .changed
    }

    /// Returns the sum. Null and values of other types are unchanged (CR-10).
    private static func adding(_ amount: Int64, to value: Value) -> Value {
        if case .int(let number) = value { .int(number &+ amount) } else { value }
    }
}

extension Property {
    /// `true` if a value of the property can be a container.
    var hasInside: Bool {
        switch type {
        case .mixed, .embedded: true
        default: collection != .none
        }
    }
}

extension Value {
    fileprivate var mayHaveInside: Bool {
        switch self {
        case .null, .list, .dictionary: true
        default: false
        }
    }
}

extension PropertyClock {
    fileprivate mutating func remember(_ addition: Addition) {
        // Additions with one stamp are one addition.
        if let same = additions.firstIndex(where: { $0.stamp == addition.stamp }) {
            additions[same].amount &+= addition.amount
            return
        }
        additions.insert(addition, at: additions.firstIndex { $0.stamp > addition.stamp } ?? additions.endIndex)
        // The two oldest become one, with the later stamp.
        if additions.count > Merge.rememberedAdditions {
            let oldest = additions.removeFirst()
            additions[0].amount &+= oldest.amount
        }
    }
}
