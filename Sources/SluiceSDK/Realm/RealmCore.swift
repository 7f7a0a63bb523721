import Dispatch
import SluiceCore
import SluiceQuery
import SluiceReplica

/// The shared state of all handles of one Realm on one thread, queue or actor. A frozen core may be used on any thread.
final class RealmCore {
    let configuration: Realm.Configuration
    let file: OpenFile
    let scheduler: Scheduler
    let clock = _RealmClock()
    /// The index of each class in the file.
    private let types: [ObjectIdentifier: Int]
    /// The classes of this Realm by their index in the file.
    private let schemasByType: [Int: ModelSchema]
    /// The classes of this Realm.
    let schemas: [ModelSchema]
    /// The loops in progress over its objects.
    var loops = LoopRegistry()
    /// The embedded objects and nested collections that the app holds.
    var places = PlaceRegistry()
    var adding = Adding(update: .error, isPartial: false)
    var addingSpace: (values: [Value], given: [Bool]) = ([], [])
    /// The class of the last lookup. Lookups of one class usually follow each other.
    private var lastPlace: (objectClass: ObjectIdentifier, schema: ModelSchema, type: Int)?
    let state: ReadSnapshot
    /// `true` if it shows one snapshot permanently, on any thread.
    let isFrozen: Bool
    private(set) var transaction: WriteTransaction?
    /// The first error of the open transaction, or the reason why it could not begin. The commit throws it.
    private(set) var failure: (any Error)?
    /// `true` if each read first advances to the newest snapshot: a floating Realm.
    var floats: Bool
    /// The highest count that the app has read; see `count(_:)`.
    var told = 0
    /// `true` if it advances to newer snapshots by itself.
    var autorefresh = true
    let inbox = ChangeInbox()
    private var observer: UInt64 = 0
    var observations: [Observation] = []
    var realmObservers: [RealmObserver] = []
    /// `true` if it has advanced through `moveOn` and its observers have not been notified.
    var hasUntold = false
    var objectWatches: [ObjectWatch] = []
    /// The observers that are not notified of the current commit.
    var silencedTokens: Set<ObjectIdentifier> = []
    var asyncWrites = AsyncWrites()
    /// The writer leases that tasks wait for.
    var leases: [WriterLease] = []

    var replica: Replica { file.replica }

    /// Creates a live core.
    /// - Parameter schemas: The classes. If nil, those of the configuration.
    /// - Throws: `schemaMismatch` if the file is open with other classes.
    init(
        configuration: Realm.Configuration, file: OpenFile, scheduler: Scheduler, floats: Bool, schemas: [ModelSchema]? = nil
    ) throws {
        self.configuration = configuration
        self.file = file
        self.scheduler = scheduler
        self.floats = floats
        isFrozen = false
        var types: [ObjectIdentifier: Int] = [:]
        var schemasByType: [Int: ModelSchema] = [:]
        self.schemas = schemas ?? ModelSchema.closure(of: configuration.classes)
        let isSynced = file.replica.isSynced
        for schema in self.schemas {
            let index = file.replica.schema.index(of: schema.name)
            guard let index, schemas != nil || file.replica.schema.types[index] == schema.objectType(isSynced: isSynced) else {
                throw Realm.Error(
                    .schemaMismatch, "The Realm file is already open without the class \(schema.name); open it with the same objectTypes.")
            }
            types[ObjectIdentifier(schema.objectClass)] = index
            schemasByType[index] = schema
        }
        self.types = types
        self.schemasByType = schemasByType
        state = ReadSnapshot(of: file.replica)
        // Pin before observing commits, so that only later ones are reported. A failure here is reported by the first read.
        _ = try? state.pin()
        let inbox = inbox
        let weak = WeakConfined(self)
        observer = file.replica.observeChanges { change in
            if inbox.put(change) { scheduler.enqueue { weak.content?.deliver() } }
        }
        // A commit between the pin and the registration has reported nothing here.
        if (try? state.isStale()) == true { scheduler.enqueue { weak.content?.deliver() } }
    }

