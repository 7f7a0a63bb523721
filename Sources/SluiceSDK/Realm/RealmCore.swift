import Dispatch
import SluiceCore
import SluiceQuery
import SluiceReplica

/// The shared state of all handles of one Realm on one thread, queue or actor. A frozen core may be used on any thread.
final class RealmCore {
    let configuration: Realm.Configuration
    let file: OpenFile
    let scheduler: Scheduler
    let classes: ClassTable
    let reading: ReadState
    let observations: ObservationHub
    /// The clock of `reading`, without the detour: each object that is created needs it.
    let clock: _RealmClock
    var adding = Adding(update: .error, isPartial: false)
    var addingSpace: (values: [Value], given: [Bool]) = ([], [])
    /// The class of the last lookup. Lookups of one class usually follow each other.
    private var lastClass: (objectClass: ObjectIdentifier, schema: ModelSchema, type: Int)?
    /// The first error of the open transaction, or the reason why it could not begin. The commit throws it.
    private(set) var failure: (any Error)?
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
        classes = try ClassTable(schemas ?? ModelSchema.closure(of: configuration.classes), in: file.replica, isExact: schemas == nil)
        reading = ReadState(file, scheduler: scheduler, classes: classes, floats: floats)
        clock = reading.clock
        observations = ObservationHub(reading)
        // Pin before observing commits, so that only later ones are reported. A failure here is reported by the first read.
        _ = try? reading.snapshot.pin()
        let weak = WeakConfined(self)
        observations.start { scheduler.enqueue { weak.content?.deliver() } }
    }

    /// Creates a core that keeps showing the snapshot of another one.
    init(frozen live: RealmCore, _ frozen: ReadSnapshot) {
        configuration = live.configuration
        file = live.file
        scheduler = .none
        classes = live.classes
        reading = ReadState(frozen: live.reading, frozen)
        clock = reading.clock
        observations = ObservationHub(reading)
    }

    /// `true` if it shows one snapshot permanently, on any thread.
    var isFrozen: Bool { reading.isFrozen }
    /// `true` if a transaction is open, or if it could not begin and its changes are discarded.
    var isWriting: Bool { reading.isWriting }

    /// Advances and notifies the observers, on the scheduler. The Realm lives until all have been notified.
    private func deliver() { observations.deliver() }

    /// Releases the observers of a token on the scheduler once it ends. Retains neither the token nor the Realm.
    func removeObservers(whenEnded token: NotificationToken) {
        let (scheduler, weak) = (scheduler, WeakConfined(self))
        token.whenEnded { scheduler.enqueue { weak.content?.removeEndedObservers() } }
    }

    private func removeEndedObservers() { observations.removeEnded() }

    // MARK: Objects

    /// The schema of a class and its index in the file. Traps if the Realm does not have the class.
    func model(of objectClass: ObjectBase.Type) -> (schema: ModelSchema, type: Int) {
        if let last = lastClass, last.objectClass == ObjectIdentifier(objectClass) { return (last.schema, last.type) }
        let type = classes.type(of: objectClass)
        let schema = classes.schema(type)
        // A frozen Realm may be used on any thread, so nothing is cached.
        if !isFrozen { lastClass = (ObjectIdentifier(objectClass), schema, type) }
        return (schema, type)
    }

    func object<T: ObjectBase>(_ objectClass: T.Type, key: Value) -> T? {
        object(objectClass, type: classes.type(of: objectClass), key: key)
    }

    /// The object with a primary key; nil if there is none.
    /// - Parameter type: The class in the file. For a dynamic object it differs from `objectClass`.
    func object<T: ObjectBase>(_ objectClass: T.Type, type: Int, key: Value) -> T? {
        guard let row = reading.accessorRow(type, key) else { return nil }
        let schema = classes.schema(type)
        let object = objectClass.init()
        schema.bind(object, to: _RowCache(core: self, schema: schema, type: type, key: key, row: row), attaching: false)
        return object
    }

    /// The target of a mixed property's link, with its own class; nil if the Realm has no such class or object.
    func object(named name: String, key: Value) -> Object? {
        guard let type = classes.type(named: name), let objectClass = classes.schema(type).objectClass as? Object.Type else { return nil }
        return object(objectClass, type: type, key: key)
    }

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
            if observations.hasObservers { observations.deliverNow() }
            try checkWritable()
            let open = try asRealmError { try takeWriter() }
            turns -= 1
            if !observations.hasObservers || !observations.hasPendingChanges || turns == 0 { return begun(open) }
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
            reading.enterDiscarded()
        }
    }

    /// Checks that a transaction can begin.
    /// - Throws: An error if the file is damaged, or if more old versions are read than the configuration allows.
    func checkWritable() throws {
        try file.requireWhole()
        // The transaction releases this Realm's own version, so it must not count.
        if configuration.maximumNumberOfActiveVersions != nil { reading.refresh() }
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

    /// Waits for the writer. A lease for an asynchronous write is used first: this call blocks the scheduler that would claim it.
    private func takeWriter() throws(SluiceError) -> WriteTransaction {
        for lease in leases + [asyncWrites.lease].compactMap(\.self) {
            if let open = try replica.beginWrite(lease) { return open }
        }
        return try replica.beginWrite()
    }

    func begun(_ open: WriteTransaction) {
        failure = nil
        reading.enter(open)
    }

    func commit(withoutNotifying tokens: [NotificationToken] = [], isGrouped: Bool = false) throws {
        scheduler.verify()
        if let failure {
            cancel()
            throw failure
        }
        guard let open = reading.transaction else {
            throwRealmException("Can't commit a non-existing write transaction")
        }
        // Before `silence`, which resets the written slots of silenced watches.
        observations.transactionEnded(isStored: true)
        if !tokens.isEmpty { observations.silence(tokens, in: open) }
        // Loops must read their remaining keys through the transaction's store, which the commit closes.
        reading.detachLoops()
        reading.leaveTransaction()
        // On success and failure the Realm leaves the transaction and shows the newest snapshot.
        defer {
            afterTransaction()
            observations.endSilence()
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
        reading.detachLoops()
        reading.transaction?.cancel()
        reading.leaveTransaction()
        failure = nil
        observations.transactionEnded(isStored: false)
        afterTransaction()
    }

    private func afterTransaction() {
        let hasMoved = reading.refresh()
        // The generation changes even without a newer snapshot: the transaction's uncommitted values are gone.
        clock.generation += 1
        if hasMoved { observations.notifyRealmObservers(.didChange) }
    }

    /// Runs a write in the open transaction. The first error is stored, later writes are skipped, and the commit throws the error.
    func change(_ body: (WriteTransaction) throws(SluiceError) -> Void) {
        requireTransaction()
        guard let transaction = reading.transaction, failure == nil else { return }
        reading.detachLoops()
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
        observations.wrote(type, key, slot)
    }
}
