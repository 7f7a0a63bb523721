package import SluiceCore
package import SluiceMerge

/// A list, set or map of an object that the open transaction edits in place. Its table receives the value at the next `RowStore.settle`.
///
/// An edit costs only its changed elements, as the elements have no other owner. If a caller keeps `value`, the next edit copies all
/// of them.
///
/// In a synced replica each edit is also recorded for the gateway (`CollectionRecorder`), unless a pending change carries the whole value.
/// An edit that throws has changed nothing.
package final class EditedCollection {
    let type: Int
    let key: Value
    let property: Int
    let kind: CollectionKind
    /// The elements of a list or set.
    private var elements: [Value] = []
    /// The entries of a map.
    private var entries: [String: Value] = [:]
    private unowned let edits: EditedCollections
    /// The index of the pending change that carries the whole value; nil if edits are recorded, and in a file that is not synced.
    let change: Int?
    private let recorder: CollectionRecorder?
    /// `true` if that change does not have the last edits yet.
    var isUnfilled = false
    /// `true` if later changes of the object make edits go by `WriteTransaction.set`.
    var isSealed = false
    /// The transaction's number of deletions when all links were last known to lead to objects; nil before.
    package var deletionsWhenShown: Int?

    /// - Returns: nil if the value is none of this kind.
    fileprivate init?(
        _ place: EditedCollections.Place, _ kind: CollectionKind, _ value: Value, change: Int?, recorder: CollectionRecorder?,
        in edits: EditedCollections
    ) {
        switch (kind, value) {
        case (.list, .list(let elements)), (.set, .list(let elements)): self.elements = elements
        case (.dictionary, .dictionary(let entries)): self.entries = entries
        default: return nil
        }
        (type, key, property) = (place.owner.type, place.owner.key, place.property)
        (self.kind, self.change, self.recorder, self.edits) = (kind, change, recorder, edits)
    }

    /// The number of elements.
    package var count: Int { kind == .dictionary ? entries.count : elements.count }

    package var isMap: Bool { kind == .dictionary }

    /// The whole value. The members of a set are in the order in which they were stored.
    package var value: Value { kind == .dictionary ? .dictionary(entries) : .list(elements) }

    /// The whole value as it is to be stored and uploaded. The members of a set become sorted.
    var normalized: Value { kind == .set ? .set(elements) : value }

    fileprivate var isDirty = false

    private func edited(growth: Int) {
        edits.size += growth
        isUnfilled = change != nil
        if isDirty { return }
        isDirty = true
        edits.dirty.append(self)
    }

    /// Replaces elements of a list. O(new and removed elements) at the end of the list; elsewhere the ones behind move in memory.
    package func replace(_ range: Range<Int>, with new: [Value]) throws(SluiceError) {
        if let recorder { try recorder.record(ListEdits.replacing(range, with: new, isAll: range == 0..<elements.count)) }
        if range.count == 1, new.count == 1 {
            elements[range.lowerBound] = new[0]
        } else if range.lowerBound == elements.count {
            elements.append(contentsOf: new)
        } else {
            elements.replaceSubrange(range, with: new)
        }
        edited(growth: new.count - range.count)
    }

    /// Removes an element of a list. Other than by `replace`, a list that it was alone in keeps what others insert meanwhile.
    package func remove(at index: Int) throws(SluiceError) {
        try recorder?.record([.removeElement(index)])
        elements.remove(at: index)
        edited(growth: -1)
    }

    /// Moves an element of a list to an index of the list without it.
    package func move(from: Int, to: Int) throws(SluiceError) {
        try recorder?.record(ListEdits.move(from: from, to: to))
        elements.insert(elements.remove(at: from), at: to)
        edited(growth: 0)
    }

    /// Exchanges two elements of a list.
    package func swap(_ one: Int, _ other: Int) throws(SluiceError) {
        try recorder?.record(ListEdits.swap(one, other))
        elements.swapAt(one, other)
        edited(growth: 0)
    }

    /// Adds a member to a set at its sorted position. O(log n) comparisons.
    package func insert(member: Value) throws(SluiceError) {
        try recorder?.record([.setInsert(member)])
        let index = index(ofFirstNotBefore: member)
        let isNew = index == elements.count || elements[index] != member
        if isNew { elements.insert(member, at: index) }
        edited(growth: isNew ? 1 : 0)
    }

    /// Removes a member of a set, if present. O(log n) comparisons.
    package func remove(member: Value) throws(SluiceError) {
        let index = index(ofFirstNotBefore: member)
        if index < elements.count, elements[index] == member {
            try recorder?.record([.setErase(member)])
            elements.remove(at: index)
        }
        edited(growth: 0)
    }

    /// Sets the value of a key of a map; nil removes it.
    package func set(_ value: Value?, forKey key: String) throws(SluiceError) {
        guard let recorder else {
            entries[key] = value
            return edited(growth: 1)
        }
        try recorder.record([value.map { .setKey(key, $0) } ?? .removeKey(key)])
        // An embedded object keeps fields that the new one does not name.
        entries[key] = value == nil ? nil : recorder.value(at: .key(key))
        edited(growth: 1)
    }

    /// `true` if `put` can put a value there.
    package func has(_ step: ShownStep) -> Bool {
        switch step {
        case .index(let index): !isMap && elements.indices.contains(index)
        case .key: isMap
        }
    }

    /// Puts a value in place of an element or entry that was changed inside.
    /// - Parameter edit: the change, from the property on.
    package func put(_ value: Value, at step: ShownStep, by edit: ShownEdit) throws(SluiceError) {
        var value = value
        if let recorder {
            try recorder.record(edit)
            value = recorder.value(at: step) ?? value
        }
        switch step {
        case .index(let index): elements[index] = value
        case .key(let key): entries[key] = value
        }
        edited(growth: 1)
    }

    private func index(ofFirstNotBefore member: Value) -> Int {
        var (low, high) = (0, elements.count)
        while low < high {
            let middle = (low + high) / 2
            if elements[middle].precedes(member) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// The collections that the open transaction edits in place, by object.
final class EditedCollections {
    struct Owner: Hashable {
        var type: Int
        var key: Value
    }

    struct Place {
        var owner: Owner
        var property: Int
    }

    /// Beyond one of the two bounds all are written and forgotten.
    private static let keptCollections = 1_024
    private static let keptElements = 1_000_000

    private var byOwner: [Owner: [EditedCollection]] = [:]
    private var count = 0
    /// The last collection found: one is often edited many times in a row.
    private var last: EditedCollection?
    /// The collections with edits that their tables do not have yet.
    fileprivate(set) var dirty: [EditedCollection] = []
    /// Elements, those included that were removed since.
    fileprivate var size = 0

    var isEmpty: Bool { count == 0 }
    var isFull: Bool { count >= EditedCollections.keptCollections || size >= EditedCollections.keptElements }
    var all: [EditedCollection] { byOwner.values.flatMap(\.self) }

    func of(_ type: Int, _ key: Value) -> [EditedCollection] { isEmpty ? [] : byOwner[Owner(type: type, key: key)] ?? [] }

    func find(_ type: Int, _ key: Value, _ property: Int) -> EditedCollection? {
        if let last, last.property == property, last.type == type, last.key == key { return last }
        guard let found = of(type, key).first(where: { $0.property == property }) else { return nil }
        last = found
        return found
    }

    /// - Returns: nil if the value is no collection of the kind.
    func insert(
        _ place: Place, _ kind: CollectionKind, _ value: Value, change: Int?, recorder: CollectionRecorder?
    ) -> EditedCollection? {
        guard let new = EditedCollection(place, kind, value, change: change, recorder: recorder, in: self) else { return nil }
        byOwner[place.owner, default: []].append(new)
        count += 1
        size += new.count
        last = new
        return new
    }

    func remove(_ collection: EditedCollection) {
        let owner = Owner(type: collection.type, key: collection.key)
        byOwner[owner]?.removeAll { $0 === collection }
        if byOwner[owner]?.isEmpty == true { byOwner[owner] = nil }
        settled(collection)
        count -= 1
        last = nil
    }

    func removeAll() {
        if isEmpty { return }
        (byOwner, count, size, last, dirty) = ([:], 0, 0, nil, [])
    }

    /// Notes that the table has the value, or does not need it any more.
    func settled(_ collection: EditedCollection) {
        guard collection.isDirty else { return }
        collection.isDirty = false
        if dirty.last === collection { dirty.removeLast() } else { dirty.removeAll { $0 === collection } }
    }
}