    /// Creates a core that keeps showing the snapshot of another one.
    init(frozen live: RealmCore, _ frozen: ReadSnapshot) {
        configuration = live.configuration
        file = live.file
        scheduler = .none
        floats = false
        isFrozen = true
        types = live.types
        schemas = live.schemas
        schemasByType = live.schemasByType
        state = frozen
        autorefresh = false
    }

    deinit { file.replica.removeObserver(observer) }

    /// The epoch of `clock`.
    var epoch: UInt64 { clock.epoch }

    // MARK: Reading

    /// Runs a read in the open transaction or the current snapshot. If the file cannot be read, the error is reported and the
    /// fallback is returned; see `Realm.onFileError`.
    /// - Parameter moving: `true` if a floating Realm may advance first.
    func attempt<R>(_ fallback: R, moving: Bool = true, _ body: (RowStore) throws(SluiceError) -> R) -> R {
        scheduler.verify()
        do throws(SluiceError) {
            // Inside a transaction reads see its own writes.
            if let transaction { return try body(transaction.store) }
            if moving, floats, autorefresh { _ = try advance() }
            return try state.read(body)
        } catch {
            file.report(error)
            return fallback
        }
    }

    /// Detaches loops in progress from the current snapshot: they continue over the objects that existed at their start.
    func settleLoops() {
        if loops.isEmpty { return }
        for loop in loops.takeAll() { loop.settle() }
    }

    private func advance(atLeast wanted: UInt64 = 0) throws(SluiceError) -> Bool {
        guard try state.isStale(atLeast: wanted) else { return false }
        // Loops keep the old snapshot's keys, so they must read them before it is released.
        settleLoops()
        guard try state.advance(atLeast: wanted) else { return false }
        clock.generation += 1
        return true
    }

    /// Advances to the newest snapshot. Reports an error instead of throwing it.
    /// - Parameter wanted: The least version that the caller needs.
    /// - Returns: `true` if there was a newer snapshot.
    @discardableResult
    func refresh(atLeast wanted: UInt64 = 0) -> Bool {
        scheduler.verify()
        guard !isWriting else { return false }
        do throws(SluiceError) {
            return try advance(atLeast: wanted)
        } catch {
            file.report(error)
            return false
        }
    }

    func type(of objectClass: ObjectBase.Type) -> Int {
        guard let type = types[ObjectIdentifier(objectClass)] else {
            throwRealmException("Object type '\(objectClass.className())' is not managed by the Realm: add it to objectTypes.")
        }
        return type
    }

    /// The class that a property links to, by name, since a dynamic object's property has no class. Traps if it is not in the Realm.
    func type(linkedBy kind: _PropertyKind) -> Int {
        guard case .link(let name) = kind.type, let type = type(named: name) else {
            throwRealmException("The Realm does not have the class that the property links to.")
        }
        return type
    }

    /// The schema of a class and its index in the file. Traps if the Realm does not have the class.
    func place(of objectClass: ObjectBase.Type) -> (schema: ModelSchema, type: Int) {
        if let last = lastPlace, last.objectClass == ObjectIdentifier(objectClass) { return (last.schema, last.type) }
        let type = type(of: objectClass)
        let schema = schema(type)
        // A frozen Realm may be used on any thread, so nothing is cached.
        if !isFrozen { lastPlace = (ObjectIdentifier(objectClass), schema, type) }
        return (schema, type)
    }

    func row(_ type: Int, _ key: Value, moving: Bool = true) -> Row? {
        attempt(nil, moving: moving) { store throws(SluiceError) in try store.row(type: type, key: key) }
    }

    func contains(_ type: Int, _ key: Value) -> Bool {
        attempt(false) { store throws(SluiceError) in try store.contains(type: type, key: key) }
    }

    /// The indices of the keys whose objects are in the Realm.
    func indices(_ type: Int, ofPresent keys: [Value]) -> [Int] {
        attempt([]) { store throws(SluiceError) in try store.indices(type: type, ofPresent: keys) }
    }

