import Dispatch
import SluiceCore
import SluiceQuery
import SluiceReplica

/// What all handles of one Realm on one thread, queue or actor share.
final class RealmCore {
    let configuration: Realm.Configuration
    let file: OpenFile
    let scheduler: Scheduler
    let clock = _RealmClock()
    /// Index of each class in the file.
    private let types: [ObjectIdentifier: Int]
    /// By index in the file; those that this Realm does not have are missing.
    private let schemasByType: [Int: ModelSchema]
    /// The classes of this Realm.
    let schemas: [ModelSchema]
    /// The loops under way over its objects.
    var loops = LoopRegistry()
    /// The embedded objects and nested collections that the app holds.
    var places = PlaceRegistry()
    var adding = Adding(update: .error, isPartial: false)
    var addingSpace: (values: [Value], given: [Bool]) = ([], [])
    /// The class that was asked for last: objects of one class come in rows.
    private var lastPlace: (objectClass: ObjectIdentifier, schema: ModelSchema, type: Int)?
    let state: ShownState
    /// It shows one state for ever, to any thread.
    let isFrozen: Bool
    private(set) var transaction: WriteTransaction?
    /// The first error of the open transaction, or why it could not begin; the commit throws it.
    private(set) var failure: (any Error)?
    /// Whether reading moves on to newer states by itself.
    var floats: Bool
    /// See `count(_:)`.
    var told = 0
    /// Whether it moves on to newer states by itself.
    var autorefresh = true
    let inbox = ChangeInbox()
    private var observer: UInt64 = 0
    var observations: [Observation] = []
    var realmObservers: [RealmObserver] = []
    /// It has moved on, see `moveOn`, and its observers do not know yet.
    var hasUntold = false
    var objectWatches: [ObjectWatch] = []
    /// The observers that do not hear of the commit under way.
    var silencedTokens: Set<ObjectIdentifier> = []
    var asyncWrites = AsyncWrites()
    /// The turns that tasks wait for.
    var leases: [WriterLease] = []

    var replica: Replica { file.replica }

