package import SluiceCore
import SluiceMerge

/// A local transaction: what it writes is seen through its `store` at once, by others after `commit`, and becomes one
/// changeset. It holds the replica's only writer; it must end with `commit` or `cancel`, and `deinit` cancels.
///
/// Confined to the Realm that began it.
package final class WriteTransaction {
    let writer: Writer
    private let lease: WriterLease
    private let publish: (WriterNews) -> Void
    private let isDurable: Bool
    private var isOpen = true
    /// Nil: taken back within the transaction.
    var changes: [ObjectChange?] = []
    private(set) var lastChange: [ObjectKey: Int] = [:]
    /// The indices of the changes before the last one, of objects that have several.
    private var earlierChanges: [ObjectKey: [Int]] = [:]
    /// Objects that this transaction made and that were not there before.
    private var fresh: Set<ObjectKey> = []
    private var ingested: Set<ObjectKey> = []
    /// What this transaction, and those right before it, have made of objects inside of whose values they changed something.
    var edited: [ObjectKey: EditedObject]
    /// How many of them are kept for the next transaction; more are made anew.
    private static let keptEdited = 16
    /// The number of objects that it has deleted.
    package private(set) var deletions = 0
    /// Classes that a subscription names, and those whose objects come along with one.
    private var (writable, editable): (Set<Int>, Set<Int>) = ([], [])
    /// What the server has of the object that was changed last, once it is asked for.
    private var server: (object: ObjectKey, row: [String: Value]?)?

    /// What apps see, with this transaction's writes.
    package var store: RowStore { writer.store }

    /// - Parameter isDurable: whether storing it waits for the disk in any case; else `commit` decides.
    init(
        writer: Writer, lease: WriterLease, isDurable: Bool, publish: @escaping (WriterNews) -> Void
    ) throws(SluiceError) {
        self.writer = writer
        self.lease = lease
        self.isDurable = isDurable
        self.publish = publish
        edited = writer.edited
        do throws(SluiceError) {
            try writer.begin(isDurable: isDurable)
        } catch {
            isOpen = false
            throw error
        }
    }

    deinit { cancel() }

    /// What it has changed so far of what apps see.
    package var change: ReplicaChange { ReplicaChange(version: 0, types: writer.news.types) }

    /// How much SQLite has done for the statements of the writer, in its own instructions; a row that it looks at takes some.
    package var instructions: Int { writer.connection.instructions }

    #if DEBUG
        /// Bytes of the encoded values that it has handed to SQLite.
        package var boundBytes: Int { writer.connection.boundBytes }
    #endif

    // MARK: Ending

    /// Stores the transaction and its changeset in one commit. When it throws, nothing has happened and the transaction is over,
    /// unless the disk fails after the commit of one that is not durable.
    /// - Parameter isGrouped: false: it is on the disk afterwards. True: that may be left to a later commit, which then waits for both;
    ///   only of a transaction that was begun with `isDurable: false`.
    package func commit(isGrouped: Bool = false) throws(SluiceError) {
        guard isOpen else { return }
        do throws(SluiceError) {
            try store.settle()
            if writer.isSynced {
                for collection in store.edits.all { fill(collection) }
                try writer.record(changes.compactMap(\.self))
            }
            try writer.commit()
        } catch {
            cancel()
            throw error
        }
        isOpen = false
        store.edits.removeAll()
        if writer.isSynced, edited.count <= WriteTransaction.keptEdited { writer.edited = edited }
        defer { lease.release() }
        // Before the next writer begins, so that whoever writes has heard of everything that was committed before.
        publish(writer.takeNews())
        if !isDurable && !isGrouped { try writer.connection.syncLog() }
    }

    /// Undoes everything; harmless after the end.
    package func cancel() {
        guard isOpen else { return }
        isOpen = false
        store.edits.removeAll()
        writer.rollback()
        lease.release()
    }

    // MARK: Writing

    /// Makes an object, or merges the values into one that is there. An asymmetric object goes to the ingest queue and
    /// is never seen again.
    /// - Parameters:
    ///   - values: by property name, the primary key left out.
    ///   - defaults: those of `values` that the app did not give; they do not overwrite anything.
    /// - Throws: `noSubscriptionForWrite`; `badChangeset` for the second asymmetric object with one key; `ingestTooLarge` for an
    ///   asymmetric object over `Limits.ingestObjectBytes`.
    package func create(
        type: Int, key: Value, values: [String: Value], defaults: Set<String> = []
    ) throws(SluiceError) {
        let layout = writer.layouts[type]
        let object = ObjectKey(type: layout.type.name, key: key)
        var change = ObjectChange(object: object, kind: .create, values: values, defaults: defaults)
        if layout.type.kind == .asymmetric {
            guard ingested.insert(object).inserted else {
                throw SluiceError(
                    .badChangeset, "Two objects of the asymmetric class \(object.type) have the key \(key) in one transaction.",
                    fix: "Give every object a key of its own.")
            }
            if writer.isSynced { try checkSize(of: change, layout) }
            try writer.addIngest(change)
            return
        }
        try settle(type: type, key: key)
        let before = try store.row(type: type, key: key).map { writer.named($0, layout) }
        if before == nil { try requireSubscription(layout) }
        try prepare(layout, object)
        guard var after = try Overlay.apply(server: before, pending: [change], type: layout.type) else { return }
        after[layout.type.properties[layout.key].name] = key
        if try store.put(type: type, writer.row(after, layout)) { writer.note(type, key) }
        if before == nil { return remember(created: change) }
        for name in values.keys { change.seen[name] = try seen(name, of: object, layout) }
        append(change)
    }

    /// Refuses an asymmetric object that the gateway would refuse.
    /// - Throws: `ingestTooLarge` with the size as JSON, which is what the gateway measures, and the bound.
    private func checkSize(of change: ObjectChange, _ layout: TableLayout) throws(SluiceError) {
        var values = change.values
        values[layout.type.properties[layout.key].name] = change.object.key
        // JSON takes at most six bytes for one of a text.
        guard values.reduce(0, { $0 + $1.key.utf8.count + $1.value.recordBytes }) > Limits.ingestObjectBytes / 6 else { return }
        let bytes = ExtendedJSON.json(values).utf8.count
        guard bytes > Limits.ingestObjectBytes else { return }
        throw SluiceError(
            .ingestTooLarge,
            "An object of class \(change.object.type) has \(bytes) bytes as JSON. One object may have \(Limits.ingestObjectBytes) bytes.",
            fix: "Split the object into several.")
    }

    /// Notes that an object was made that was not there.
    func remember(created change: ObjectChange) {
        if lastChange[change.object] == nil { fresh.insert(change.object) }
        append(change)
    }

    /// Sets one property of an object that is there; does nothing when it is not.
    /// - Returns: whether it is there.
    @discardableResult
    package func set(type: Int, key: Value, property: Int, _ value: Value) throws(SluiceError) -> Bool {
        let layout = writer.layouts[type]
        let (object, name) = (ObjectKey(type: layout.type.name, key: key), layout.type.properties[property].name)
        try prepare(layout, object)
        forgetEdits(type: type, key: key, property: property)
        guard try store.update(type: type, key: key, property: property, value) else { return false }
        writer.note(type, key)
        var change = ObjectChange(object: object, kind: .set, values: [name: value])
        change.seen[name] = try seen(name, of: object, layout)
        append(change)
        return true
    }

    /// Sets a property whose value was changed in some places only: others' concurrent changes in other places stay.
    /// - Parameters:
    ///   - value: all of the property's value.
    ///   - edit: what of it is new. An object that this transaction made is simply made with the value.
    /// - Returns: whether the object is there.
    @discardableResult
    package func set(type: Int, key: Value, property: Int, _ value: Value, by edit: ShownEdit) throws(SluiceError) -> Bool {
        let layout = writer.layouts[type]
        let object = ObjectKey(type: layout.type.name, key: key)
        let name = layout.type.properties[property].name
        guard writer.isSynced else { return try set(type: type, key: key, property: property, value) }
        try settle(type: type, key: key, property: property)
        if let index = lastChange[object], let last = changes[index], last.values[name] != nil {
            return try set(type: type, key: key, property: property, value)
        }
        try prepare(layout, object)
        guard try store.contains(type: type, key: key) else { return false }
        let state = try editedObject(layout, object)
        // One that fails may leave wrong names.
        edited[object] = nil
        let edits = try state.perform(edit, on: layout.type.properties[property], writer)
        guard try store.update(type: type, key: key, property: property, state.value(of: name)) else { return false }
        writer.note(type, key)
        record(edits, of: state, name)
        edited[object] = state
        return true
    }

    /// The changes of an object so far, oldest first.
    func ownChanges(of object: ObjectKey) -> [ObjectChange] {
        guard let last = lastChange[object] else { return [] }
        return ((earlierChanges[object] ?? []) + [last]).compactMap { changes[$0] }
    }

    /// Adds to an integer property; concurrent additions on several devices all count (CR-8).
    package func add(type: Int, key: Value, property: Int, amount: Int64) throws(SluiceError) {
        let layout = writer.layouts[type]
        let (object, name) = (ObjectKey(type: layout.type.name, key: key), layout.type.properties[property].name)
        try prepare(layout, object)
        guard case .int(let value)?? = try store.rowWithoutEdits(type: type, key: key).map({ $0[property] }) else { return }
        guard try store.update(type: type, key: key, property: property, .int(value &+ amount)) else { return }
        writer.note(type, key)
        var change = ObjectChange(object: object, kind: .set, counters: [name: amount])
        change.seen[name] = try seen(name, of: object, layout)
        append(change)
    }

    /// Deletes an object; does nothing when it is not there.
    package func delete(type: Int, key: Value) throws(SluiceError) {
        let layout = writer.layouts[type]
        let object = ObjectKey(type: layout.type.name, key: key)
        try prepare(layout, object)
        forgetEdits(type: type, key: key)
        guard try store.delete(type: type, key: key) else { return }
        deletions += 1
        writer.note(type, key)
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
        guard writer.isSynced, server?.object != object else { return }
        server = nil
        if try !writer.isKept(layout, key: object.key) { server = (object, try writer.keepServerRow(layout, key: object.key)) }
    }

    /// What the server has for a property that is about to be changed (`ObjectChange.seen`); nil when the change need not say it.
    func seen(_ name: String, of object: ObjectKey, _ layout: TableLayout) throws(SluiceError) -> ValueHash? {
        guard writer.isSynced else { return nil }
        if let index = lastChange[object], let known = changes[index]?.seen[name] { return known }
        if server?.object != object { server = (object, try writer.keptServerObject(layout, key: object.key).row) }
        return server?.row.map { ValueHash($0[name] ?? .null) }
    }

    /// - Parameter alsoByLinks: what comes along with a subscription can be changed, though none of its class can be made.
    func requireSubscription(_ layout: TableLayout, alsoByLinks: Bool = false) throws(SluiceError) {
        guard writer.isSynced, !writable.contains(layout.index), !(alsoByLinks && editable.contains(layout.index)) else { return }
        guard try writer.isSubscribed(layout.type.name) else {
            if alsoByLinks, try writer.comesAlong(layout.type.name) {
                editable.insert(layout.index)
                return
            }
            throw SluiceError(
                .noSubscriptionForWrite,
                "Cannot write to class \(layout.type.name) when no flexible sync subscription has been created.")
        }
        writable.insert(layout.index)
    }

    /// Adds a change, joined with the one before of the same object where both say the same together.
    private func append(_ change: ObjectChange) {
        guard writer.isSynced else { return }
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