    func object<T: ObjectBase>(_ objectClass: T.Type, key: Value) -> T? {
        object(objectClass, type: type(of: objectClass), key: key)
    }

    /// The object with a primary key; nil if there is none.
    /// - Parameter type: The class in the file. For a dynamic object it differs from `objectClass`.
    func object<T: ObjectBase>(_ objectClass: T.Type, type: Int, key: Value) -> T? {
        guard let row = accessorRow(type, key) else { return nil }
        let schema = schema(type)
        let object = objectClass.init()
        schema.bind(object, to: _RowCache(core: self, schema: schema, type: type, key: key, row: row), attaching: false)
        return object
    }

    /// The target of a mixed property's link, with its own class; nil if the Realm has no such class or object.
    func object(named name: String, key: Value) -> Object? {
        guard let type = type(named: name), let objectClass = schemasByType[type]?.objectClass as? Object.Type else { return nil }
        return object(objectClass, type: type, key: key)
    }

    func type(named name: String) -> Int? {
        guard let index = replica.schema.index(of: name), schemasByType[index] != nil else { return nil }
        return index
    }

    func schema(_ type: Int) -> ModelSchema {
        guard let schema = schemasByType[type] else { throwRealmException("The Realm does not have the class with number \(type).") }
        return schema
    }

    /// The keys of the objects that link to an object, found by an index. An object that links twice occurs twice.
    func origins(of key: Value, type objectClass: ObjectBase.Type, property name: String) -> [Value] {
        let type = type(of: objectClass)
        guard let property = schema(type).slot(of: name) else { return [] }
        return attempt([]) { store throws(SluiceError) in try store.origins(of: key, type: type, property: property) }
    }

    /// The query for all objects of a class in the file.
    func all(_ type: Int) -> ReplicaQuery { ReplicaQuery(type: type, in: replica.schema) }

    func run(_ query: ReplicaQuery) -> [Value] { attempt([]) { store throws(SluiceError) in try query.run(on: store) } }

    // MARK: Transactions

    /// Begins a transaction. Blocks until other writers finish. Notifies observers of earlier changes first, to keep them separate.
    func begin() throws {
        scheduler.verify()
        if isFrozen { throwRealmException(RealmMisuse.frozenTransaction) }
        if file.isReadOnly { throwRealmException(RealmMisuse.readOnlyTransaction) }
        // Another commit may precede the lease. Release the writer, notify and try again, at most three times.
        var turns = 3
        while true {
            if isWriting { throwRealmException(RealmMisuse.alreadyWriting) }
            if hasObservers { deliverNow() }
            try checkWritable()
            let open = try asRealmError { try takeWriter() }
            turns -= 1
            if !hasObservers || inbox.isEmpty || turns == 0 { return begun(open) }
            open.cancel()
        }
    }

    /// Begins a transaction. If the file cannot be written, changes are discarded and the commit throws the reason.
    func beginAnyway() {
        do {
            try begin()
        } catch {
            if case Realm.Error.fail = error, let excess = excessVersions { throwRealmException(excess) }
            failure = error
        }
    }

    /// `true` if a transaction is open, or if it could not begin and its changes are discarded.
    var isWriting: Bool { transaction != nil || failure != nil }

    /// Checks that a transaction can begin.
    /// - Throws: An error if the file is damaged, or if more old versions are read than the configuration allows.
    func checkWritable() throws {
        try file.requireWhole()
        // The transaction releases this Realm's own version, so it must not count.
        if configuration.maximumNumberOfActiveVersions != nil { refresh() }
        if let excess = excessVersions { throw Realm.Error(.fail, excess) }
    }

    /// The error message if more versions are read than the configuration allows; otherwise nil.
    private var excessVersions: String? {
        guard let limit = configuration.maximumNumberOfActiveVersions else { return nil }
        let active = replica.activeVersions
        if active <= limit { return nil }
        return "Number of active versions (\(active)) in the Realm exceeded the limit of \(limit): let go of frozen Realms, "
            + "and refresh Realms of other threads."
    }

