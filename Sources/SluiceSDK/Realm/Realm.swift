public import Dispatch
public import Foundation
import SluiceCore
import SluiceReplica

/// A view of a local database, live and synced.
///
/// A Realm and everything got from it belongs to where it was opened: the main thread, a queue, an actor, a thread. It shows
/// one state of the file; the main thread, queues and actors move on to newer states by themselves, others by `refresh()`.
public struct Realm: Equatable {
    let core: RealmCore

    init(core: RealmCore) { self.core = core }

    /// Opens the default Realm.
    public init(queue: DispatchQueue? = nil) throws { try self.init(configuration: .defaultConfiguration, queue: queue) }

    /// Opens a Realm without waiting for the server.
    /// - Parameter queue: the serial queue that the Realm is confined to; nil: the current thread.
    public init(configuration: Configuration, queue: DispatchQueue? = nil) throws {
        core = try Realm.makeCore(configuration, scheduler: queue.map { .of($0) } ?? .current).core
    }

    /// Opens the file at a URL, with the default configuration for the rest.
    public init(fileURL: URL) throws {
        var configuration = Configuration.defaultConfiguration
        configuration.fileURL = fileURL
        try self.init(configuration: configuration)
    }

    /// - Returns: the core, and whether it is the first on a file that there was not.
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
        _ = try asRealmError { try core.state.pin() }
        // Within a write transaction of this place, what follows would wait for its end.
        if file.session == nil || core.isWriting { return (core, isNew) }
        try file.runInitialSubscriptions(configuration, core: core, isFirstOpen: isFirstOpen)
        file.start()
        return (core, isNew)
    }

    public static func == (lhs: Realm, rhs: Realm) -> Bool { lhs.core === rhs.core }

    /// What the Realm was opened with.
    public var configuration: Configuration { core.configuration }

    /// Moves to the newest state and tells observers; needed only where that does not happen by itself.
    /// - Returns: whether there was something newer.
    @discardableResult
    public func refresh() -> Bool {
        core.scheduler.verify()
        return !core.isWriting && !core.isFrozen && core.deliverNow()
    }

    // MARK: Objects

    /// All objects of a class, or views of them.
    public func objects<Element: RealmFetchable>(_ type: Element.Type) -> Results<Element> {
        Results(storage: ResultsStorage(core: core, type: core.type(of: Element._fetched)))
    }

    /// The object with a primary key; nil when it is not on the device.
    public func object<Element: Object, KeyType>(ofType type: Element.Type, forPrimaryKey key: KeyType) -> Element? {
        ModelSchema.of(type).requirePrimaryKey()
        guard let value = Value(any: key) else {
            throwRealmException("Invalid primary key '\(key)' for '\(type.className())'.")
        }
        return core.object(type, key: value)
    }

    /// Whether no class has an object.
    public var isEmpty: Bool {
        core.replica.schema.types.indices.allSatisfy { type in
            core.attempt(0) { store throws(SluiceError) in try store.count(type: type) } == 0
        }
    }
}

@available(*, unavailable)
extension Realm: Sendable {}

// MARK: Writing

extension Realm {
    /// What `add` and `create` do when there is an object with the same primary key.
    public enum UpdatePolicy: Int, Sendable {
        /// Misuse, which ends the program.
        case error = 1
        /// Set the properties that differ.
        case modified = 3
        /// Set all properties that are given.
        case all = 2
    }

    /// Runs the block as one transaction: all of its changes are stored, or none when it throws.
    ///
    /// It waits for other writers; it does not need a connection.
    /// - Parameter tokens: the observers of this Realm that do not hear of the transaction.
    /// - Throws: what the block throws, or `Realm.Error.noSubscriptionForWrite` when a class is written that no subscription covers.
    @discardableResult
    public func write<Result>(withoutNotifying tokens: [NotificationToken] = [], _ block: () throws -> Result) throws -> Result {
        try core.begin()
        return try core.finish(withoutNotifying: tokens, block)
    }

    /// Begins a transaction; waits for other writers.
    ///
    /// Where it cannot begin, because the file cannot be written, what is written goes nowhere and `commitWrite` throws the
    /// reason. More active versions than the configuration allows end the program.
    public func beginWrite() { core.beginAnyway() }

    /// Stores the transaction.
    /// - Parameter tokens: the observers of this Realm that do not hear of it.
    public func commitWrite(withoutNotifying tokens: [NotificationToken] = []) throws { try core.commit(withoutNotifying: tokens) }

    /// Undoes the transaction.
    public func cancelWrite() { core.cancel() }

    /// Whether a transaction is open.
    public var isInWriteTransaction: Bool { core.isWriting }

    /// Adds an object that no Realm manages; from then on it is live. Objects that it links to are added too.
    public func add(_ object: Object, update: UpdatePolicy = .error) { core.add(object, update: update) }

    /// Adds several objects.
    public func add<S: Sequence>(_ objects: S, update: UpdatePolicy = .error) where S.Iterator.Element: Object {
        for object in objects { core.add(object, update: update) }
    }

    /// Makes an object from a dictionary by property name, or an array in the order of the properties.
    @discardableResult
    public func create<T: Object>(_ type: T.Type, value: Any = [String: Any](), update: UpdatePolicy = .error) -> T {
        let schema = ModelSchema.of(type)
        if let object = value as? T, object._row?.core === core, object.model === schema { return object }
        let object = schema.instance(value, of: type)
        core.add(object, update: update, isPartial: true)
        return object
    }

    /// Sends an asymmetric object. It leaves the device when the server has it.
    public func create<T: AsymmetricObject>(_ type: T.Type, value: Any = [String: Any]()) {
        core.add(ModelSchema.of(type).instance(value, of: type), update: .error, isPartial: true)
    }

    /// Deletes an object; the owner of an embedded one has none any more.
    public func delete(_ object: ObjectBase) { core.delete(object) }

    /// Deletes several objects.
    public func delete<S: Sequence>(_ objects: S) where S.Iterator.Element: ObjectBase {
        for object in Array(objects) { core.delete(object) }
    }

    /// Deletes all objects of a result.
    public func delete<Element: Object>(_ objects: Results<Element>) { core.delete(objects.storage.query.type, objects.keys) }

    /// Deletes the objects of a list.
    public func delete<Element: Object>(_ objects: List<Element>) { for object in Array(objects) { core.delete(object) } }

    /// Deletes the objects of a set.
    public func delete<Element: Object>(_ objects: MutableSet<Element>) { for object in Array(objects) { core.delete(object) } }

    /// Deletes the objects of a map.
    public func delete<Key, Element: Object>(_ map: Map<Key, Element?>) { for object in map.values { object.map { core.delete($0) } } }

    /// Deletes all objects of all classes of the Realm.
    public func deleteAll() {
        for (type, objectType) in core.replica.schema.types.enumerated() where objectType.kind == .topLevel {
            let keys = core.run(core.all(type))
            if !keys.isEmpty { core.delete(type, keys) }
        }
    }
}
