package import SluiceCore
import SluiceMerge
import SluiceValues

/// A local transaction. Its `store` reads its writes at once; other connections read them after `commit`. It becomes one changeset.
/// It holds the replica's only writer until `commit` or `cancel`; `deinit` cancels.
///
/// Confined to the Realm that began it.
package final class WriteTransaction {
    let database: ReplicaDatabase
    let local: LocalChanges
    private let subscriptions: SubscriptionStore
    private let ingest: IngestQueue
    private let lease: WriterLease
    private let publish: (CommitNews) -> Void
    private let isDurable: Bool
    private var isOpen = true
    /// The changes in order; nil for one that the transaction itself undid.
    var changes: [ObjectChange?] = []
    private(set) var lastChange: [ObjectKey: Int] = [:]
    /// The indices of the changes before the last one, of objects that have several.
    private var earlierChanges: [ObjectKey: [Int]] = [:]
    /// Objects that this transaction made and that were not there before.
    private var fresh: Set<ObjectKey> = []
    private var ingested: Set<ObjectKey> = []
    /// The states of objects whose values this transaction, or those right before it, edited in part.
    var edited: [ObjectKey: EditedObject] = [:]
    /// The largest number of `edited` that the next transaction reuses; above it, none is kept.
    private static let keptEdited = 16
    /// The number of objects deleted so far.
    package private(set) var deletions = 0
    /// The classes of which `newKey` has compared the last key with the file.
    var comparedKeys: Set<Int> = []
    /// Classes with a subscription, and classes that a subscription includes by links.
    private var (writable, editable): (Set<Int>, Set<Int>) = ([], [])
    /// The server's row of the last changed object, once it has been read.
    private var server: (object: ObjectKey, row: [String: Value]?)?

    /// The rows that apps read, with this transaction's writes.
    package var store: RowStore { database.store }

    /// - Parameter isDurable: `true` to wait for the disk at every commit; otherwise `commit` decides.
    init(
        _ parts: ReplicaParts, lease: WriterLease, isDurable: Bool, publish: @escaping (CommitNews) -> Void
    ) throws(SluiceError) {
        database = parts.database
        local = parts.local
        subscriptions = parts.subscriptions
        ingest = parts.ingest
        self.lease = lease
        self.isDurable = isDurable
        self.publish = publish
        do throws(SluiceError) {
            try database.begin(isDurable: isDurable)
        } catch {
            isOpen = false
            throw error
        }
        edited = local.takeEdited()
    }

    deinit { cancel() }

    /// The changes so far to the rows that apps read.
    package var change: ReplicaChange { ReplicaChange(version: 0, types: database.news.types) }

    /// The work of SQLite for the writer's statements, in virtual machine instructions. Each visited row costs a few.
    package var instructions: Int { database.connection.instructions }

    #if DEBUG
        /// The size of the encoded values bound to SQLite statements, in bytes.
        package var boundBytes: Int { database.connection.boundBytes }
    #endif

    // MARK: Ending

    /// Stores the transaction and its changeset in one commit. On an error the transaction is rolled back and over, except if the disk
    /// fails after the commit of a transaction that is not durable.
    /// - Parameter isGrouped: `false` waits until the commit is on disk. `true` leaves this to a later commit, which then waits for both;
    ///   it has an effect only with `isDurable: false`.
    package func commit(isGrouped: Bool = false) throws(SluiceError) {
        guard isOpen else { return }
        do throws(SluiceError) {
            try store.settle()
            if local.isSynced {
                for collection in store.edits.all { fill(collection) }
                try local.record(changes.compactMap(\.self))
            }
            try database.commit()
        } catch {
            cancel()
            throw error
        }
        isOpen = false
        store.edits.removeAll()
        if local.isSynced, edited.count <= WriteTransaction.keptEdited { local.keep(edited: edited) }
        defer { lease.release() }
        // Publish before the lease ends: the next writer must know of every earlier commit.
        publish(database.takeNews())
        if !isDurable && !isGrouped { try database.syncLog() }
    }

    /// Rolls back the transaction. Does nothing after its end.
    package func cancel() {
        guard isOpen else { return }
        isOpen = false
        store.edits.removeAll()
        database.rollback()
        lease.release()
    }

    // MARK: Writing

    /// Makes an object, or merges the values into an existing one. An asymmetric object goes to the ingest queue and
    /// is never seen again.
    /// - Parameters:
    ///   - values: by property name, the primary key left out.
    ///   - defaults: those of `values` that the app did not give; they do not overwrite anything.
    /// - Throws: `noSubscriptionForWrite`; `badChangeset` for the second asymmetric object with one key; `ingestTooLarge` for an
    ///   asymmetric object over `Limits.ingestObjectBytes`, or over the bound of an upload.
    package func create(
        type: Int, key: Value, values: [String: Value], defaults: Set<String> = []
    ) throws(SluiceError) {
        let layout = database.layouts[type]
        let object = ObjectKey(type: layout.type.name, key: key)
        var change = ObjectChange(object: object, kind: .create, values: values, defaults: defaults)
        if layout.type.kind == .asymmetric {
            guard ingested.insert(object).inserted else {
                throw SluiceError(
                    .badChangeset, "Two objects of the asymmetric class \(object.type) have the key \(key) in one transaction.",
                    fix: "Give every object a key of its own.")
            }
            if local.isSynced { try checkSize(of: change, layout) }
            try ingest.add(change)
            return
        }
        try settle(type: type, key: key)
        let before = try store.row(type: type, key: key).map { layout.named($0) }
        if before == nil { try requireSubscription(layout) }
        try prepare(layout, object)
        guard var after = try Overlay.apply(server: before, pending: [change], type: layout.type) else { return }
        after[layout.type.properties[layout.key].name] = key
        if try store.put(type: type, layout.row(after)) { database.note(type, key) }
        if before == nil { return remember(created: change) }
        for name in values.keys { change.seen[name] = try seen(name, of: object, layout) }
        append(change)
    }

    /// Rejects an asymmetric object that the gateway would reject.
    /// - Throws: `ingestTooLarge` with the size and the bound, as JSON, which the gateway measures, or as a message.
    private func checkSize(of change: ObjectChange, _ layout: TableLayout) throws(SluiceError) {
        var values = change.values
        values[layout.type.properties[layout.key].name] = change.object.key
        // JSON takes at most six bytes for one of a text.
        guard values.reduce(0, { $0 + $1.key.utf8.count + $1.value.recordBytes }) > Limits.ingestObjectBytes / 6 else { return }
        let bytes = ExtendedJSON.json(values).utf8.count
        guard bytes > Limits.ingestObjectBytes else {
            // Short numbers take more bytes in a message than in JSON.
            try local.uploadBound?.check(change)
            return
        }
        throw SluiceError(
            .ingestTooLarge,
            "An object of class \(change.object.type) has \(bytes) bytes as JSON. One object may have \(Limits.ingestObjectBytes) bytes.",
            fix: "Split the object into several.")
    }

    /// Records the creation of an object that did not exist.
    func remember(created change: ObjectChange) {
        if lastChange[change.object] == nil { fresh.insert(change.object) }
        append(change)
    }

    /// Sets one property of an object. Does nothing if the object does not exist.
    /// - Returns: `true` if the object exists.
    @discardableResult
    package func set(type: Int, key: Value, property: Int, _ value: Value) throws(SluiceError) -> Bool {
        let layout = database.layouts[type]
        let (object, name) = (ObjectKey(type: layout.type.name, key: key), layout.type.properties[property].name)
        try prepare(layout, object)
        forgetEdits(type: type, key: key, property: property)
        guard try store.update(type: type, key: key, property: property, value) else { return false }
        database.note(type, key)
        var change = ObjectChange(object: object, kind: .set, values: [name: value])
        change.seen[name] = try seen(name, of: object, layout)
        append(change)
        return true
    }

    /// Sets a property whose value changed in part. Concurrent changes of other parts are kept.
    /// - Parameters:
    ///   - value: the whole new value.
    ///   - edit: the new parts. If this transaction already uploads the whole value, it uploads the new value instead.
    /// - Returns: `true` if the object exists.
    @discardableResult
    package func set(type: Int, key: Value, property: Int, _ value: Value, by edit: ShownEdit) throws(SluiceError) -> Bool {
        let layout = database.layouts[type]
        let object = ObjectKey(type: layout.type.name, key: key)
        let name = layout.type.properties[property].name
        guard local.isSynced else { return try set(type: type, key: key, property: property, value) }
        try settle(type: type, key: key, property: property)
        if let index = lastChange[object], let last = changes[index], last.values[name] != nil {
            return try set(type: type, key: key, property: property, value)
        }
        try prepare(layout, object)
        guard try store.contains(type: type, key: key) else { return false }
        let state = try editedObject(layout, object)
        // One that fails may leave wrong names.
        edited[object] = nil
        let edits = try state.perform(edit, on: layout.type.properties[property], local)
        guard try store.update(type: type, key: key, property: property, state.value(of: name)) else { return false }
        database.note(type, key)
        record(edits, of: state, name)
        edited[object] = state
        return true
    }

    /// The changes of an object so far, oldest first.
    func ownChanges(of object: ObjectKey) -> [ObjectChange] {
        guard let last = lastChange[object] else { return [] }
        return ((earlierChanges[object] ?? []) + [last]).compactMap { changes[$0] }
    }

    /// Adds to an integer property; concurrent additions on several devices all count.
    package func add(type: Int, key: Value, property: Int, amount: Int64) throws(SluiceError) {
        let layout = database.layouts[type]
        let (object, name) = (ObjectKey(type: layout.type.name, key: key), layout.type.properties[property].name)
        try prepare(layout, object)
        guard case .int(let value)?? = try store.rowWithoutEdits(type: type, key: key).map({ $0[property] }) else { return }
        guard try store.update(type: type, key: key, property: property, .int(value &+ amount)) else { return }
        database.note(type, key)
        var change = ObjectChange(object: object, kind: .set, counters: [name: amount])
        change.seen[name] = try seen(name, of: object, layout)
        append(change)
    }

    /// Deletes an object. Does nothing if it does not exist.
    package func delete(type: Int, key: Value) throws(SluiceError) {
        let layout = database.layouts[type]
        let object = ObjectKey(type: layout.type.name, key: key)
        try prepare(layout, object)
        forgetEdits(type: type, key: key)
        guard try store.delete(type: type, key: key) else { return }
        deletions += 1
        database.note(type, key)
        // An object made and deleted in one transaction leaves no change to upload.
        if fresh.remove(object) != nil, let index = lastChange.removeValue(forKey: object) {
            changes[index] = nil
            for earlier in earlierChanges.removeValue(forKey: object) ?? [] { changes[earlier] = nil }
            edited[object] = nil
            return
        }
        append(ObjectChange(object: object, kind: .delete))
    }

    func prepare(_ layout: TableLayout, _ object: ObjectKey) throws(SluiceError) {
        try requireSubscription(layout, alsoByLinks: true)
        guard local.isSynced, server?.object != object else { return }
        server = nil
        // Keeps the server's row before the first local change overwrites it.
        if try !local.overlays.isKept(layout, key: object.key) {
            server = (object, try local.overlays.keepServerRow(layout, key: object.key))
        }
    }

    /// Returns the hash of the server's value of a property before its change (`ObjectChange.seen`); nil if the change does not need it.
    func seen(_ name: String, of object: ObjectKey, _ layout: TableLayout) throws(SluiceError) -> ValueHash? {
        guard local.isSynced else { return nil }
        if let index = lastChange[object], let known = changes[index]?.seen[name] { return known }
        if server?.object != object { server = (object, try local.overlays.keptServerObject(layout, key: object.key).row) }
        return server?.row.map { ValueHash($0[name] ?? .null) }
    }

    /// - Parameter alsoByLinks: `true` also permits classes that a subscription includes by links. Their objects can be changed, not made.
    func requireSubscription(_ layout: TableLayout, alsoByLinks: Bool = false) throws(SluiceError) {
        guard local.isSynced, !writable.contains(layout.index), !(alsoByLinks && editable.contains(layout.index)) else { return }
        guard try subscriptions.isSubscribed(layout.type.name) else {
            if alsoByLinks, try subscriptions.includesByLinks(layout.type.name) {
                editable.insert(layout.index)
                return
            }
            throw SluiceError(
                .noSubscriptionForWrite,
                "Cannot write to class \(layout.type.name) when no flexible sync subscription has been created.")
        }
        writable.insert(layout.index)
    }

    /// Adds a change. It merges into the previous change of the same object if one change can express both.
    private func append(_ change: ObjectChange) {
        guard local.isSynced else { return }
        edited[change.object] = nil
        guard let index = lastChange[change.object], let kind = changes[index]?.kind, kind != .delete else { return begin(change) }
        if change.kind == .delete {
            changes[index] = change
            return
        }
        guard canJoin(change, at: index) else {
            seal(change.object)
            return begin(change)
        }
        let given = change.values.filter { !change.defaults.contains($0.key) || changes[index]?.values[$0.key] == nil }
        // In place: a copy of the edits so far would make n edits cost n².
        changes[index]?.values.merge(given) { $1 }
        changes[index]?.defaults.subtract(Set(given.keys).subtracting(change.defaults))
        changes[index]?.counters.merge(change.counters) { $0 &+ $1 }
        changes[index]?.edits += change.edits
        changes[index]?.seen.merge(change.seen) { known, _ in known }
    }

    /// Begins another change of an object.
    private func begin(_ change: ObjectChange) {
        if let last = lastChange[change.object] { earlierChanges[change.object, default: []].append(last) }
        lastChange[change.object] = changes.count
        changes.append(change)
    }

    /// Within one change values come first, then amounts, then edits.
    private func canJoin(_ change: ObjectChange, at index: Int) -> Bool {
        guard let last = changes[index] else { return false }
        return !change.counters.keys.contains { last.values[$0] != nil } && (last.counters.isEmpty || change.values.isEmpty)
            && (last.edits.isEmpty || change.values.isEmpty && change.counters.isEmpty)
    }

    /// Adds edits that were made inside of a property's value. O(their number).
    func record(_ edits: [Edit], of state: EditedObject, _ name: String) {
        if edits.isEmpty { return }
        guard let index = lastChange[state.object], let kind = changes[index]?.kind, kind != .delete else {
            var change = ObjectChange(object: state.object, kind: .set, edits: edits)
            change.seen[name] = state.seen(name)
            return begin(change)
        }
        changes[index]?.edits += edits
        if changes[index]?.seen[name] == nil, let seen = state.seen(name) { changes[index]?.seen[name] = seen }
    }
}