    private var hasObservers: Bool { !observations.isEmpty || !realmObservers.isEmpty }

    /// Waits for the writer. A lease for an asynchronous write is used first: this call blocks the scheduler that would claim it.
    private func takeWriter() throws(SluiceError) -> WriteTransaction {
        for lease in leases + [asyncWrites.lease].compactMap(\.self) {
            if let open = try replica.beginWrite(lease) { return open }
        }
        return try replica.beginWrite()
    }

    func begun(_ open: WriteTransaction) {
        // Loops are confined to the state before the transaction.
        settleLoops()
        failure = nil
        transaction = open
        clock.generation += 1
    }

    func commit(withoutNotifying tokens: [NotificationToken] = [], isGrouped: Bool = false) throws {
        scheduler.verify()
        if let failure {
            cancel()
            throw failure
        }
        guard let open = transaction else {
            throwRealmException("Can't commit a non-existing write transaction")
        }
        // Before `silence`, which resets the written slots of silenced watches.
        for watch in objectWatches { watch.transactionEnded(isStored: true) }
        if !tokens.isEmpty { silence(tokens, in: open) }
        // Loops must read their remaining keys through the transaction's store, which the commit closes.
        settleLoops()
        transaction = nil
        // On success and failure the Realm leaves the transaction and shows the newest snapshot.
        defer {
            afterTransaction()
            endSilence()
        }
        try asRealmError { try open.commit(isGrouped: isGrouped) }
    }

    /// Runs the block in the open transaction and commits it, or rolls it back if the block throws. The block may end it itself.
    func finish<R>(withoutNotifying tokens: [NotificationToken] = [], _ block: () throws -> R) throws -> R {
        let result: R
        do {
            result = try block()
        } catch {
            cancel()
            throw error
        }
        if isWriting { try commit(withoutNotifying: tokens) }
        return result
    }

    /// Rolls back the open transaction, if any, and notifies the observers.
    func cancel() {
        settleLoops()
        transaction?.cancel()
        transaction = nil
        failure = nil
        for watch in objectWatches { watch.transactionEnded(isStored: false) }
        afterTransaction()
    }

    private func afterTransaction() {
        let hasMoved = refresh()
        // The generation changes even without a newer snapshot: the transaction's uncommitted values are gone.
        clock.generation += 1
        if hasMoved { tellRealmObservers(.didChange) }
    }

    /// Runs a write in the open transaction. The first error is stored, later writes are skipped, and the commit throws the error.
    func change(_ body: (WriteTransaction) throws(SluiceError) -> Void) {
        requireTransaction()
        guard let transaction else { return }
        guard failure == nil else { return }
        settleLoops()
        do throws(SluiceError) {
            try body(transaction)
        } catch {
            failure = Realm.Error(error)
        }
        clock.generation += 1
    }

    func requireTransaction() {
        if isFrozen { throwRealmException(RealmMisuse.frozenObject) }
        scheduler.verify()
        if !isWriting { throwRealmException("Cannot modify managed objects outside of a write transaction.") }
    }

    /// Sets a property. Traps if the object has been deleted.
    /// - Parameter edit: The changed part of the value. If nil or whole, all of it is written.
    func set(_ type: Int, _ key: Value, _ slot: Int, _ value: Value, by edit: ShownEdit? = nil) {
        change { transaction throws(SluiceError) in
            let isThere =
                if let edit, !edit.isWhole {
                    try transaction.set(type: type, key: key, property: slot, value, by: edit)
                } else {
                    try transaction.set(type: type, key: key, property: slot, value)
                }
            if !isThere { throwRealmException(RealmMisuse.invalidated) }
        }
        wrote(type, key, slot)
    }

    func wrote(_ type: Int, _ key: Value, _ slot: Int) {
        for watch in objectWatches { watch.wrote(type, key, slot) }
    }
}
