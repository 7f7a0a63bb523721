import SluiceCore
import SluiceReplica

/// A set of values or objects: a property of a class, or unmanaged until it becomes a property's value.
///
/// A managed set is live: it reads its object's current values, and changes require a write transaction.
/// Its order is stable and has no meaning.
public final class MutableSet<Element: RealmCollectionValue>: RealmCollection, Hashable {
    private var unmanaged: [Element] = []
    private var unmanagedMembers: Set<Element> = []
    /// The place of a managed set; nil for an unmanaged one.
    private(set) var place: _Place?
    /// `true` if the set is part of a key path trace: its one element is at every index.
    private var isTraced = false

    /// Creates an empty unmanaged set.
    public init() {}

    init(place: _Place) { self.place = place }

    /// The Realm that manages the set; nil for an unmanaged set.
    public var realm: Realm? { place?.core.map { Realm(core: $0) } }

    /// `true` if the object that contains the set has been deleted.
    public var isInvalidated: Bool { place.map { $0.value == nil } ?? false }

    // MARK: Reading and writing as a whole

    private var stored: [Value] {
        if case .list(let values)? = place?.value { values } else { [] }
    }

    private var values: [Value] {
        let stored = stored
        guard let place, let core = place.core, let type = Element._linkedType(at: place, in: core) else { return stored }
        // Links to objects that are not on the device stay stored and are not shown.
        return core.reading.indices(type, ofPresent: stored).map { stored[$0] }
    }

    private var elements: [Element] {
        guard let place else { return unmanaged }
        return values.map { Element._makeElement(from: _StoredValue($0), at: place) }
    }

    private func value(_ element: Element, _ place: _Place) -> Value {
        let value = element._stored(in: place.owner).value
        switch value {
        case .list, .dictionary: throwRealmException("A set cannot contain collections.")
        default: return value
        }
    }

    private func change(_ changes: [ShownEdit.Change], _ place: _Place, _ body: (inout [Value]) -> Void) {
        var values = stored
        body(&values)
        place.write(.set(values), changes)
    }

    // MARK: Collection

    public var startIndex: Int { 0 }
    public var endIndex: Int { count }
    /// The number of elements.
    public var count: Int {
        guard let place else { return unmanaged.count }
        let count = values.count
        return place.core?.reading.noteCount(count) ?? count
    }

    public subscript(position: Int) -> Element {
        let values = place == nil ? [] : values
        let count = place == nil ? unmanaged.count : values.count
        guard position >= 0, position < count else {
            if isTraced { return unmanaged[0] }
            // The Realm has advanced since the app was given a larger count: a default instead of a crash.
            if place?.core?.reading.hasCounted(beyond: position) == true { return Element._default() }
            throwRealmException("Index \(position) is out of bounds (must be less than \(count)).")
        }
        guard let place else { return unmanaged[position] }
        return Element._makeElement(from: _StoredValue(values[position]), at: place)
    }

    /// Iterates over the elements as they are at the start.
    public func makeIterator() -> IndexingIterator<[Element]> { elements.makeIterator() }

    /// `true` if the element is in the set. Cost of a managed set: linear.
    public func contains(_ object: Element) -> Bool {
        guard place != nil else { return unmanagedMembers.contains(object) }
        return elements.contains(object)
    }

    /// `true` if all elements are in another set.
    public func isSubset(of possibleSuperset: MutableSet<Element>) -> Bool { Set(elements).isSubset(of: Set(possibleSuperset.elements)) }

    /// `true` if both sets have an element in common.
    public func intersects(_ otherSet: MutableSet<Element>) -> Bool { !Set(elements).isDisjoint(with: Set(otherSet.elements)) }

    // MARK: Changing

    /// Inserts an element if the set does not contain it.
    public func insert(_ object: Element) { insert(objectsIn: CollectionOfOne(object)) }

