import SluiceCore
import SluiceMerge
import SluiceReplica

/// The place of a managed collection, embedded object or nested value: a property's slot, or an element of another place.
///
/// Public because collections pass it to their elements; not for apps.
public final class _Place {
    enum Step: Hashable {
        case index(Int)
        case key(String)

        var shown: ShownStep {
            switch self {
            case .index(let index): .index(index)
            case .key(let key): .key(key)
            }
        }
    }

    /// The identity of a place in its Realm: the object and the path from it.
    struct Address: Hashable {
        struct Root: Hashable {
            var type: Int
            var key: Value
        }

        var root: Root
        var path: [Step]
    }

    /// The managed object with the property.
    let owner: ObjectBase
    let slot: Int
    /// The collection that contains the element; nil for the property itself.
    let parent: _Place?
    private(set) var step: Step?
    /// `true` if the value that an accessor refers to has been removed or replaced.
    private(set) var isGone = false

    init(owner: ObjectBase, slot: Int) {
        self.owner = owner
        self.slot = slot
        parent = nil
    }

    init(parent: _Place, step: Step) {
        owner = parent.owner
        slot = parent.slot
        self.parent = parent
        self.step = step
    }

    var core: RealmCore? { owner._row?.core }
    var property: ModelSchema.Property? { owner._row.map { $0.schema.properties[slot] } }

    /// The current value; nil if the object or the value is gone.
    var value: Value? {
        if isGone { return nil }
        guard let parent, let step else { return owner._row?.current(slot) }
        switch (parent.value, step) {
        case (.list(let values), .index(let index)): return values.indices.contains(index) ? values[index] : nil
        case (.dictionary(let values), .key(let key)): return values[key]
        default: return nil
        }
    }

    /// Replaces the value, in a write transaction only.
    /// - Parameter changes: the changed parts, so that other devices' changes of the rest survive; nil: all.
    func write(_ value: Value, _ changes: [ShownEdit.Change]? = nil) {
        write(value, by: ShownEdit(path: path, changes ?? [.set(value)]))
    }

    /// The steps from the value of the object's property to this place.
    var path: [ShownStep] { address?.path.dropFirst().map(\.shown) ?? [] }

    /// Writes the value and all values that contain it.
    private func write(_ value: Value, by edit: ShownEdit) {
        if isGone { throwRealmException(RealmMisuse.invalidated) }
        guard let parent, let step else {
            owner._row?.write(slot, _StoredValue(value), by: edit)
            return
        }
        // The parent may be edited in place, so that its other elements are not copied.
        if parent.put(value, at: step, by: edit) { return }
        switch (parent.value, step) {
        case (.list(var values), .index(let index)) where values.indices.contains(index):
            values[index] = value
            parent.write(.list(values), by: edit)
        case (.dictionary(var values), .key(let key)):
            values[key] = value
            parent.write(.dictionary(values), by: edit)
        // The parent no longer has the element.
        default: throwRealmException(RealmMisuse.invalidated)
        }
    }

    /// Writes a field of the embedded object at this place.
    /// - Parameter edit: the changed part of the field; nil: the whole field.
    func write(_ value: Value, toField name: String, by edit: ShownEdit?) {
        guard case .dictionary(var fields)? = self.value else { throwRealmException(RealmMisuse.invalidated) }
        fields[name] = value
        write(.dictionary(fields), by: edit ?? ShownEdit(path: path + [.key(name)], [.set(value)]))
    }

    /// Removes the element from its collection, or sets the property to null. Its accessors become invalid.
    func removeElement() {
        if isGone { throwRealmException(RealmMisuse.invalidated) }
        guard let address else { return }
        guard let parent, let step, let collection = parent.address else {
            write(.null)
            core?.reading.accessors.replaced(address)
            return
        }
        if case .index(let index) = step, parent.remove(at: index) {
            return core?.reading.accessors.removed(index, in: collection) ?? ()
        }
        switch (parent.value, step) {
        case (.list(var values), .index(let index)) where values.indices.contains(index):
            values.remove(at: index)
            parent.write(.list(values), [.removeElement(index)])
            core?.reading.accessors.removed(index, in: collection)
        case (.dictionary(var values), .key(let key)):
            values[key] = nil
            parent.write(.dictionary(values), [.removeKey(key)])
            core?.reading.accessors.replaced(address)
        default: break
        }
    }

    /// The identity of the place; nil if its object is unmanaged.
    var address: Address? {
        if let parent, let step {
            var address = parent.address
            address?.path.append(step)
            return address
        }
        guard let row = owner._row else { return nil }
        let field = Step.key(row.schema.properties[slot].column)
        guard let outer = row.place else { return Address(root: .init(type: row.type, key: row.key), path: [field]) }
        var address = outer.address
        address?.path.append(field)
        return address
    }

    func move(to step: Step?) {
        if let step { self.step = step } else { isGone = true }
    }
}

/// The places of accessors in use. They follow their elements when a collection changes.
struct AccessorRegistry {
    private struct Weak {
        weak var place: _Place?
    }

    private var places: [_Place.Address.Root: [Weak]] = [:]
    private var count = 0
    private var bound = 64

    mutating func insert(_ place: _Place) {
        // Places never move in a frozen Realm.
        guard place.core?.isFrozen == false, let address = place.address else { return }
        places[address.root, default: []].append(Weak(place: place))
        count += 1
        if count > bound { purge() }
    }

    /// Drops released accessors. The bound doubles, so that an insertion costs O(1) amortized.
    private mutating func purge() {
        places = places.compactMapValues { places in
            let alive = places.filter { $0.place != nil }
            return alive.isEmpty ? nil : alive
        }
        count = places.values.reduce(0) { $0 + $1.count }
        bound = max(64, 2 * count)
    }

    /// Gives the elements of a collection other steps; nil invalidates an element's accessors.
    // Direct elements only: places inside them derive their address from these.
    func moved(in collection: _Place.Address, _ remap: (_Place.Step) -> _Place.Step?) {
        let depth = collection.path.count
        let elements = (places[collection.root] ?? []).compactMap { entry -> (_Place, _Place.Step)? in
            guard let place = entry.place, let path = place.address?.path, path.count == depth + 1, path.starts(with: collection.path)
            else { return nil }
            return (place, path[depth])
        }
        for (place, step) in elements { place.move(to: remap(step)) }
    }

    /// Updates accessors after an element of a list was removed: later indices decrease by one.
    func removed(_ index: Int, in collection: _Place.Address) {
        moved(in: collection) { step in
            guard case .index(let other) = step, other != index else { return nil }
            return .index(other < index ? other : other - 1)
        }
    }

    /// Invalidates the accessors of a place and of everything in it, because another value replaces it.
    func replaced(_ address: _Place.Address) {
        let below = (places[address.root] ?? []).compactMap(\.place).filter { $0.address?.path.starts(with: address.path) == true }
        for place in below { place.move(to: nil) }
    }
}
