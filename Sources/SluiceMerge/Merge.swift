package import SluiceCore

/// Who makes a change, and what they knew.
package struct WriteContext: Hashable, Sendable {
    /// The changeset's time, cut to the bound on the future (CR-30), and its client.
    package var stamp: WriteStamp
    /// The server position that the client had applied (`Changeset.base`).
    package var base: LSN
    /// The end of the server's log before this transaction writes anything: a deletion is remembered with it.
    package var now: LSN

    package init(stamp: WriteStamp, base: LSN, now: LSN) {
        self.stamp = stamp
        self.base = base
        self.now = now
    }
}

/// What a change did to an object.
package enum MergeEffect: Hashable, Sendable {
    case inserted
    /// The properties whose values are others than before.
    case updated(Set<String>)
    case deleted
    case unchanged(Reason)

    package enum Reason: Hashable, Sendable {
        /// A deletion that the writer did not know of (CR-1, CR-2), or an edit of an object that is not there.
        case objectDeleted
        /// Every value lost against a later or explicit one, or a deletion against a later one (CR-3, CR-5, CR-6, CR-9).
        case superseded
        /// The values were there already.
        case same
    }
}

/// The conflict rules (CR-1 to CR-26 of the server specification; DESIGN section 5); those for what is inside of values are in
/// `EditMerge`. A collection that is set as a whole is replaced as a whole; an embedded object merges field by field.
///
/// Any order of arrival gives one state, as long as each client's changes come in their order and each once: adding to a
/// counter is the one thing that repeating changes (`ClientStore` sees to it that nothing is repeated). A link keeps its
/// target's key whatever becomes of the target (CR-25): whether it resolves is decided where it is read.
package enum Merge {
    /// How many additions to one counter are remembered one by one. Beyond, the two oldest become one that counts from
    /// the later of their times: exact, unless a set arrives that lies between them.
    static let rememberedAdditions = 32

    /// Applies one change. Also when the effect is `unchanged`, the clocks may have changed and must be stored.
    /// - Throws: `unknownProperty` when the type lacks a property that is written, `badChangeset` when the primary key is
    ///   written; nothing has happened then.
    @discardableResult
    package static func apply(
        _ change: ObjectChange, by writer: WriteContext, to state: inout ObjectState, type: ObjectType
    ) throws(SluiceError) -> MergeEffect {
        try check(change, type)
        let knowsDeletion = state.clocks.deletion?.isKnown(to: writer) ?? true
        if change.kind == .delete { return delete(by: writer, from: &state, knowsDeletion: knowsDeletion) }
        guard knowsDeletion else { return .unchanged(.objectDeleted) }
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
                throw SluiceError(.badChangeset, "A change treats \(type.name).\(edit.property) as what it is not.")
            }
        }
    }

    private static func delete(by writer: WriteContext, from state: inout ObjectState, knowsDeletion: Bool) -> MergeEffect {
        var stamp = writer.stamp
        if let last = state.clocks.deletion {
            // Of two deletions that did not know of each other the later counts (CR-3).
            guard knowsDeletion || stamp > last.stamp else { return .unchanged(.superseded) }
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
        var work = PropertyWork(state: state, type: type, seen: change.seen)
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

    /// One change at work on the properties of an object; when it fails nothing has happened.
    private struct PropertyWork {
        var state: ObjectState
        let type: ObjectType
        let seen: [String: ValueHash]
        var touched: Set<String> = []
        var changed: Set<String> = []
        var isSuperseded = false
        /// The properties that are edited inside.
        private var open: [String: OpenProperty] = [:]
        /// One is edited many times in a row.
        private var last: (name: String, property: OpenProperty)?

        init(state: ObjectState, type: ObjectType, seen: [String: ValueHash]) {
            self.state = state
            self.type = type
            self.seen = seen
        }

        mutating func on(
            _ name: String, _ body: (Property, inout Value, inout PropertyClock) throws(SluiceError) -> Outcome
        ) throws(SluiceError) {
            guard let property = type[name] else { return }
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

        /// Edits come after values and amounts.
        mutating func perform(_ edit: Edit, by writer: WriteContext) throws(SluiceError) {
            let name = edit.property
            guard let target = opened(name) else { return }
            note(try target.apply(edit, by: writer, seen: seen[name]), of: name)
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

    /// A new life of an object. What its create does not write is empty (`Property.emptyValue`), and everything beats it;
    /// were it left without a clock, it would look like a value written by SQL.
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

    /// An embedded object merges field by field, everything else is a whole.
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

    /// - Parameter hasInside: whether what others do inside of the value is to be told from what they did inside of the old one.
    static func set(
        _ old: inout Value, to new: Value, isDefault: Bool, _ writer: WriteContext, _ clock: inout PropertyClock, hasInside: Bool? = nil
    ) -> Outcome {
        // Explicit before default, then the later; of one transaction the last.
        if isDefault != clock.isDefault ? isDefault : writer.stamp < clock.stamp { return .lost }
        // A default leaves the amounts added before it in force, an explicit value those added after it (CR-9).
        let additions = isDefault ? clock.additions : clock.additions.filter { $0.stamp > writer.stamp }
        let hasInside = hasInside ?? (old.mayHaveInside || new.mayHaveInside)
        clock = PropertyClock(
            stamp: writer.stamp, isDefault: isDefault, valueHash: clock.valueHash, additions: additions,
            reset: hasInside && !isDefault ? Deletion(stamp: writer.stamp, lsn: writer.now) : nil)
        let result = adding(clock.added, to: new)
        defer { old = result }
        return old == result ? .same : .changed
    }

    /// The clock of a property that the server's rules set in a change which has been merged.
    ///
    /// They saw what the change came to, so their value stands against all of that, whoever wrote it when; against whatever comes later
    /// it counts as a set of the change's own time.
    /// - Parameter clock: of the property, after the change.
    package static func amend(
        _ property: Property, to value: Value, by writer: WriteContext, _ clock: PropertyClock?
    ) -> PropertyClock {
        let latest = clock?.latest ?? .zero
        let stamp = writer.stamp < latest ? writer.stamp.bumped(past: latest) : writer.stamp
        return PropertyClock(
            stamp: stamp, valueHash: ValueHash(value), reset: property.hasInside ? Deletion(stamp: stamp, lsn: writer.now) : nil)
    }

    static func add(_ amount: Int64, to value: inout Value, _ stamp: WriteStamp, _ clock: inout PropertyClock) -> Outcome {
        if !clock.isDefault, stamp < clock.stamp { return .lost }
        clock.remember(PropertyClock.Addition(stamp: stamp, amount: amount))
        let result = adding(amount, to: value)
        defer { value = result }
        return value == result ? .same : .changed
    }

    /// Null and values of other types stay as they are (CR-10).
    private static func adding(_ amount: Int64, to value: Value) -> Value {
        if case .int(let number) = value { .int(number &+ amount) } else { value }
    }
}

extension Property {
    /// Whether a value of it can be a container.
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
        if let same = additions.firstIndex(where: { $0.stamp == addition.stamp }) {
            additions[same].amount &+= addition.amount
            return
        }
        additions.insert(addition, at: additions.firstIndex { $0.stamp > addition.stamp } ?? additions.endIndex)
        if additions.count > Merge.rememberedAdditions {
            let oldest = additions.removeFirst()
            additions[0].amount &+= oldest.amount
        }
    }
}
