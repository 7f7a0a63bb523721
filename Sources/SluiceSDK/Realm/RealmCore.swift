import Dispatch
import SluiceCore
import SluiceReplica

/// What all handles of one Realm on one thread, queue or actor share.
final class RealmCore {
    let configuration: Realm.Configuration
    let file: OpenFile
    let scheduler: Scheduler
    let clock = _RealmClock()
    /// Index of each class in the file.
    private let types: [ObjectIdentifier: Int]
    private let reader: ReplicaReader
    private(set) var transaction: WriteTransaction?
    /// The first error of the open transaction; the commit throws it.
    private var failure: SluiceError?
    /// Whether reading moves on to newer states by itself.
    private let floats: Bool
    /// Whether the file held nothing of the server's when this Realm was opened.
    let wasEmptyAtOpen: Bool
    private let inbox = ChangeInbox()
    private var observer: UInt64 = 0
    private var observations: [Observation] = []

    var replica: Replica { file.replica }

    /// - Throws: `schemaMismatch` when the file is open with other classes.
    init(configuration: Realm.Configuration, file: OpenFile, scheduler: Scheduler, floats: Bool) throws {
        self.configuration = configuration
        self.file = file
        self.scheduler = scheduler
        self.floats = floats
        var types: [ObjectIdentifier: Int] = [:]
        for schema in ModelSchema.closure(of: configuration.objectTypes ?? []) {
            guard let index = file.replica.schema.index(of: schema.name), file.replica.schema.types[index] == schema.objectType else {
                throw Realm.Error(
                    .schemaMismatch, "The Realm file is already open without the class \(schema.name); open it with the same objectTypes.")
            }
            types[ObjectIdentifier(schema.objectClass)] = index
        }
        self.types = types
        wasEmptyAtOpen = try asRealmError { try file.replica.currentSubscriptionSet() }.version == 0
        reader = try asRealmError { try file.replica.makeReader() }
        let inbox = inbox
        let weak = WeakConfined(self)
        observer = file.replica.observeChanges { change in
            if inbox.put(change) { scheduler.enqueue { weak.content?.deliver() } }
        }
    }

    deinit { file.replica.removeObserver(observer) }

    // MARK: Reading

    /// Runs a read. A file that cannot be read shows nothing; the sync error handler hears why.
    func attempt<R>(_ fallback: R, _ body: (RowStore) throws(SluiceError) -> R) -> R {
        do throws(SluiceError) {
            if let transaction { return try body(transaction.store) }
            if floats && reader.isStale { try advance() }
            return try body(reader.store)
        } catch {
            file.report(error)
            return fallback
        }
    }

    private func advance() throws(SluiceError) {
        if try reader.refresh() { clock.generation += 1 }
    }

    /// Moves to the newest state. - Returns: whether there was something newer.
    func refresh() -> Bool {
        guard transaction == nil, reader.isStale else { return false }
        attempt(()) { _ throws(SluiceError) in try advance() }
        return true
    }

    func type(of objectClass: ObjectBase.Type) -> Int {
        guard let type = types[ObjectIdentifier(objectClass)] else {
            throwRealmException("Object type '\(objectClass.className())' is not managed by the Realm: add it to objectTypes.")
        }
        return type
    }

    func row(_ type: Int, _ key: Value) -> Row? { attempt(nil) { store throws(SluiceError) in try store.row(type: type, key: key) } }

    func contains(_ target: ObjectBase.Type, _ key: Value) -> Bool {
        let type = type(of: target)
        return attempt(false) { store throws(SluiceError) in try store.contains(type: type, key: key) }
    }

    func object<T: ObjectBase>(_ objectClass: T.Type, key: Value) -> T? {
        let type = type(of: objectClass)
        guard let row = row(type, key) else { return nil }
        let schema = ModelSchema.of(objectClass)
        let object = T()
        schema.bind(object, to: _RowCache(core: self, schema: schema, type: type, key: key, row: row))
        return object
    }

    func run(_ query: ReplicaQuery) -> [Value] { attempt([]) { store throws(SluiceError) in try query.run(on: store) } }

    // MARK: Transactions

    func begin() throws {
        if transaction != nil { throwRealmException("The Realm is already in a write transaction") }
        failure = nil
        transaction = try asRealmError { try replica.beginWrite() }
        clock.generation += 1
    }

