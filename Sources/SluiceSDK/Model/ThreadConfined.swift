import SluiceCore

/// What belongs to where its Realm was opened: managed objects and collections, and results.
public protocol ThreadConfined: SendableMetatype {
    /// The Realm that manages it; nil when none does.
    var realm: Realm? { get }
    /// Whether it, or what it belongs to, is not in the Realm any more.
    var isInvalidated: Bool { get }
    /// How to find it in another Realm of the file; nil when no Realm manages it.
    func _locator() -> _Locator?
}

/// How to find something again in another Realm of the same file.
// Sendable because: `find` holds constants only, classes, keys and paths, and is called where the Realm that it is given lives.
public struct _Locator: @unchecked Sendable {
    let path: String
    /// The version of the file from which on it is there.
    let version: UInt64
    let find: (RealmCore) -> Any?

    init(_ core: RealmCore, _ find: @escaping (RealmCore) -> Any?) {
        path = core.file.path
        version = core.state.version
        self.find = find
    }
}

extension ThreadConfined {
    /// Whether it belongs to a frozen Realm.
    public var isFrozen: Bool { realm?.isFrozen ?? false }

    /// The same in a frozen Realm: it does not change and may be read from any thread.
    ///
    /// A frozen Realm keeps the file from letting old states go; do not keep one for long.
    public func freeze() -> Self {
        guard let realm, let locator = _locator() else { throwRealmException("Unmanaged objects cannot be frozen.") }
        if realm.isFrozen { return self }
        if isInvalidated { throwRealmException(RealmMisuse.invalidated) }
        guard let frozen = locator.find(realm.core.freeze()) as? Self else { throwRealmException(RealmMisuse.invalidated) }
        return frozen
    }

    /// The live one of a frozen one, for where it is called; nil when it has been deleted meanwhile.
    public func thaw(_isolation: isolated (any Actor)? = #isolation) -> Self? {
        guard let realm, let locator = _locator() else { throwRealmException("Unmanaged objects cannot be thawed.") }
        if !realm.isFrozen { return self }
        return locator.find(realm.core.thaw(_isolation)) as? Self
    }
}

extension ObjectBase {
    /// Finds the object in another Realm of the file; nil for one that no Realm manages.
    func finder() -> ((RealmCore) -> ObjectBase?)? {
        guard let row = _row else { return nil }
        let objectClass = type(of: self)
        guard let place = row.place else {
            let (type, key) = (row.type, row.key)
            return { core in core.object(objectClass, type: type, key: key) }
        }
        guard let find = place.finder(), let embeddedClass = objectClass as? EmbeddedObject.Type else { return nil }
        return { core in
            guard let place = find(core), case .dictionary? = place.value else { return nil }
            return embeddedClass.accessor(at: place)
        }
    }

    /// See `ThreadConfined`.
    public func _locator() -> _Locator? {
        guard let core = managingCore, let find = finder() else { return nil }
        return _Locator(core, find)
    }
}

extension _Place {
    /// Finds the place in another Realm of the file.
    func finder() -> ((RealmCore) -> _Place?)? {
        if isGone { return nil }
        if let parent, let step {
            guard let find = parent.finder() else { return nil }
            return { core in find(core).map { _Place(parent: $0, step: step) } }
        }
        guard let find = owner.finder() else { return nil }
        let slot = slot
        return { core in find(core).map { _Place(owner: $0, slot: slot) } }
    }

    /// How to find what an accessor of the place shows.
    func locator(_ make: @escaping (_Place) -> Any) -> _Locator? {
        guard let core, let find = finder() else { return nil }
        return _Locator(core) { core in find(core).map(make) }
    }
}

extension Object: ThreadConfined {}
extension EmbeddedObject: ThreadConfined {}

extension List {
    public func _locator() -> _Locator? { place?.locator { List(place: $0) } }
}

extension MutableSet {
    public func _locator() -> _Locator? { place?.locator { MutableSet(place: $0) } }
}

extension Map {
    public func _locator() -> _Locator? { place?.locator { Map(place: $0) } }
}

extension LinkingObjects {
    public func _locator() -> _Locator? {
        guard let owner, let core = owner.managingCore, let find = owner.finder() else { return nil }
        let originProperty = originProperty
        return _Locator(core) { core in find(core).map { LinkingObjects(originProperty: originProperty, owner: $0) } }
    }
}

extension Results {
    public func _locator() -> _Locator? {
        storage.finder().map { find in _Locator(storage.core) { core in find(core).map { Results(storage: $0) } } }
    }
}
