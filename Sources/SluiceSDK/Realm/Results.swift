import SluiceCore
import SluiceReplica

/// The elements of a class or collection that match a query: live, lazy and ordered.
///
/// Each access reads the Realm's current state. A loop iterates over the elements that matched at its start.
public struct Results<Element: RealmCollectionValue>: RealmCollection {
    let storage: ResultsStorage

    init(storage: ResultsStorage) { self.storage = storage }

    var keys: [Value] { storage.current().keys }

    private func element(_ key: Value, _ elements: ResultsStorage.Elements) -> Element? {
        if case .objects(let type) = storage.kind { return object(type, key) }
        guard case .place(let place) = storage.origin else { return nil }
        let elementPlace = Element._hasPlace ? _Place(parent: place, step: elements.steps[elements.index(key)]) : place
        return Element._makeElement(from: _StoredValue(elements.value(key)), at: elementPlace)
    }

    private func object(_ type: Int, _ key: Value) -> Element? {
        let core = storage.core
        guard let row = core.reading.accessorRow(type, key, moving: false) else { return nil }
        return Element._object(of: _RowCache(core: core, schema: core.classes.schema(type), type: type, key: key, row: row))
    }

    /// The Realm of the elements.
    public var realm: Realm? { Realm(core: storage.core) }
    /// `true` if the Realm has been invalidated since the results were created, or if their owner has been deleted.
    public var isInvalidated: Bool {
        if storage.epoch != storage.core.clock.epoch { return true }
        return switch storage.origin {
        case .table: false
        case .place(let place): place.value == nil
        case .links(let owner, _, _): owner.isGone
        }
    }

    public var _managedResults: Results? { self }

    /// The number of elements. It does not read elements that have not been read yet.
    public var count: Int { storage.count }
    public var startIndex: Int { 0 }
    public var endIndex: Int { count }

    public subscript(position: Int) -> Element {
        if case .objects(let type) = storage.kind, let key = storage.key(at: position) {
            return object(type, key) ?? Element._default()
        }
        let elements = storage.current(at: position)
        guard elements.keys.indices.contains(position) else {
            // The app has read a count that includes this index.
            if elements.isLost(position) || storage.core.reading.hasCounted(beyond: position) { return Element._default() }
            throwRealmException("Index \(position) is out of bounds (must be less than \(elements.keys.count)).")
        }
        // The keys belong to the current snapshot, so the element exists. An unreadable file returns defaults.
        return element(elements.keys[position], elements) ?? Element._default()
    }

    /// The first element; nil if there is none.
    public var first: Element? {
        if case .objects(let type) = storage.kind { return storage.firstKey.flatMap { object(type, $0) } }
        return isEmpty ? nil : self[0]
    }
    /// The last element; nil if there is none.
    public var last: Element? {
        if case .objects(let type) = storage.kind { return storage.lastKey.flatMap { object(type, $0) } }
        let elements = storage.current()
        return elements.keys.last.flatMap { element($0, elements) }
    }

    /// A copy of the current elements, without those that cannot be read.
    public func _copyToContiguousArray() -> ContiguousArray<Element> {
        let elements = storage.current()
        return ContiguousArray(elements.keys.lazy.compactMap { element($0, elements) })
    }

    /// Returns an iterator over the elements that match now. Elements that are deleted during the loop are skipped.
    ///
    /// It reads ahead the properties that the loop's body uses. An object that the body does not retain may be reused for a later element.
    public func makeIterator() -> RLMIterator<Element> {
        if case .objects(let type) = storage.kind, Element.self is AnyObject.Type {
            let objects: LoopRest.State = storage.isWholeTable ? .table(after: .min) : .keys(keys[...])
            return RLMIterator(_ObjectLoop(core: storage.core, type: type, over: objects, of: Element.self))
        }
        let elements = storage.current()
        var rest = elements.keys[...]
        return RLMIterator { rest.popFirst().flatMap { element($0, elements) } }
    }

    /// The index of an element; nil if it does not match.
    public func index(of object: Element) -> Int? {
        guard let row = (object as? ObjectBase)?._row, row.place == nil else { return firstIndex { $0 == object } }
        return row.core === storage.core ? keys.firstIndex(of: row.key) : nil
    }

    /// `true` if both are copies of the same results.
    public static func == (lhs: Results, rhs: Results) -> Bool { lhs.storage === rhs.storage }

    public var description: String { text(depth: 0) }
}

extension Results where Element: ObjectBase {
    /// Creates results of all objects of a class.
    init(core: RealmCore) { self.init(storage: ResultsStorage(core: core, type: core.classes.type(of: Element.self))) }
}

@available(*, unavailable)
extension Results: Sendable {}

/// An iterator over the elements of a collection.
public struct RLMIterator<Element>: IteratorProtocol {
    /// The loop over elements that are objects. If nil, `body` returns the elements.
    @usableFromInline let loop: _ObjectLoop?
    @usableFromInline let body: () -> Element?

    init(_ body: @escaping () -> Element?) { (loop, self.body) = (nil, body) }

    /// Creates an iterator over objects.
    /// - Parameter loop: A loop whose elements have this class.
    init(_ loop: _ObjectLoop) where Element: RealmCollectionValue { (self.loop, body) = (loop, { nil }) }

    // Inlined because: a caller that knows the class then needs no metadata of the optional.
    @inlinable public mutating func next() -> Element? {
        guard let loop else { return body() }
        return loop.next().map { unsafeBitCast($0, to: Element.self) }
    }
}

/// A type that `Realm.objects(_:)` returns: an `Object` class or a `Projection` of one.
public protocol RealmFetchable: RealmCollectionValue {
    /// The class of the objects that are fetched.
    static var _fetched: ObjectBase.Type { get }
}

extension Object: RealmFetchable {
    public static var _fetched: ObjectBase.Type { self }
}
