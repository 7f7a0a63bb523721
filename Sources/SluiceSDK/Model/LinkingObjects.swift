import SluiceCore

/// The objects that link to an object by one of their properties: the inverse of links.
///
/// ```swift
/// class Dog: Object {
///     @Persisted(primaryKey: true) var _id: ObjectId
///     @Persisted(originProperty: "dogs") var owners: LinkingObjects<Person>
/// }
/// ```
/// The collection is read-only and live like `Results`. It is empty on an unmanaged object. Links are found by an index.
public struct LinkingObjects<Element: ObjectBase & RealmCollectionValue>: RealmCollection {
    let originProperty: String
    private let storage: Storage?
    /// The single element of a key path trace, which represents all elements.
    private var traced: Element?

    /// The managed object that is the target of the links; nil if it is unmanaged.
    var owner: ObjectBase? { storage?.owner }

    /// State shared by copies. The keys are cached for one generation of the Realm.
    private final class Storage {
        let owner: ObjectBase
        var keys: [Value] = []
        var generation: UInt64 = 0

        init(owner: ObjectBase) { self.owner = owner }
    }

    /// Creates the inverse of a property of a class.
    public init(fromType _: Element.Type, property propertyName: String) { self.init(originProperty: propertyName) }

    init(originProperty: String) {
        self.originProperty = originProperty
        storage = nil
    }

    init(originProperty: String, owner: ObjectBase) {
        self.originProperty = originProperty
        storage = Storage(owner: owner)
    }

    /// The Realm that manages the object; nil for an unmanaged object.
    public var realm: Realm? { storage?.owner.managingCore.map { Realm(core: $0) } }

    /// `true` if the object has been deleted.
    public var isInvalidated: Bool { storage?.owner.isGone ?? false }

    private var keys: [Value] {
        guard let storage, let row = storage.owner._row, row.place == nil else { return [] }
        // A Realm that advances on use must do so before the generations are compared.
        row.core.reading.attempt(()) { _ in }
        // A frozen Realm may be read from any thread, so its cache is filled under a lock.
        return row.core.reading.exclusively {
            if storage.generation != row.core.clock.generation {
                storage.keys = row.core.reading.origins(of: row.key, type: Element.self, property: originProperty)
                storage.generation = row.core.clock.generation
            }
            return storage.keys
        }
    }

    /// The object that contains an embedded object; nil if it is not in the origin property.
    private var holder: Element? {
        guard let place = storage?.owner._row?.place, !place.isGone, let owner = place.owner as? Element, let property = place.property,
            property.name == originProperty
        else { return nil }
        return owner
    }

    private var isEmbedded: Bool { storage?.owner._row?.place != nil }

    public var startIndex: Int { 0 }
    public var endIndex: Int { count }
    /// The number of links: an object that links twice counts twice.
    public var count: Int {
        let count = isEmbedded ? holder == nil ? 0 : 1 : keys.count
        return storage?.owner.managingCore?.reading.noteCount(count) ?? count
    }

    public subscript(position: Int) -> Element {
        if let traced { return traced }
        if position == 0, let holder { return holder }
        let keys = keys
        guard keys.indices.contains(position), let core = storage?.owner.managingCore else {
            // The Realm has advanced since the app was given a larger count: a default object instead of a crash.
            if storage?.owner.managingCore?.reading.hasCounted(beyond: position) == true { return Element() }
            throwRealmException("Index \(position) is out of bounds (must be less than \(keys.count)).")
        }
        // The row existed when the keys were read, and the state has not changed since. An unreadable file shows defaults.
        return core.object(Element.self, key: keys[position]) ?? Element()
    }

    public var first: Element? { isEmpty ? nil : self[0] }
    public var last: Element? {
        let count = count
        return count == 0 ? nil : self[count - 1]
    }

    /// Iterates over the objects that link here at the start. Objects that are deleted meanwhile are skipped.
    public func makeIterator() -> RLMIterator<Element> {
        var first = holder
        guard first == nil, let core = storage?.owner.managingCore else {
            return RLMIterator {
                defer { first = nil }
                return first
            }
        }
        var rest = keys[...]
        return RLMIterator {
            while let key = rest.popFirst() {
                if let object = core.object(Element.self, key: key) { return object }
            }
            return nil
        }
    }

    /// Returns the index of an object; nil if it does not link here. Cost: linear.
    public func index(of object: Element) -> Int? { firstIndex { $0 == object } }

    public var _managedResults: Results<Element>? {
        guard let owner = storage?.owner, let core = owner.managingCore, Element.self is Object.Type else { return nil }
        let type = core.classes.type(of: Element.self)
        guard let property = core.classes.schema(type).slot(of: originProperty) else { return nil }
        return Results(
            storage: ResultsStorage(
                core: core, origin: .links(owner: owner, type: type, property: property), kind: .objects(type: type)))
    }

    /// `true` if both are inverses of the same object by the same property.
    public static func == (lhs: LinkingObjects, rhs: LinkingObjects) -> Bool {
        lhs.originProperty == rhs.originProperty && lhs.storage?.owner == rhs.storage?.owner
    }

    public var description: String { text(depth: 0) }
}

@available(*, unavailable)
extension LinkingObjects: Sendable {}

protocol AnyLinkingObjects { var originProperty: String { get } }
extension LinkingObjects: AnyLinkingObjects {}

extension LinkingObjects: _Persistable {
    public typealias PersistedType = LinkingObjects

    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> LinkingObjects {
        LinkingObjects(originProperty: owner._row?.schema.properties[Int(slot)].origin ?? "", owner: owner)
    }

    public func _stored(in owner: ObjectBase) -> _StoredValue { .null }
    public static func _default() -> LinkingObjects { LinkingObjects(originProperty: "") }

    public static func _traced(_ trace: _KeyPathTrace) -> LinkingObjects {
        var links = LinkingObjects(originProperty: "")
        links.traced = Element._traced(trace)
        return links
    }
    public static func _coerce(_ value: Any) -> LinkingObjects? { nil }

    public static var _kind: _PropertyKind {
        _PropertyKind(type: .link(to: Element.className()), collection: .list, target: Element.self, isComputed: true)
    }
}
