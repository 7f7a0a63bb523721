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
    let transactions: TransactionCoordinator
    /// The clock of `reading`, without the detour: each object that is created needs it.
    let clock: _RealmClock

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
        transactions = TransactionCoordinator(
            reading, observations, maximumActiveVersions: configuration.maximumNumberOfActiveVersions)
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
        transactions = TransactionCoordinator(
            reading, observations, maximumActiveVersions: configuration.maximumNumberOfActiveVersions)
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

    /// Finds the object of a locator, in a snapshot that is not older than that of its creation.
    func find(_ locator: _Locator) -> Any? {
        scheduler.verify()
        guard locator.path == file.path else {
            throwRealmException("Cannot resolve thread safe reference in Realm with different configuration than the source Realm.")
        }
        if !isFrozen, !isWriting, reading.snapshot.version < locator.version { reading.refresh() }
        return locator.find(self)
    }

    /// Turns an unmanaged object into one of this Realm, in place.
    /// - Parameter isPartial: `true` if an existing object keeps the properties that the app did not give.
    func add(_ object: ObjectBase, update: Realm.UpdatePolicy, isPartial: Bool = false) {
        transactions.adoption.add(object, update: update, isPartial: isPartial, to: self)
    }

    /// Deletes an object. An embedded object is removed from its owner.
    func delete(_ object: ObjectBase) {
        guard let row = object._row, row.core === self else {
            throwRealmException("Can only delete an object from the Realm it belongs to.")
        }
        if let place = row.place { return place.removeElement() }
        transactions.delete(row.type, [row.key])
    }

    // MARK: Snapshots

    /// Returns a Realm that keeps showing the current snapshot. If the file cannot be read, the result shows no data.
    func freeze() -> RealmCore {
        if isFrozen { return self }
        scheduler.verify()
        if isWriting { throwRealmException("Cannot freeze a Realm in a write transaction.") }
        // A floating Realm advances before it is frozen.
        reading.attempt(()) { _ in }
        return reading.snapshot.lend { RealmCore(frozen: self, $0) }
    }

    /// Returns the live Realm of the same file for the caller's scheduler.
    func thaw(_ isolation: (any Actor)?) -> RealmCore {
        guard isFrozen else { return self }
        do {
            let live = try file.core(configuration, scheduler: .of(isolation))
            live.reading.attempt((), moving: false) { _ in }
            // Advance the live Realm if it is older, so that it contains all objects of the frozen one.
            if !live.isWriting, live.reading.snapshot.version < reading.snapshot.version { live.reading.refresh() }
            return live
        } catch {
            throwRealmException("The Realm cannot be thawed: \(error)")
        }
    }

    /// Releases the snapshot and invalidates all objects and results obtained before.
    func invalidate() {
        scheduler.verify()
        if isFrozen { return }
        if isWriting { transactions.cancel() }
        reading.invalidate()
    }
}
