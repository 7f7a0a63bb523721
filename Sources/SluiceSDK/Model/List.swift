public import Foundation
import SluiceCore
import SluiceReplica

/// A list of values or objects: a property of a class, or unmanaged until it becomes a property's value.
///
/// A managed list is live: it reads its object's current values, and changes require a write transaction.
public final class List<Element: RealmCollectionValue>: RealmCollection, MutableCollection, RangeReplaceableCollection,
    ExpressibleByArrayLiteral, Hashable
{
    private var unmanaged: [Element] = []
    /// The place of a managed list; nil for an unmanaged one.
    private(set) var place: _Place?
    /// `true` if the list is part of a key path trace: its one element is at every index.
    private var isTraced = false

    /// Creates an empty unmanaged list.
    public init() {}

    init(place: _Place) { self.place = place }

    public convenience init(arrayLiteral elements: Element...) {
        self.init()
        unmanaged = elements
    }

    /// The Realm that manages the list; nil for an unmanaged list.
    public var realm: Realm? { place?.core.map { Realm(core: $0) } }

    /// `true` if the object that contains the list has been deleted.
    public var isInvalidated: Bool { place.map { $0.value == nil } ?? false }

    // MARK: Reading and writing as a whole

    /// The stored elements, including links to objects that are not on the device.
    private var stored: [Value] {
        if case .list(let values)? = place?.value { values } else { [] }
    }

    /// The indices in `values` of the elements that are shown, without links to absent objects; nil if no check is needed.
    private func shown(_ values: [Value], at place: _Place) -> [Int]? {
        guard let core = place.core, let type = Element._linkedType(at: place, in: core) else { return nil }
        let edited = place.shownCollection
        // In a loop of edits the check of all links is done once, not once per edit.
        if let edited, core.transactions.isAllShown(edited) { return nil }
        let shown = core.reading.indices(type, ofPresent: values)
        if let edited, shown.count == values.count { core.transactions.noteAllShown(edited) }
        return shown
    }

    private var values: [Value] {
        let stored = stored
        guard let place, let shown = shown(stored, at: place) else { return stored }
        return shown.count == stored.count ? stored : shown.map { stored[$0] }
    }

    private func element(_ value: Value, _ place: _Place, _ index: Int) -> Element {
        let elementPlace = Element._hasPlace ? _Place(parent: place, step: .index(index)) : place
        return Element._makeElement(from: _StoredValue(value), at: elementPlace)
    }

    /// The current elements.
    private var elements: [Element] {
        guard let place else { return unmanaged }
        return values.enumerated().map { element($1, place, $0) }
    }

    /// Replaces elements; accessors of other elements follow theirs.
    /// - Parameter range: nil: the end of the list.
    private func replace(_ range: Range<Int>?, with elements: [Element]) {
        guard let place else {
            unmanaged.replaceSubrange(range ?? unmanaged.count..<unmanaged.count, with: elements)
            return
        }
        let new = elements.map { $0._stored(in: place.owner).value }
        let count: Int
        let target: Range<Int>
        if let edited = place.editedCollection() {
            count = edited.count
            // The app's range counts shown elements; the stored range counts hidden links too.
            target = range.map { storedRange($0, in: place) } ?? count..<count
            place.edit { () throws(SluiceError) in try edited.replace(target, with: new) }
        } else {
            var values = stored
            count = values.count
            target = range.map { storedRange($0, in: place) } ?? count..<count
            values.replaceSubrange(target, with: new)
            place.write(.list(values), ListEdits.replacing(target, with: new, isAll: target == 0..<count))
        }
        guard Element._hasPlace, let address = place.address else { return }
        // Nothing moves after the end of the list.
        if target.lowerBound < count {
            let growth = new.count - target.count
            place.core?.reading.accessors.moved(in: address) { step in
                // Accessors of replaced elements become invalid; later ones shift by the growth.
                guard case .index(let index) = step, !target.contains(index) else { return nil }
                return .index(index < target.lowerBound ? index : index + growth)
            }
        }
        for (offset, element) in elements.enumerated() {
            element._attach(at: _Place(parent: place, step: .index(target.lowerBound + offset)))
        }
    }

    /// Converts a range of shown elements into one of stored elements. A range out of bounds ends the program.
    private func storedRange(_ range: Range<Int>, in place: _Place) -> Range<Int> {
        let values = stored
        let shown = shown(values, at: place)
        let count = shown?.count ?? values.count
        if range.lowerBound < 0 || range.upperBound > count {
            let index = range.lowerBound < 0 ? range.lowerBound : range.upperBound - (range.isEmpty ? 0 : 1)
            throwRealmException("Index \(index) is out of bounds (must be less than \(count + (range.isEmpty ? 1 : 0))).")
        }
        guard let shown else { return range }
        // A range that ends before a hidden link leaves it alone; one that spans it replaces it.
        let low = range.lowerBound < count ? shown[range.lowerBound] : values.count
        return low..<(range.isEmpty ? low : shown[range.upperBound - 1] + 1)
    }

    // MARK: Collection

    public var startIndex: Int { 0 }
    public var endIndex: Int { count }
    public var count: Int {
        guard let place else { return unmanaged.count }
        let count = values.count
        return place.core?.reading.noteCount(count) ?? count
    }

    public subscript(position: Int) -> Element {
        get {
            let values = place == nil ? [] : values
            let count = place == nil ? unmanaged.count : values.count
            guard position >= 0, position < count else {
                if isTraced { return unmanaged[0] }
                // The Realm has advanced since the app was given a larger count: a default instead of a crash.
                if place?.core?.reading.hasCounted(beyond: position) == true { return Element._default() }
                throwRealmException("Index \(position) is out of bounds (must be less than \(count)).")
            }
            guard let place else { return unmanaged[position] }
            return element(values[position], place, position)
        }
        set {
            guard position >= 0, position < count else {
                throwRealmException("Index \(position) is out of bounds (must be less than \(count)).")
            }
            replace(position..<position + 1, with: [newValue])
        }
    }

    /// Iterates over the elements as they are at the start.
    public func makeIterator() -> IndexingIterator<[Element]> { elements.makeIterator() }

    public var first: Element? { isEmpty ? nil : self[0] }
    public var last: Element? { isEmpty ? nil : self[count - 1] }

    public func replaceSubrange(_ subrange: Range<Int>, with newElements: some Collection<Element>) {
        replace(subrange, with: Array(newElements))
    }

    /// Replaces a range of elements.
    public func replaceSubrange(_ subrange: some RangeExpression<Int>, with newElements: some Collection<Element>) {
        replace(subrange.relative(to: self), with: Array(newElements))
    }

    /// Appends an element.
    public func append(_ element: Element) { replace(nil, with: [element]) }

    /// Appends elements.
    public func append(objectsIn newElements: some Sequence<Element>) { replace(nil, with: Array(newElements)) }

    /// Inserts an element before an index.
    public func insert(_ element: Element, at index: Int) { replace(index..<index, with: [element]) }

    /// Inserts elements before an index.
    public func insert(contentsOf newElements: some Collection<Element>, at index: Int) { replace(index..<index, with: Array(newElements)) }

    /// Removes a range of elements.
    public func removeSubrange(_ bounds: Range<Int>) { replace(bounds, with: []) }

    /// Removes a range of elements.
    public func removeSubrange(_ bounds: some RangeExpression<Int>) { replace(bounds.relative(to: self), with: []) }

    /// Removes the first elements.
    public func removeFirst(_ number: Int = 1) { replace(0..<number, with: []) }

    /// Removes the last elements. More than the list contains ends the program.
    public func removeLast(_ number: Int = 1) {
        let count = count
        if number > count { throwRealmException("It is not possible to remove \(number) elements from a list of \(count).") }
        replace(count - number..<count, with: [])
    }

    /// Removes the element at an index.
    public func remove(at index: Int) { replace(index..<index + 1, with: []) }

    /// Removes all elements, links to objects that are not on the device included. The objects themselves stay, unless they are embedded.
    public func removeAll() {
        guard let place else {
            unmanaged = []
            return
        }
        if let edited = place.editedCollection() {
            place.edit { () throws(SluiceError) in try edited.replace(0..<edited.count, with: []) }
        } else {
            place.write(.list([]), [.clear(.list)])
        }
        guard Element._hasPlace, let address = place.address else { return }
        place.core?.reading.accessors.moved(in: address) { _ in nil }
    }

    /// Removes the elements at several indices.
    public func remove(atOffsets offsets: IndexSet) { for index in offsets.reversed() { remove(at: index) } }

    /// Replaces the element at an index.
    public func replace(index: Int, object: Element) { self[index] = object }

    /// Moves an element; `to` is its index after the move. An index out of bounds ends the program.
    public func move(from: Int, to: Int) {
        for index in [from, to] where index < 0 || index >= count {
            throwRealmException("Index \(index) is out of bounds (must be less than \(count)).")
        }
        if editInPlace({ list throws(SluiceError) in try list.move(from: from, to: to) }) { return }
        reorder { $0.insert($0.remove(at: from), at: to) }
    }

    /// Moves several elements before the one that is at an index now.
    public func move(fromOffsets offsets: IndexSet, toOffset destination: Int) {
        reorder { order in
            let moving = offsets.map { order[$0] }
            let target = destination - offsets.filter { $0 < destination }.count
            for index in offsets.reversed() { order.remove(at: index) }
            order.insert(contentsOf: moving, at: target)
        }
    }

    /// Exchanges two elements.
    public func swapAt(_ index1: Int, _ index2: Int) {
        for index in [index1, index2] where index < 0 || index >= count {
            throwRealmException("Index \(index) is out of bounds (must be less than \(count)).")
        }
        if editInPlace({ list throws(SluiceError) in try list.swap(index1, index2) }) { return }
        reorder { $0.swapAt(index1, index2) }
    }

    /// Permutes the stored elements of an edited collection.
    /// Requires that all are shown, so that indices agree, and that no accessor follows elements.
    /// - Returns: `false` if the list is not edited in place.
    private func editInPlace(_ body: (EditedCollection) throws(SluiceError) -> Void) -> Bool {
        guard let place, !Element._hasPlace, let edited = place.editedCollection() else { return false }
        if let shown = shown(stored, at: place), shown.count < edited.count { return false }
        place.edit { () throws(SluiceError) in try body(edited) }
        return true
    }

    private func reorder(_ body: (inout [Int]) -> Void) {
        var order = Array(0..<count)
        body(&order)
        guard let place else {
            unmanaged = order.map { unmanaged[$0] }
            return
        }
        let stored = stored
        var values = stored
        // Hidden links keep their index; shown elements permute among theirs.
        let shown = shown(stored, at: place) ?? Array(stored.indices)
        var storedOrder = Array(stored.indices)
        for (position, from) in order.enumerated() { storedOrder[shown[position]] = shown[from] }
        for (position, from) in storedOrder.enumerated() { values[position] = stored[from] }
        place.write(.list(values), ListEdits.moves(to: storedOrder))
        guard Element._hasPlace, let address = place.address else { return }
        let positions = Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1, $0) })
        place.core?.reading.accessors.moved(in: address) { step in
            guard case .index(let index) = step else { return nil }
            return positions[index].map { .index($0) }
        }
    }

    /// Returns the index of the first equal element; nil if there is none. Cost: linear.
    public func index(of object: Element) -> Int? { elements.firstIndex(of: object) }

    public var _managedResults: Results<Element>? { place.flatMap { Results(elementsOf: $0) } }

    public static func == (lhs: List, rhs: List) -> Bool { lhs === rhs || lhs.elements == rhs.elements }
    public func hash(into hasher: inout Hasher) { hasher.combine(elements) }
    public var description: String { text(depth: 0) }
}

