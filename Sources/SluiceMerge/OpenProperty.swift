package import SluiceCore

/// A property's value with its clock, open for several edits. The cost of an edit of an element, member or entry does not grow with the
/// collection, apart from a logarithm.
///
/// A collection inside an element is opened and closed by each of its edits, O(its size).
package final class OpenProperty {
    /// Null while a collection is open.
    private var value: Value
    /// Has no contents while a list or set is open.
    private var clock: PropertyClock
    private var list: OpenList?
    private var set: OpenSet?
    private var fields: [String: Value] = [:]
    private var isMap = false
    /// The number of edits of members. The first one builds no index.
    private var setEdits = 0

    /// `true` if SQL created the object.
    private let isMadeBySQL: Bool

    init(_ value: Value, _ clock: PropertyClock, isMadeBySQL: Bool) {
        (self.value, self.clock, self.isMadeBySQL) = (value, clock, isMadeBySQL)
    }

    /// The current value. O(its elements) after edits that changed their order.
    package var current: Value {
        if let list { return .list(list.current) }
        if let set { return set.current }
        return isMap ? .dictionary(fields) : value
    }

    // MARK: Editing

    /// - Throws: The errors of `Merge.apply`. The property must not be used afterwards.
    package func perform(_ edit: Edit, of property: Property, by writer: WriteContext) throws(SluiceError) {
        guard edit.fits(property) else {
            throw SluiceError(.badChangeset, "A change treats the property '\(property.name)' as one of another type.")
        }
        _ = try apply(edit, by: writer, seen: nil)
    }

    /// - Parameter seen: The hash of the server's value that the writer had, if any.
    func apply(_ edit: Edit, by writer: WriteContext, seen: ValueHash?) throws(SluiceError) -> Merge.Outcome {
        let met = clock.meet(seen)
        let mayBeReplaced = met != nil && isUnknown(to: writer) || isReset(byOtherThan: writer.stamp.client)
        let outcome: Merge.Outcome
        do throws(SluiceError) {
            outcome = try merge(edit, by: writer)
        } catch {
            // The writer saw another list: SQL has replaced it, and its history is gone. Or another client cleared it, and edits of the
            // writer have lost. No entry shows the Clear of an empty list, so the writer's base may include it nevertheless.
            // Clients of Realm's protocol alone name elements by index, and their changesets have numbers.
            guard error.code == .badChangeset, writer.changeset > 0, mayBeReplaced || isOfSQL else { throw error }
            outcome = .lost
        }
        clock.part(met)
        return outcome
    }

    /// `true` if SQL may have written the list after the writer's base: no writer has changed it since, or the write was noticed later.
    private func isUnknown(to writer: WriteContext) -> Bool {
        list?.isFresh ?? (clock.contents == nil) || clock.reset.map { !writer.baseSees($0.lsn) } ?? false
    }

    /// `true` if the writer may have seen an earlier list of SQL than the first client to change it. No clock tells.
    private var isOfSQL: Bool { isMadeBySQL && list?.isYounger ?? false }

    /// `true` if another client has cleared or replaced the list, and some writer does not know it.
    private func isReset(byOtherThan client: ClientID) -> Bool { clock.reset.map { $0.stamp.client != client } ?? false }

    private func merge(_ edit: Edit, by writer: WriteContext) throws(SluiceError) -> Merge.Outcome {
        let merge = EditMerge(edit: edit, writer: writer)
        switch (edit.path.first, edit.action) {
        case (.element(let reference)?, _):
            guard clock.reset?.admits(writer) ?? true, let list = openList(writer) else { return .lost }
            return try merge.descend(edit.path.dropFirst(), into: reference, list)
        case (.key(let key)?, _):
            guard clock.reset?.admits(writer) ?? true, openMap() else { return .lost }
            return try merge.descend(edit.path.dropFirst(), into: key, &fields, &clock)
        case (nil, .insert(let new, let after, let tag)):
            guard clock.reset?.admits(writer) ?? true, let list = openList(writer) else { return .lost }
            let outcome = try merge.insert(new, behind: after, tag, into: list)
            if outcome == .changed { clock.makeExplicit() }
            return outcome
        case (nil, .setInsert(let member)), (nil, .setErase(let member)):
            setEdits += 1
            guard clock.reset?.admits(writer) ?? true, setEdits > 1, let set = openSet() else { break }
            guard set.note(member, by: writer) else { return .lost }
            clock.makeExplicit()
            if case .setInsert = edit.action { return set.insert(member) }
            return set.erase(member)
        default: break
        }
        close()
        return try merge.perform(&value, &clock)
    }

    // MARK: Opening and closing

    /// - Returns: `nil` if the value is not a list.
    private func openList(_ writer: WriteContext) -> OpenList? {
        if let list, list.writer == writer { return list }
        close()
        guard case .list(let elements) = value else { return nil }
        let list = OpenList.open(elements, &clock.contents, by: writer)
        value = .null
        self.list = list
        return list
    }

    /// - Returns: `nil` if the value is not a set, or two members have one hash.
    private func openSet() -> OpenSet? {
        if let set { return set }
        close()
        guard case .list(let members) = value, let set = OpenSet(members, clock.contents) else { return nil }
        (value, clock.contents) = (.null, nil)
        self.set = set
        return set
    }

    /// - Returns: `false` if the value is not a dictionary.
    private func openMap() -> Bool {
        if isMap { return true }
        close()
        guard case .dictionary(let fields) = value else { return false }
        (value, self.fields, isMap) = (.null, fields, true)
        return true
    }

    private func close() {
        if let list {
            list.close(&value, &clock.contents)
        } else if let set {
            (value, clock.contents) = (set.current, set.contents)
        } else if isMap {
            value = .dictionary(fields)
        }
        (list, set, fields, isMap) = (nil, nil, [:], false)
    }

    /// Closes the property and returns its value and clock.
    func closed() -> (value: Value, clock: PropertyClock) {
        close()
        return (value, clock)
    }

    // MARK: Naming

    /// The name of an element of the list, for `perform` by the same writer. `nil` if the index is out of range.
    package func element(_ index: Int, for writer: WriteContext) -> ElementRef? { openList(writer)?.reference(index) }

    /// The place that one or more steps lead to. `nil` if there is no such place.
    package func place(_ steps: [ShownStep], for writer: WriteContext) -> ShownPlace? {
        guard let step = steps.first else { return nil }
        var place: ShownPlace
        switch step {
        case .index(let index):
            guard let list = openList(writer), let element = list.element(index), let name = list.reference(index) else { return nil }
            place = ShownPlace([.element(name)], element.value, element.clock)
        case .key(let key):
            guard openMap() else { return nil }
            place = ShownPlace([.key(key)], fields[key] ?? .null, clock.entry(key) ?? .unwritten)
        }
        return place.enter(steps.dropFirst()) ? place : nil
    }

    /// The value that one step leads to. `nil` if there is no such value.
    package func value(at step: ShownStep, for writer: WriteContext) -> Value? {
        switch step {
        case .index(let index): openList(writer)?.element(index)?.value
        case .key(let key): openMap() ? fields[key] : nil
        }
    }
}

extension ObjectState {
    /// Takes a property out of the state, for edits.
    package mutating func open(_ property: Property) -> OpenProperty {
        OpenProperty(
            values?.updateValue(.null, forKey: property.name) ?? .null,
            clocks.properties.removeValue(forKey: property.id) ?? .unwritten, isMadeBySQL: clocks.created?.client == .server)
    }
}
