import SluiceCore
import SluiceReplica

/// The objects that match a query: live, lazy and in order.
///
/// It shows its Realm's current state whenever it is asked. A loop over it goes through the objects that matched when it began.
public struct Results<Element: Object>: RandomAccessCollection {
    let storage: Storage

    /// What copies share.
    final class Storage {
        let core: RealmCore
        let query: ReplicaQuery
        /// The last result and the state that it is of.
        var keys: [Value] = []
        var generation: UInt64 = 0
        /// The core's when this was made; another one means that the Realm was invalidated.
        let epoch: UInt64
        /// The subscription that `subscribe` made.
        var subscription: UInt64?

        init(core: RealmCore, query: ReplicaQuery) {
            self.core = core
            epoch = core.epoch
            self.query = query
        }

        var type: Int { query.type }
    }

    init(core: RealmCore) { self.init(core: core, query: core.all(core.type(of: Element.self))) }

    init(core: RealmCore, query: ReplicaQuery) { storage = Storage(core: core, query: query) }

    /// The same query in another Realm.
    func moved(to core: RealmCore) -> Results { Results(core: core, query: storage.query) }

    var keys: [Value] {
        let core = storage.core
        // Lets a Realm that moves on by use do so before the generations are compared.
        core.attempt(()) { _ in }
        if storage.epoch != core.epoch { throwRealmException("Access to invalidated Results objects") }
        return core.exclusively {
            if storage.generation != core.clock.generation {
                storage.keys = core.run(storage.query)
                storage.generation = core.clock.generation
            }
            return storage.keys
        }
    }

    private func object(_ key: Value) -> Element {
        // The row was there when the keys were read, and the state has not changed since; an unreadable file shows defaults.
        storage.core.object(Element.self, type: storage.type, key: key) ?? Element()
    }

    /// The Realm of the objects.
    public var realm: Realm? { Realm(core: storage.core) }
    /// The number of objects that match.
    public var count: Int { keys.count }
    public var startIndex: Int { 0 }
    public var endIndex: Int { count }

    public subscript(position: Int) -> Element {
        let keys = keys
        guard keys.indices.contains(position) else {
            throwRealmException("Index \(position) is out of bounds (must be less than \(keys.count)).")
        }
        return object(keys[position])
    }

    /// The first object; nil when there is none.
    public var first: Element? { keys.first.map { object($0) } }
    /// The last object; nil when there is none.
    public var last: Element? { keys.last.map { object($0) } }

    /// Goes through the objects that match now. It reads ahead what the body of the loop uses of them.
    public func makeIterator() -> AnyIterator<Element> {
        let core = storage.core
        // Lets a Realm that moves on by use do so before the loop begins.
        core.attempt(()) { _ in }
        if storage.epoch != core.epoch { throwRealmException("Access to invalidated Results objects") }
        let loop: ObjectLoop<Element> =
            storage.query.isWhole
            ? ObjectLoop(core: core, type: storage.type) : ObjectLoop(core: core, type: storage.type, keys: keys)
        return AnyIterator { loop.object() }
    }

    /// The place of an object; nil when it does not match.
    public func index(of object: Element) -> Int? { object._row.flatMap { keys.firstIndex(of: $0.key) } }

    // MARK: Narrowing

    /// Those that match a type-safe query too.
    public func `where`(_ isIncluded: (Query<Element>) -> Query<Bool>) -> Results { narrowed(isIncluded(Query(.root)).condition) }

    /// Those that match a predicate too; `%@` and `$0` stand for arguments, `%K` for a property's name.
    public func filter(_ predicateFormat: String, _ args: Any...) -> Results {
        do {
            return narrowed(try PredicateFormat.text(predicateFormat, args))
        } catch {
            throwRealmException("\(error)")
        }
    }

    private func narrowed(_ text: String) -> Results {
        do throws(SluiceError) {
            return Results(core: storage.core, query: try storage.query.narrowed(by: text, aliases: storage.core.aliases))
        } catch {
            throwRealmException("\(error)")
        }
    }

    /// The same objects ordered by a property.
    public func sorted(byKeyPath keyPath: String, ascending: Bool = true) -> Results {
        sorted(by: [SortDescriptor(keyPath: keyPath, ascending: ascending)])
    }

    /// The same objects ordered by a property.
    public func sorted<V: _Persistable>(by keyPath: KeyPath<Element, V>, ascending: Bool = true) -> Results {
        guard let name = ModelSchema.of(Element.self).name(of: keyPath) else {
            throwRealmException("The key path \(keyPath) leads to no @Persisted property.")
        }
        return sorted(byKeyPath: name, ascending: ascending)
    }

    /// The same objects ordered by several properties, the most significant first.
    public func sorted(by sortDescriptors: some Sequence<SortDescriptor>) -> Results {
        let keys = sortDescriptors.map { (path: $0.keyPath, ascending: $0.ascending) }
        do throws(SluiceError) {
            return Results(core: storage.core, query: try storage.query.sorted(by: keys, aliases: storage.core.aliases))
        } catch {
            let paths = keys.map { "'\($0.path)'" }.joined(separator: ", ")
            guard error.code == .queryUnknownProperty else { throwRealmException("Cannot sort on key path \(paths): \(error.message)") }
            let name = storage.core.schema(storage.type).name
            throwRealmException("Cannot sort on key path \(paths): property '\(name).\(keys[0].path)' does not exist.")
        }
    }
}

@available(*, unavailable)
extension Results: Sendable {}

/// A property to sort by.
public struct SortDescriptor: Hashable, Sendable {
    public let keyPath: String
    public let ascending: Bool

    public init(keyPath: String, ascending: Bool = true) {
        self.keyPath = keyPath
        self.ascending = ascending
    }
}