    func commit() throws {
        guard let open = transaction else {
            throwRealmException("Can't commit a non-existing write transaction")
        }
        if let failure {
            cancel()
            throw Realm.Error(failure)
        }
        transaction = nil
        defer { afterTransaction() }
        try asRealmError { try open.commit() }
    }

    func cancel() {
        transaction?.cancel()
        transaction = nil
        failure = nil
        afterTransaction()
    }

    private func afterTransaction() {
        attempt(()) { _ throws(SluiceError) in _ = try reader.refresh() }
        clock.generation += 1
    }

    /// Runs a write in the open transaction; remembers its error for the commit.
    private func change(_ body: (WriteTransaction) throws(SluiceError) -> Void) {
        guard let transaction else {
            throwRealmException("Cannot modify managed objects outside of a write transaction.")
        }
        guard failure == nil else { return }
        do throws(SluiceError) {
            try body(transaction)
        } catch {
            failure = error
        }
        clock.generation += 1
    }

    func set(_ type: Int, _ key: Value, _ slot: Int, _ value: Value) {
        change { transaction throws(SluiceError) in try transaction.set(type: type, key: key, property: slot, value) }
    }

    func delete(_ object: ObjectBase) {
        guard let row = object._row, row.core === self else {
            throwRealmException("Can only delete an object from the Realm it belongs to.")
        }
        change { transaction throws(SluiceError) in try transaction.delete(type: row.type, key: row.key) }
    }

    func delete(_ type: Int, _ keys: [Value]) {
        change { transaction throws(SluiceError) in
            for key in keys { try transaction.delete(type: type, key: key) }
        }
    }

    /// Makes an object that no Realm manages one of this Realm, in place.
    func add(_ object: ObjectBase, update: Realm.UpdatePolicy) {
        if let row = object._row {
            if row.core === self { return }
            throwRealmException("Object is already managed by another Realm. Use create instead to copy it into this Realm.")
        }
        let schema = object.model
        let type = type(of: Swift.type(of: object))
        // Links need to know where to add their targets, so the object belongs here before its values are taken.
        let holder = ObjectBase()
        holder._row = _RowCache(core: self, schema: schema, type: type, key: .null, row: Row([]))
        let values = schema.take(object, owner: holder)
        guard let slot = schema.primaryKeySlot else {
            throwRealmException("The class \(schema.name) has no primary key; synced classes need one named '_id'.")
        }
        let key = values[slot].value
        if update == .error, schema.objectClass is Object.Type, row(type, key) != nil {
            throwRealmException(
                "Attempting to create an object of type '\(schema.name)' with an existing primary key value '\(RQLText.literal(key))'.")
        }
        var named: [String: Value] = [:]
        var defaults: Set<String> = []
        for (index, property) in schema.properties.enumerated() where index != slot {
            named[property.name] = values[index].value
            if !values[index].isGiven { defaults.insert(property.name) }
        }
        change { transaction throws(SluiceError) in
            try transaction.create(type: type, key: key, values: named, defaults: defaults)
        }
        if schema.objectClass is Object.Type {
            let row = row(type, key) ?? Row(values.map(\.value))
            schema.bind(object, to: _RowCache(core: self, schema: schema, type: type, key: key, row: row))
        } else {
            object.isConsumed = true
        }
    }

    // MARK: Notifications

    /// One `observe` call.
    final class Observation {
        /// Weak because: the token is the app's way to end the observation by letting it go.
        private let token: WeakConfined<NotificationToken>
        let type: Int
        let deliver: (ReplicaChange, RowStore) throws(SluiceError) -> Void

        init(token: WeakConfined<NotificationToken>, type: Int, deliver: @escaping (ReplicaChange, RowStore) throws(SluiceError) -> Void) {
            self.token = token
            self.type = type
            self.deliver = deliver
        }

        var isValid: Bool { token.content?.isValid ?? false }
    }

    func observe(_ observation: Observation) { observations.append(observation) }

    func forgetEnded() { observations.removeAll { !$0.isValid } }

    /// On the scheduler: moves on and tells the observers.
    private func deliver() {
        if transaction != nil {
            let later = WeakConfined(self)
            return scheduler.enqueue { later.content?.deliver() }
        }
        guard let change = inbox.take() else { return }
        _ = refresh()
        forgetEnded()
        for observation in observations where observation.isValid && change.types[observation.type] != nil {
            attempt(()) { store throws(SluiceError) in try observation.deliver(change, store) }
        }
    }
}