    /// Inserts the elements that the set does not contain.
    public func insert<S: Sequence>(objectsIn objects: S) where S.Iterator.Element == Element {
        guard let place else {
            for element in objects where unmanagedMembers.insert(element).inserted { unmanaged.append(element) }
            return
        }
        let new = objects.map { value($0, place) }
        if let edited = place.editedCollection() {
            return place.edit { () throws(SluiceError) in for member in new { try edited.insert(member: member) } }
        }
        change(new.map { .setInsert($0) }, place) { $0 += new }
    }

    /// Removes an element; does nothing if the set does not contain it.
    public func remove(_ object: Element) {
        // Not for links: the stored form of an unmanaged object would add the object to the Realm.
        if let place, !Element._hasPlace, !Element._kind.isLink, let edited = place.editedCollection() {
            let member = value(object, place)
            return place.edit { () throws(SluiceError) in try edited.remove(member: member) }
        }
        keep { $0 != object }
    }

    /// Removes all elements. The objects themselves stay.
    public func removeAll() {
        guard let place else {
            unmanaged = []
            unmanagedMembers = []
            return
        }
        change([.clear(.set)], place) { $0 = [] }
    }

    private func keep(_ isKept: (Element) -> Bool) {
        guard let place else {
            unmanaged = unmanaged.filter(isKept)
            unmanagedMembers = Set(unmanaged)
            return
        }
        // Only shown elements are tested: links to absent objects stay.
        let gone = values.filter { !isKept(Element._makeElement(from: _StoredValue($0), at: place)) }
        change(gone.map { .setErase($0) }, place) { all in all.removeAll { gone.contains($0) } }
    }

    /// Keeps the elements that are in another set too.
    public func formIntersection(_ other: MutableSet<Element>) {
        let others = Set(other.elements)
        keep { others.contains($0) }
    }

    /// Removes the elements of another set.
    public func subtract(_ other: MutableSet<Element>) {
        let others = Set(other.elements)
        keep { !others.contains($0) }
    }

    /// Inserts the elements of another set.
    public func formUnion(_ other: MutableSet<Element>) { insert(objectsIn: other.elements) }

    /// Returns the index of an equal element; nil if there is none. Cost: linear.
    public func index(of object: Element) -> Int? { elements.firstIndex(of: object) }

    public var _managedResults: Results<Element>? { place.flatMap { Results(elementsOf: $0) } }

    public static func == (lhs: MutableSet, rhs: MutableSet) -> Bool { lhs === rhs || Set(lhs.elements) == Set(rhs.elements) }
    public func hash(into hasher: inout Hasher) { hasher.combine(Set(elements)) }
    public var description: String { text(depth: 0) }
}

@available(*, unavailable)
extension MutableSet: Sendable {}

extension MutableSet: _Persistable {
    public typealias PersistedType = MutableSet

    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        unsafeDowncast(MutableSet(place: _Place(owner: owner, slot: Int(slot))), to: Self.self)
    }

    public func _stored(in owner: ObjectBase) -> _StoredValue {
        // Links to objects that are not on the device go along when a set of the same Realm is assigned.
        if let place, place.core === owner.managingCore { return .boxed(_BoxedValue(.set(stored))) }
        return .boxed(_BoxedValue(.set(elements.map { $0._stored(in: owner).value })))
    }

    public func _attach(to owner: ObjectBase, slot: Int32) { _attach(at: _Place(owner: owner, slot: Int(slot))) }

    public func _attach(at place: _Place) {
        guard self.place == nil else { return }
        unmanaged = []
        unmanagedMembers = []
        self.place = place
    }

    public static func _default() -> Self { Self.init() }

    public static func _traced(_ trace: _KeyPathTrace) -> Self {
        let set = Self.init()
        set.unmanaged = [Element._traced(trace)]
        set.isTraced = true
        return set
    }

    /// Converts a sequence of elements. Another set is copied.
    public static func _coerce(_ value: Any) -> Self? {
        guard let elements = CoercedElements<Element>(value)?.elements else { return nil }
        let set = Self.init()
        set.insert(objectsIn: elements)
        return set
    }

    public static var _kind: _PropertyKind { Element._kind.inCollection(.set) }
}
