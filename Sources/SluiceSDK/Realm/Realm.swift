public import Dispatch
public import Foundation
import SluiceCore
package import SluiceReplica

/// A live view of a local database, synced or not.
///
/// A Realm and all objects obtained from it are confined to the thread, queue or actor that opened it.
/// It shows one snapshot of the file. On the main thread, a queue or an actor it advances by itself; on others `refresh()` advances it.
public struct Realm: Equatable {
    let core: RealmCore

    init(core: RealmCore) { self.core = core }

    /// Opens the default Realm.
    public init(queue: DispatchQueue? = nil) throws { try self.init(configuration: .defaultConfiguration, queue: queue) }

    /// Opens a Realm without waiting for the server.
    /// - Parameter queue: The serial queue that the Realm is confined to. If nil, the current thread.
    public init(configuration: Configuration, queue: DispatchQueue? = nil) throws {
        core = try Realm.makeCore(configuration, scheduler: queue.map { .of($0) } ?? .current).core
    }

    /// Opens the file at a URL, with the default configuration otherwise.
    public init(fileURL: URL) throws {
        var configuration = Configuration.defaultConfiguration
        configuration.fileURL = fileURL
        try self.init(configuration: configuration)
    }

    /// Opens the core of a configuration.
    /// - Returns: The core, and `true` if this call created the file.
    static func makeCore(
        _ configuration: Configuration, scheduler: Scheduler, floats: Bool = false
    ) throws -> (core: RealmCore, isNew: Bool) {
        try Error.naming(configuration) { try openCore(configuration, scheduler, floats: floats) }
    }

    private static func openCore(
        _ configuration: Configuration, _ scheduler: Scheduler, floats: Bool
    ) throws -> (core: RealmCore, isNew: Bool) {
        let (file, isFirstOpen) = try OpenFile.of(configuration)
        let isNew = isFirstOpen && file.isNew
        let core = try file.core(configuration, scheduler: scheduler, floats: floats)
        _ = try asRealmError { try core.reading.snapshot.pin() }
        // The writer is held by this scheduler's open transaction: initial subscriptions would deadlock.
        if file.session == nil || core.isWriting { return (core, isNew) }
        try file.runInitialSubscriptions(configuration, core: core, isFirstOpen: isFirstOpen)
        file.start()
        return (core, isNew)
    }

    public static func == (lhs: Realm, rhs: Realm) -> Bool { lhs.core === rhs.core }

    /// The configuration that the Realm was opened with.
    public var configuration: Configuration { core.configuration }

    /// Advances to the newest snapshot and notifies observers. Needed only if the Realm does not advance by itself.
    /// - Returns: `true` if there was a newer snapshot; `false` in a write transaction or if the Realm is frozen.
    @discardableResult
    public func refresh() -> Bool {
        core.scheduler.verify()
        return !core.isWriting && !core.isFrozen && core.observations.deliverNow()
    }

    // MARK: Objects

    /// All objects of a class, or projections of them.
    public func objects<Element: RealmFetchable>(_ type: Element.Type) -> Results<Element> {
        Results(storage: ResultsStorage(core: core, type: core.classes.type(of: Element._fetched)))
    }

    /// The object with a primary key; nil if it is not on the device. Traps if the key has the wrong type or the class has none.
    public func object<Element: Object, KeyType>(ofType type: Element.Type, forPrimaryKey key: KeyType) -> Element? {
        ModelSchema.of(type).requirePrimaryKey()
        guard let value = Value(any: key) else {
            throwRealmException("Invalid primary key '\(key)' for '\(type.className())'.")
        }
        return core.object(type, key: value)
    }

    /// `true` if no class has an object.
    public var isEmpty: Bool {
        core.replica.schema.types.indices.allSatisfy { type in
            core.reading.attempt(0) { store throws(SluiceError) in try store.count(type: type) } == 0
        }
    }
}

@available(*, unavailable)
extension Realm: Sendable {}

// MARK: Writing

extension Realm {
    /// The effect of `add` and `create` on an object whose primary key exists.
    public enum UpdatePolicy: Int, Sendable {
        /// Traps. The default.
        case error = 1
        /// Sets the given properties that differ.
        case modified = 3
        /// Sets all given properties.
        case all = 2
    }

