import SluiceCore
import SluiceQuery
import SluiceReplica

/// The snapshot that a Realm shows, and the reads of it. Confined to the Realm's scheduler; any thread may use a frozen one.
///
/// Inside a write transaction reads go to the transaction instead, and the snapshot does not advance.
final class ReadState {
    let file: OpenFile
    let scheduler: Scheduler
    let classes: ClassTable
    let snapshot: ReadSnapshot
    let clock = _RealmClock()
    /// `true` if it shows one snapshot permanently, on any thread.
    let isFrozen: Bool
    /// `true` if each read first advances to the newest snapshot: a floating Realm.
    var floats: Bool
    /// `true` if it advances to newer snapshots by itself.
    var autorefresh: Bool
    /// The loops in progress over its objects.
    var loops = LoopRegistry()
    /// The embedded objects and nested collections that the app holds.
    var accessors = AccessorRegistry()
    /// The open write transaction. Reads see its writes.
    private(set) var transaction: WriteTransaction?
    /// `true` if a transaction is open, or if it could not begin and its changes are discarded.
    private(set) var isWriting = false
    /// The highest count that the app has read; see `noteCount(_:)`.
    private var highestCount = 0

    var replica: Replica { file.replica }

    /// Creates the state of a live Realm. It shows the newest snapshot from `snapshot.pin` or the first read.
    init(_ file: OpenFile, scheduler: Scheduler, classes: ClassTable, floats: Bool) {
        self.file = file
        self.scheduler = scheduler
        self.classes = classes
        self.floats = floats
        snapshot = ReadSnapshot(of: file.replica)
        isFrozen = false
        autorefresh = true
    }

    /// Creates the state of a frozen Realm, which keeps showing a snapshot of a live one.
    init(frozen live: ReadState, _ snapshot: ReadSnapshot) {
        file = live.file
        scheduler = .none
        classes = live.classes
        self.snapshot = snapshot
        isFrozen = true
        floats = false
        autorefresh = false
    }

    // MARK: The snapshot

    /// Runs a read in the open transaction or the current snapshot. If the file cannot be read, the error is reported and the
    /// fallback is returned; see `Realm.onFileError`.
    /// - Parameter moving: `true` if a floating Realm may advance first.
    func attempt<R>(_ fallback: R, moving: Bool = true, _ body: (RowStore) throws(SluiceError) -> R) -> R {
        scheduler.verify()
        do throws(SluiceError) {
            // Inside a transaction reads see its own writes.
            if let transaction { return try body(transaction.store) }
            // Reads that follow up on an earlier one, such as the elements behind a count, stay at its snapshot.
            if moving, floats, autorefresh { _ = try advance() }
            return try snapshot.read(body)
        } catch {
            file.report(error)
            return fallback
        }
    }

    /// Detaches loops in progress from the current snapshot: they continue over the objects that existed at their start.
    func detachLoops() {
        if loops.isEmpty { return }
        for loop in loops.takeAll() { loop.detach() }
    }

    private func advance(atLeast wanted: UInt64 = 0) throws(SluiceError) -> Bool {
        guard try snapshot.isStale(atLeast: wanted) else { return false }
        // Loops keep the old snapshot's keys, so they must read them before it is released.
        detachLoops()
        guard try snapshot.advance(atLeast: wanted) else { return false }
        clock.generation += 1
        return true
    }

    /// Advances to the newest snapshot. Reports an error instead of throwing it. Notifies no observer.
    /// - Parameter wanted: The least version that the caller needs.
    /// - Returns: `true` if there was a newer snapshot.
    @discardableResult
    func refresh(atLeast wanted: UInt64 = 0) -> Bool {
        scheduler.verify()
        // Inside a transaction the snapshot stays; the end of the transaction refreshes it.
        guard !isWriting else { return false }
        do throws(SluiceError) {
            return try advance(atLeast: wanted)
        } catch {
            file.report(error)
            return false
        }
    }