@available(*, unavailable)
extension List: Sendable {}

extension List: _Persistable {
    public typealias PersistedType = List

    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        unsafeDowncast(List(place: _Place(owner: owner, slot: Int(slot))), to: Self.self)
    }

    public func _stored(in owner: ObjectBase) -> _StoredValue {
        if let place, place.core === owner.managingCore { return .boxed(_BoxedValue(.list(stored))) }
        return .boxed(_BoxedValue(.list(elements.map { $0._stored(in: owner).value })))
    }

    public func _attach(to owner: ObjectBase, slot: Int32) {
        let place = _Place(owner: owner, slot: Int(slot))
        place.takeOver(from: self.place)
        _attach(at: place)
    }

    public func _attach(at place: _Place) {
        guard self.place == nil else { return }
        let elements = unmanaged
        unmanaged = []
        self.place = place
        guard Element._hasPlace else { return }
        for (index, element) in elements.enumerated() { element._attach(at: _Place(parent: place, step: .index(index))) }
    }

    public static func _default() -> Self { Self.init() }

    public static func _traced(_ trace: _KeyPathTrace) -> Self {
        let list = Self.init()
        list.unmanaged = [Element._traced(trace)]
        list.isTraced = true
        return list
    }

    /// Converts a sequence of elements. Another list is copied.
    public static func _coerce(_ value: Any) -> Self? {
        guard let elements = CoercedElements<Element>(value)?.elements else { return nil }
        let list = Self.init()
        list.unmanaged = elements
        return list
    }

    public static var _kind: _PropertyKind { Element._kind.inCollection(.list) }
}