    /// Runs the block as one transaction. If the block throws, the transaction is rolled back.
    ///
    /// Blocks until other writers have finished. Needs no connection.
    /// - Parameter tokens: The observers of this Realm that are not notified of the transaction.
    /// - Throws: The block's error, or `Realm.Error.noSubscriptionForWrite` if no subscription covers a class that was written.
    @discardableResult
    public func write<Result>(withoutNotifying tokens: [NotificationToken] = [], _ block: () throws -> Result) throws -> Result {
        try core.transactions.begin()
        return try core.transactions.finish(withoutNotifying: tokens, block)
    }

    /// Begins a transaction. Blocks until other writers have finished.
    ///
    /// If the file cannot be written, changes are discarded and `commitWrite` throws the reason.
    /// Traps if there are more active versions than the configuration allows.
    public func beginWrite() { core.transactions.beginAnyway() }

    /// Commits the transaction.
    /// - Parameter tokens: The observers of this Realm that are not notified of it.
    /// - Throws: The first error of the transaction.
    public func commitWrite(withoutNotifying tokens: [NotificationToken] = []) throws {
        try core.transactions.commit(withoutNotifying: tokens)
    }

    /// Rolls back the transaction.
    public func cancelWrite() { core.transactions.cancel() }

    /// `true` if a transaction is open.
    public var isInWriteTransaction: Bool { core.isWriting }

    /// Adds an unmanaged object, which is live from then on, and the objects that it links to.
    public func add(_ object: Object, update: UpdatePolicy = .error) { core.add(object, update: update) }

    /// Adds several objects.
    public func add<S: Sequence>(_ objects: S, update: UpdatePolicy = .error) where S.Iterator.Element: Object {
        for object in objects { core.add(object, update: update) }
    }

    /// Creates an object from a dictionary of properties, or from an array in the order of the properties.
    @discardableResult
    public func create<T: Object>(_ type: T.Type, value: Any = [String: Any](), update: UpdatePolicy = .error) -> T {
        let schema = ModelSchema.of(type)
        if let object = value as? T, object._row?.core === core, object.model === schema { return object }
        let object = schema.instance(value, of: type)
        core.add(object, update: update, isPartial: true)
        return object
    }

    /// Sends an asymmetric object. It is removed from the device once the server has acknowledged it.
    public func create<T: AsymmetricObject>(_ type: T.Type, value: Any = [String: Any]()) {
        core.add(ModelSchema.of(type).instance(value, of: type), update: .error, isPartial: true)
    }

    /// Deletes an object. The owner of an embedded object then has none.
    public func delete(_ object: ObjectBase) { core.delete(object) }

    /// Deletes several objects.
    public func delete<S: Sequence>(_ objects: S) where S.Iterator.Element: ObjectBase {
        for object in Array(objects) { core.delete(object) }
    }

    /// Deletes all objects of a result.
    public func delete<Element: Object>(_ objects: Results<Element>) { core.transactions.delete(objects.storage.query.type, objects.keys) }

    /// Deletes the objects of a list.
    public func delete<Element: Object>(_ objects: List<Element>) { for object in Array(objects) { core.delete(object) } }

    /// Deletes the objects of a set.
    public func delete<Element: Object>(_ objects: MutableSet<Element>) { for object in Array(objects) { core.delete(object) } }

    /// Deletes the objects of a map.
    public func delete<Key, Element: Object>(_ map: Map<Key, Element?>) { for object in map.values { object.map { core.delete($0) } } }

    /// Deletes the embedded objects of results and clears them in their owners. Needs a write transaction.
    public func delete<Element: EmbeddedObject>(_ objects: Results<Element>) { for object in Array(objects) { core.delete(object) } }

    /// Deletes the embedded objects of a list. Needs a write transaction.
    public func delete<Element: EmbeddedObject>(_ objects: List<Element>) { objects.removeAll() }

    /// Deletes the embedded objects of a map with their entries. Needs a write transaction.
    public func delete<Key, Element: EmbeddedObject>(_ map: Map<Key, Element?>) { map.removeAll() }

    /// Deletes all objects of all classes of the Realm.
    public func deleteAll() {
        for (type, objectType) in core.replica.schema.types.enumerated() where objectType.kind == .topLevel {
            let keys = core.reading.run(core.reading.all(type))
            if !keys.isEmpty { core.transactions.delete(type, keys) }
        }
    }
}

/// The replica of a Realm, for other targets of the package.
package func _replica(of realm: Realm) -> Replica { realm.core.replica }
