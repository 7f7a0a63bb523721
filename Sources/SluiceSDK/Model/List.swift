import SluiceCore

/// A list of values or of objects: a property of a class, or one that stands alone until it becomes the value of one.
///
/// A managed list is live: it reads its object's current values, and changes are allowed in write transactions only.
public final class List<Element: RealmCollectionValue>: RandomAccessCollection, MutableCollection, RangeReplaceableCollection,
    ExpressibleByArrayLiteral, Hashable, CustomStringConvertible
{
    private var unmanaged: [Element] = []
    private let owner: ObjectBase?
    private let slot: Int

    /// An empty list that no Realm manages.
    public init() {
        owner = nil
        slot = 0
    }

    init(owner: ObjectBase, slot: Int32) {
        self.owner = owner
        self.slot = Int(slot)
    }

    public convenience init(arrayLiteral elements: Element...) {
        self.init()
        unmanaged = elements
    }

    /// The Realm that manages the list; nil when none does.
    public var realm: Realm? { owner?.managingCore.map { Realm(core: $0) } }

    /// Whether the object that the list belongs to has been deleted.
    public var isInvalidated: Bool { (owner as? Object)?.isInvalidated ?? false }

    // MARK: Reading and writing as a whole

    private var values: [Value] {
        guard let row = owner?._row else { return [] }
        if row.generation != row.clock.generation { row.reload() }
        guard case .list(let values) = row.values[slot].value else { return [] }
        guard let target = Element._kind.target, !Element._kind.isScalarOptional else { return values }
        // Links to objects that are not on the device are hidden.
        return values.filter { row.core.contains(target, $0) }
    }

    private func write(_ elements: [Element]) {
        guard let owner, let row = owner._row else {
            unmanaged = elements
            return
        }
        row.write(slot, .boxed(_BoxedValue(.list(elements.map { $0._stored(in: owner).value }))))
    }

    private func element(_ value: Value, _ owner: ObjectBase) -> Element {
        Element._make(from: _StoredValue(value), of: owner, slot: Int32(slot))
    }

    /// The elements now.
    private var elements: [Element] {
        guard let owner else { return unmanaged }
        return values.map { element($0, owner) }
    }

    // MARK: Collection

    public var startIndex: Int { 0 }
    public var endIndex: Int { count }
    public var count: Int { owner == nil ? unmanaged.count : values.count }

    public subscript(position: Int) -> Element {
        get {
            guard let owner else { return unmanaged[position] }
            let values = values
            guard values.indices.contains(position) else {
                throwRealmException("Index \(position) is out of bounds (must be less than \(values.count)).")
            }
            return element(values[position], owner)
        }
        set {
            var elements = elements
            elements[position] = newValue
            write(elements)
        }
    }

    /// The elements as they are at the start of the iteration.
    public func makeIterator() -> IndexingIterator<[Element]> { elements.makeIterator() }

    public func replaceSubrange(_ subrange: Range<Int>, with newElements: some Collection<Element>) {
        var elements = elements
        elements.replaceSubrange(subrange, with: newElements)
        write(elements)
    }

    /// Adds an element at the end.
    public func append(_ element: Element) { write(elements + [element]) }

    /// Adds elements at the end.
    public func append(objectsIn newElements: some Sequence<Element>) { write(elements + newElements) }

    /// Inserts an element before an index.
    public func insert(_ element: Element, at index: Int) { replaceSubrange(index..<index, with: [element]) }

    /// Removes the element at an index.
    public func remove(at index: Int) { replaceSubrange(index..<index + 1, with: EmptyCollection()) }

    /// Removes all elements; the objects themselves stay.
    public func removeAll() { write([]) }

    /// Puts an element in place of another.
    public func replace(index: Int, object: Element) { self[index] = object }

    /// Moves an element to another place.
    public func move(from: Int, to: Int) {
        var elements = elements
        elements.insert(elements.remove(at: from), at: to)
        write(elements)
    }

    /// The place of the first element that is equal; nil when there is none.
    public func index(of object: Element) -> Int? { elements.firstIndex(of: object) }

    public static func == (lhs: List, rhs: List) -> Bool { lhs === rhs || lhs.elements == rhs.elements }
    public func hash(into hasher: inout Hasher) { hasher.combine(elements) }
    public var description: String { "List<\(Element.self)> \(elements)" }
}

@available(*, unavailable)
extension List: Sendable {}

extension List: _Persistable {
    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        unsafeDowncast(List(owner: owner, slot: slot), to: Self.self)
    }

    public func _stored(in owner: ObjectBase) -> _StoredValue {
        .boxed(_BoxedValue(.list(elements.map { $0._stored(in: owner).value })))
    }

    public static func _default() -> Self { Self.init() }

    /// Takes another list, or any sequence of elements.
    public static func _coerce(_ value: Any) -> Self? {
        if let list = value as? Self { return list }
        guard let values = value as? [Any] else { return nil }
        let elements = values.map { Element._coerce($0) }
        guard !elements.contains(where: { $0 == nil }) else { return nil }
        let list = Self.init()
        list.unmanaged = elements.compactMap(\.self)
        return list
    }

    public static var _kind: _PropertyKind {
        var kind = Element._kind
        if kind.target != nil { kind.isOptional = false }
        kind.collection = .list
        return kind
    }
}

extension _PropertyKind {
    /// Whether it is an optional that is no link.
    var isScalarOptional: Bool { isOptional && target == nil }
}