    /// - Throws: `schemaMismatch` when the file is open with other classes.
    /// - Parameter schemas: nil: those of the configuration.
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
        state = ShownState(of: file.replica)
        // Before it hears of commits, so that it is told of those alone that it does not show yet. The first read says what fails.
        _ = try? state.pin()
        let inbox = inbox
        let weak = WeakConfined(self)
        observer = file.replica.observeChanges { change in
            if inbox.put(change) { scheduler.enqueue { weak.content?.deliver() } }
        }
        // What was committed between the two was told to nobody here.
        if (try? state.isStale()) == true { scheduler.enqueue { weak.content?.deliver() } }
    }

    /// A Realm that shows what another shows now.
    init(frozen live: RealmCore, _ frozen: ShownState) {
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

    /// Of `clock`.
    var epoch: UInt64 { clock.epoch }

    // MARK: Reading

    /// Runs a read. A file that cannot be read shows nothing, see `Realm.onFileError`.
    /// - Parameter moving: whether a Realm that moves on by use may do so first.
    func attempt<R>(_ fallback: R, moving: Bool = true, _ body: (RowStore) throws(SluiceError) -> R) -> R {
        scheduler.verify()
        do throws(SluiceError) {
            if let transaction { return try body(transaction.store) }
            if moving, floats, autorefresh { _ = try advance() }
            return try state.read(body)
        } catch {
            file.report(error)
            return fallback
        }
    }

    /// Loops under way go through what was there when they began.
    func settleLoops() {
        if loops.isEmpty { return }
        for loop in loops.takeAll() { loop.settle() }
    }

    private func advance(atLeast wanted: UInt64 = 0) throws(SluiceError) -> Bool {
        guard try state.isStale(atLeast: wanted) else { return false }
        settleLoops()
        guard try state.advance(atLeast: wanted) else { return false }
        clock.generation += 1
        return true
    }

    /// Moves to the newest state.
    /// - Parameter wanted: a version that the caller knows of.
    /// - Returns: whether there was something newer.
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

    /// The class that a property links to, by its name: a dynamic object's property says no more.
    func type(linkedBy kind: _PropertyKind) -> Int {
        guard case .link(let name) = kind.type, let type = type(named: name) else {
            throwRealmException("The Realm does not have the class that the property links to.")
        }
        return type
    }

    /// The schema of a class and its index in the file.
    func place(of objectClass: ObjectBase.Type) -> (schema: ModelSchema, type: Int) {
        if let last = lastPlace, last.objectClass == ObjectIdentifier(objectClass) { return (last.schema, last.type) }
        let type = type(of: objectClass)
        let schema = schema(type)
        // Any thread may ask a frozen Realm.
        if !isFrozen { lastPlace = (ObjectIdentifier(objectClass), schema, type) }
        return (schema, type)
    }

    func row(_ type: Int, _ key: Value, moving: Bool = true) -> Row? {
        attempt(nil, moving: moving) { store throws(SluiceError) in try store.row(type: type, key: key) }
    }

    func contains(_ type: Int, _ key: Value) -> Bool {
        attempt(false) { store throws(SluiceError) in try store.contains(type: type, key: key) }
    }

    /// The indices of the keys of objects that are in the Realm.
    func indices(_ type: Int, ofPresent keys: [Value]) -> [Int] {
        attempt([]) { store throws(SluiceError) in try store.indices(type: type, ofPresent: keys) }
    }

    func object<T: ObjectBase>(_ objectClass: T.Type, key: Value) -> T? {
        object(objectClass, type: type(of: objectClass), key: key)
    }

    /// - Parameter type: the class in the file; another than `objectClass` for a dynamic object.
    func object<T: ObjectBase>(_ objectClass: T.Type, type: Int, key: Value) -> T? {
        guard let row = accessorRow(type, key) else { return nil }
        let schema = schema(type)
        let object = objectClass.init()
        schema.bind(object, to: _RowCache(core: self, schema: schema, type: type, key: key, row: row), attaching: false)
        return object
    }

    /// The object that a link of a mixed property leads to, of its class; nil when the Realm has no such class or object.
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

    /// The keys of the objects that link to one, by an index; one that links twice comes twice.
    func origins(of key: Value, type objectClass: ObjectBase.Type, property name: String) -> [Value] {
        let type = type(of: objectClass)
        guard let property = schema(type).slot(of: name) else { return [] }
        return attempt([]) { store throws(SluiceError) in try store.origins(of: key, type: type, property: property) }
    }

    /// All objects of a class in the file.
    func all(_ type: Int) -> ReplicaQuery { ReplicaQuery(type: type, in: replica.schema) }

    func run(_ query: ReplicaQuery) -> [Value] { attempt([]) { store throws(SluiceError) in try query.run(on: store) } }

    // MARK: Transactions

    /// Begins a transaction. Observers hear first of what has changed before, so that nothing is mixed with what it will do.
    func begin() throws {
        scheduler.verify()
        if isFrozen { throwRealmException(RealmMisuse.frozenTransaction) }
        if file.isReadOnly { throwRealmException(RealmMisuse.readOnlyTransaction) }
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

    /// Begins a transaction, which for a file that cannot be written is one whose changes go nowhere: its commit says why.
    func beginAnyway() {
        do {
            try begin()
        } catch {
            if case Realm.Error.fail = error, let excess = excessVersions { throwRealmException(excess) }
            failure = error
        }
    }

    /// Whether a transaction is open.
    var isWriting: Bool { transaction != nil || failure != nil }

    /// What keeps a transaction from beginning.
    /// - Throws: when the file is damaged, and when old states that somebody reads keep it from becoming smaller, by more than the
    ///   configuration allows.
    func checkWritable() throws {
        try file.requireWhole()
        // Its own is left by the transaction.
        if configuration.maximumNumberOfActiveVersions != nil { refresh() }
        if let excess = excessVersions { throw Realm.Error(.fail, excess) }
    }

    /// Says that more states are read than the configuration allows.
    private var excessVersions: String? {
        guard let limit = configuration.maximumNumberOfActiveVersions else { return nil }
        let active = replica.activeVersions
        if active <= limit { return nil }
        return "Number of active versions (\(active)) in the Realm exceeded the limit of \(limit): let go of frozen Realms, "
            + "and refresh Realms of other threads."
    }

    private var hasObservers: Bool { !observations.isEmpty || !realmObservers.isEmpty }

    /// Waits for the writer. A turn that this Realm has been given for an asynchronous write serves as well: the place where
    /// it would be taken is blocked by this call.
    private func takeWriter() throws(SluiceError) -> WriteTransaction {
        for lease in leases + [asyncWrites.lease].compactMap(\.self) {
            if let open = try replica.beginWrite(lease) { return open }
        }
        return try replica.beginWrite()
    }

    func begun(_ open: WriteTransaction) {
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
        for watch in objectWatches { watch.transactionEnded(isStored: true) }
        if !tokens.isEmpty { silence(tokens, in: open) }
        settleLoops()
        transaction = nil
        defer {
            afterTransaction()
            endSilence()
        }
        try asRealmError { try open.commit(isGrouped: isGrouped) }
    }

    /// Runs the block in the open transaction and stores it, or undoes it when the block throws. The block may have ended it itself.
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
        clock.generation += 1
        if hasMoved { tellRealmObservers(.didChange) }
    }

    /// Runs a write in the open transaction; remembers its error for the commit.
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

    /// Notes an error of the open transaction; the commit throws the first.
    func fail(_ error: SluiceError) { if failure == nil { failure = Realm.Error(error) } }

    func requireTransaction() {
        if isFrozen { throwRealmException(RealmMisuse.frozenObject) }
        scheduler.verify()
        if !isWriting { throwRealmException("Cannot modify managed objects outside of a write transaction.") }
    }

    /// - Parameter edit: what of the value is new; nil: all.
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