extension _Place {
    /// Invalidates accessors of the previous value's elements, unless the new value is this place's own collection.
    func takeOver(from other: _Place?) {
        guard let address, other?.address != address else { return }
        core?.reading.accessors.replaced(address)
    }
}

/// The elements of an app's value for a collection; nil if one does not fit.
struct CoercedElements<Element: RealmCollectionValue> {
    let elements: [Element]

    init?(_ value: Any) {
        if isNil(value) {
            elements = []
            return
        }
        guard !(value is String), !(value is [String: Any]), let sequence = value as? any Sequence else { return nil }
        var elements: [Element] = []
        for value in CoercedElements.values(sequence) {
            guard let element = Element._coerce(value) else { return nil }
            elements.append(element)
        }
        self.elements = elements
    }

    private static func values(_ sequence: some Sequence) -> [Any] { sequence.map { $0 as Any } }
}

/// `true` for null in untyped form: `NSNull`, or nil in an optional of any type.
func isNil(_ value: Any) -> Bool { value is NSNull || (value as? any AnyOptional)?.isNil == true }

protocol AnyOptional {
    static var wrappedType: Any.Type { get }
    var isNil: Bool { get }
}
extension Optional: AnyOptional {
    static var wrappedType: Any.Type { Wrapped.self }
    /// `true` also for nested optionals.
    var isNil: Bool { map { SluiceSDK.isNil($0) } ?? true }
}

extension RealmCollectionValue {
    /// Returns the index of the class that elements link to in a Realm; nil if they are not links.
    static func _linkedType(at place: _Place, in core: RealmCore) -> Int? {
        let kind = _kind
        guard kind.isLink, let target = kind.target else { return nil }
        guard target == DynamicObject.self, let property = place.property else { return core.classes.type(of: target) }
        // A dynamic object may be of any class: the property's class counts.
        return core.classes.type(linkedBy: property.kind)
    }
}
