import SluiceCore

/// Managed objects, collections and results. Each belongs to the thread, queue or actor where its Realm was opened.
public protocol ThreadConfined: SendableMetatype {
    /// The Realm that manages it; nil if unmanaged.
    var realm: Realm? { get }
    /// `true` if it, or the object that contains it, is not in the Realm any more.
    var isInvalidated: Bool { get }
    /// Returns a way to find it in another Realm of the file; nil if unmanaged.
    func _locator() -> _Locator?
}

/// A way to find something again in another Realm of the same file.
public struct _Locator: @unchecked Sendable {  // Sendable because: `find` captures constants and runs where its Realm belongs.
    let path: String
    /// The first version of the file that is certain to contain it.
    let version: UInt64
    let find: (RealmCore) -> Any?

    init(_ core: RealmCore, _ find: @escaping (RealmCore) -> Any?) {
        path = core.file.path
        version = core.reading.snapshot.version
        self.find = find
    }
}

extension ThreadConfined {
    /// `true` if it belongs to a frozen Realm.
    public var isFrozen: Bool { realm?.isFrozen ?? false }

    /// Returns the same object or collection in a frozen Realm. It never changes, and any thread may read it.
    ///
    /// A frozen Realm keeps old states in the file, so it should be short-lived. Unmanaged or invalidated objects end the program.
    public func freeze() -> Self {
        guard let realm, let locator = _locator() else { throwRealmException("Unmanaged objects cannot be frozen.") }
        if realm.isFrozen { return self }
        if isInvalidated { throwRealmException(RealmMisuse.invalidated) }
        guard let frozen = locator.find(realm.core.freeze()) as? Self else { throwRealmException(RealmMisuse.invalidated) }
        return frozen
    }

    /// Returns the live counterpart of a frozen object or collection, for the caller's executor; nil if it has been deleted meanwhile.
    /// An unmanaged object ends the program.
    public func thaw(_isolation: isolated (any Actor)? = #isolation) -> Self? {
        guard let realm, let locator = _locator() else { throwRealmException("Unmanaged objects cannot be thawed.") }
        if !realm.isFrozen { return self }
        return locator.find(realm.core.thaw(_isolation)) as? Self
    }
}

extension ObjectBase {
    /// Returns a function that finds the object in another Realm of the file; nil for an unmanaged object.
    func finder() -> ((RealmCore) -> ObjectBase?)? {
        guard let row = _row else { return nil }
        // The closures capture classes, keys and steps only, never the object: they run where another Realm belongs.
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
    /// Returns a function that finds the place in another Realm of the file; nil for a place that is gone.
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

    /// Returns a locator for an accessor of the place, which `make` creates.
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