    /// Releases the snapshot and invalidates all objects and results obtained before.
    func invalidate() {
        detachLoops()
        // A new epoch invalidates results and objects; a new generation invalidates caches.
        snapshot.release()
        clock.epoch += 1
        clock.generation += 1
    }

    /// Runs code that fills a cache of this Realm. For a frozen Realm it holds a lock, since any thread may read it.
    func exclusively<R>(_ body: () -> R) -> R { isFrozen ? snapshot.locked(body) : body() }

    // MARK: The transaction

    /// Directs reads to a transaction that has begun.
    func enter(_ open: WriteTransaction) {
        // Loops are confined to the state before the transaction.
        detachLoops()
        transaction = open
        isWriting = true
        clock.generation += 1
    }

    /// Keeps the snapshot for a transaction that could not begin. Its reads see the state before it.
    func enterDiscarded() { isWriting = true }

    /// Directs reads to the snapshot again. The caller detaches the loops first, since the transaction's end closes their store.
    func leaveTransaction() {
        transaction = nil
        isWriting = false
    }

    // MARK: Counts and indices

    /// `true` if the next read may advance the Realm and change a count that the app has just read.
    var mayAdvance: Bool { floats && autorefresh && !isWriting }

    /// Records the count of a collection that the app reads. The app may then access elements by index while the Realm advances.
    func noteCount(_ count: Int) -> Int {
        if mayAdvance { highestCount = max(highestCount, count) }
        return count
    }

    /// `true` if the app may have read a count above the index. The collection is not recorded: each property access creates a new one.
    func hasCounted(beyond index: Int) -> Bool { mayAdvance && index >= 0 && index < highestCount }

    // MARK: Rows

    func row(_ type: Int, _ key: Value, moving: Bool = true) -> Row? {
        attempt(nil, moving: moving) { store throws(SluiceError) in try store.row(type: type, key: key) }
    }

    /// Returns the row of an object for an accessor. Collections that the open transaction edits in place read as null.
    func accessorRow(_ type: Int, _ key: Value, moving: Bool = true) -> Row? {
        attempt(nil, moving: moving) { store throws(SluiceError) in try store.rowWithoutEdits(type: type, key: key) }
    }

    func contains(_ type: Int, _ key: Value) -> Bool {
        attempt(false) { store throws(SluiceError) in try store.contains(type: type, key: key) }
    }

    /// The indices of the keys whose objects are in the Realm.
    func indices(_ type: Int, ofPresent keys: [Value]) -> [Int] {
        attempt([]) { store throws(SluiceError) in try store.indices(type: type, ofPresent: keys) }
    }

    /// The keys of the objects that link to an object, found by an index. An object that links twice occurs twice.
    func origins(of key: Value, type objectClass: ObjectBase.Type, property name: String) -> [Value] {
        let type = classes.type(of: objectClass)
        guard let property = classes.schema(type).slot(of: name) else { return [] }
        return attempt([]) { store throws(SluiceError) in try store.origins(of: key, type: type, property: property) }
    }

    /// The keys of the objects that link to an object by a property. An object that links twice occurs twice.
    func origins(of owner: ObjectBase, type: Int, property: Int) -> [Value] {
        guard let row = owner._row else { return [] }
        guard let place = row.place else {
            return attempt([]) { store throws(SluiceError) in try store.origins(of: row.key, type: type, property: property) }
        }
        // Only its owner links to an embedded object.
        guard !place.isGone, let holder = place.owner._row, holder.type == type, place.slot == property else { return [] }
        return [holder.key]
    }

    /// The query for all objects of a class in the file.
    func all(_ type: Int) -> ReplicaQuery { ReplicaQuery(type: type, in: replica.schema) }

    func run(_ query: ReplicaQuery) -> [Value] { attempt([]) { store throws(SluiceError) in try query.run(on: store) } }
}
