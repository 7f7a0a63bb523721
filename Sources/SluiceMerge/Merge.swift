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

/// The conflict rules (CR-1 to CR-10 and CR-25 of the server specification; DESIGN section 5). Collections and embedded
/// objects are merged as whole values.
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
        let knowsDeletion = state.clocks.deletion.map { knows($0, writer) } ?? true
        if change.kind == .delete { return delete(by: writer, from: &state, knowsDeletion: knowsDeletion) }
        guard knowsDeletion else { return .unchanged(.objectDeleted) }
        guard state.values != nil else {
            guard change.kind == .create else { return .unchanged(.objectDeleted) }
            begin(&state, writer.stamp, type)
            _ = write(change, writer.stamp, &state, type)
            return .inserted
        }
        return write(change, writer.stamp, &state, type)
    }

    private static func check(_ change: ObjectChange, _ type: ObjectType) throws(SluiceError) {
        for name in change.values.keys.sorted() + change.counters.keys.sorted() {
            guard let index = type.index(of: name) else {
                let hint = Suggestion.question(for: name, in: type.properties.map(\.name))
                throw SluiceError(.unknownProperty, "\(type.name) has no property '\(name)'.\(hint)")
            }
            guard index != type.primaryKey else {
                throw SluiceError(.badChangeset, "A change of \(type.name) writes the primary key '\(name)', which is fixed.")
            }
        }
    }

    /// Whether a writer had seen a deletion: it is in what they had applied, or their own and their changes come in order.
    private static func knows(_ deletion: Deletion, _ writer: WriteContext) -> Bool {
        deletion.lsn == .zero || writer.base > deletion.lsn || writer.stamp.client == deletion.stamp.client
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
        _ change: ObjectChange, _ stamp: WriteStamp, _ state: inout ObjectState, _ type: ObjectType
    ) -> MergeEffect {
        var changed: Set<String> = []
        var isSuperseded = false
        for (name, value) in change.values {
            guard let property = type[name] else { continue }
            let outcome = set(property, value, isDefault: change.defaults.contains(name), stamp, &state)
            if outcome == .changed { changed.insert(name) }
            isSuperseded = isSuperseded || outcome == .lost
        }
        for (name, amount) in change.counters {
            guard let property = type[name] else { continue }
            let outcome = add(property, amount, stamp, &state)
            if outcome == .changed { changed.insert(name) }
            isSuperseded = isSuperseded || outcome == .lost
        }
        if !changed.isEmpty { return .updated(changed) }
        return .unchanged(isSuperseded ? .superseded : .same)
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

    private enum Outcome { case changed, same, lost }

    private static func set(
        _ property: Property, _ value: Value, isDefault: Bool, _ stamp: WriteStamp, _ state: inout ObjectState
    ) -> Outcome {
        let clock = state.clocks.properties[property.id] ?? .unwritten
        // Explicit before default, then the later; of one transaction the last.
        if isDefault != clock.isDefault ? isDefault : stamp < clock.stamp { return .lost }
        // A default leaves the amounts added before it in force, an explicit value those added after it (CR-9).
        let additions = isDefault ? clock.additions : clock.additions.filter { $0.stamp > stamp }
        var written = PropertyClock(stamp: stamp, isDefault: isDefault, valueHash: clock.valueHash, additions: additions)
        let result = adding(written.added, to: value)
        written.valueHash = ValueHash(result)
        state.clocks.properties[property.id] = written
        return store(result, property, &state)
    }

    private static func add(_ property: Property, _ amount: Int64, _ stamp: WriteStamp, _ state: inout ObjectState) -> Outcome {
        var clock = state.clocks.properties[property.id] ?? .unwritten
        if !clock.isDefault, stamp < clock.stamp { return .lost }
        clock.remember(PropertyClock.Addition(stamp: stamp, amount: amount))
        let result = adding(amount, to: state.values?[property.name] ?? .null)
        clock.valueHash = ValueHash(result)
        state.clocks.properties[property.id] = clock
        return store(result, property, &state)
    }

    /// Null and values of other types stay as they are (CR-10).
    private static func adding(_ amount: Int64, to value: Value) -> Value {
        if case .int(let number) = value { .int(number &+ amount) } else { value }
    }

    private static func store(_ value: Value, _ property: Property, _ state: inout ObjectState) -> Outcome {
        let before = state.values?.updateValue(value, forKey: property.name) ?? .null
        return before == value ? .same : .changed
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
