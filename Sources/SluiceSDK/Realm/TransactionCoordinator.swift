import SluiceCore
import SluiceMerge
import SluiceReplica

/// The write transactions of a Realm: begin, commit and rollback, their nesting rules, and the writes.
///
/// A Realm has one transaction at a time. While it is open, the read state reads from it and does not advance, and the
/// observation hub delivers nothing. Confined to the Realm's scheduler.
final class TransactionCoordinator {
    /// The queued asynchronous writes.
    let asyncWrites = AsyncWriteQueue()
    /// The objects that are being added.
    let adoption = ObjectAdoption()
    private let reading: ReadState
    private let observations: ObservationHub
    /// The most versions that the file's readers may keep; nil: no limit.
    private let maximumActiveVersions: UInt?
    /// The first error of the open transaction, or the reason why it could not begin. The commit throws it.
    private var failure: (any Error)?
    /// The writer leases that tasks wait for.
    private var leases: [WriterLease] = []

    init(_ reading: ReadState, _ observations: ObservationHub, maximumActiveVersions: UInt?) {
        self.reading = reading
        self.observations = observations
        self.maximumActiveVersions = maximumActiveVersions
    }

    // MARK: Begin

    /// Begins a transaction. Blocks until other writers finish. Notifies observers of earlier changes first, to keep them separate.
    func begin() throws {
        reading.scheduler.verify()
        if reading.isFrozen { throwRealmException(RealmMisuse.frozenTransaction) }
        if reading.file.isReadOnly { throwRealmException(RealmMisuse.readOnlyTransaction) }
        // Another commit may precede the lease. Release the writer, notify and try again, at most three times.
        var turns = 3
        while true {
            if reading.isWriting { throwRealmException(RealmMisuse.alreadyWriting) }
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
            // `beginWrite` cannot throw, and RealmSwift ends the program here too.
            if case Realm.Error.fail = error, let excess = excessVersions { throwRealmException(excess) }
            failure = error
            reading.enterDiscarded()
        }
    }

    /// Begins a transaction when the writer is free.
    /// - Throws: `CancellationError`, or the reason why the file cannot be written.
    func waitForWriter(_isolation: isolated (any Actor)? = #isolation) async throws {
        while true {
            try _Concurrency.Task.checkCancellation()
            let turn = AsyncEvent()
            let lease = reading.replica.askForWriter { turn.come() }
            // Registered, so that a synchronous write on this scheduler can use the lease instead of waiting for it to lapse.
            leases.append(lease)
            await withTaskCancellationHandler {
                await withCheckedContinuation { turn.wait($0) }
            } onCancel: {
                lease.cancel()
            }
            leases.removeAll { $0 === lease }
            // A cancellation after the handler's removal must not leave the lease held.
            if _Concurrency.Task.isCancelled { lease.cancel() }
            // Another transaction may have begun on this scheduler during the `await`.
            if reading.isWriting { throwRealmException(RealmMisuse.alreadyWriting) }
            do {
                try checkWritable()
            } catch {
                lease.cancel()
                throw error
            }
            // nil: the lease lapsed before this task ran. Request another.
            guard let open = try asRealmError({ try reading.replica.beginWrite(lease) }) else { continue }
            begun(open)
            return
        }
    }

    /// Checks that a transaction can begin.
    /// - Throws: An error if the file is damaged, or if more old versions are read than the configuration allows.
    func checkWritable() throws {
        try reading.file.requireWhole()
        // The transaction releases this Realm's own version, so it must not count.
        if maximumActiveVersions != nil { reading.refresh() }
        if let excess = excessVersions { throw Realm.Error(.fail, excess) }
    }

    /// The error message if more versions are read than the configuration allows; otherwise nil.
    private var excessVersions: String? {
        guard let limit = maximumActiveVersions else { return nil }
        let active = reading.replica.activeVersions
        if active <= limit { return nil }
        return "Number of active versions (\(active)) in the Realm exceeded the limit of \(limit): let go of frozen Realms, "
            + "and refresh Realms of other threads."
    }

    /// Waits for the writer. A lease for an asynchronous write is used first: this call blocks the scheduler that would claim it.
    private func takeWriter() throws(SluiceError) -> WriteTransaction {
        for lease in leases + [asyncWrites.lease].compactMap(\.self) {
            if let open = try reading.replica.beginWrite(lease) { return open }
        }
        return try reading.replica.beginWrite()
    }

    /// Enters a transaction of the file that the caller has begun.
    func begun(_ open: WriteTransaction) {
        failure = nil
        reading.enter(open)
    }

    // MARK: Commit and rollback

    func commit(withoutNotifying tokens: [NotificationToken] = [], isGrouped: Bool = false) throws {
        reading.scheduler.verify()
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
        if reading.isWriting { try commit(withoutNotifying: tokens) }
        return result
    }

    /// Rolls back the open transaction, if any, and notifies the observers.
    func cancel() {
        reading.detachLoops()
        // After the loops: they read their remaining keys through the store that this closes.
        reading.transaction?.cancel()
        reading.leaveTransaction()
        failure = nil
        observations.transactionEnded(isStored: false)
        afterTransaction()
    }

    private func afterTransaction() {
        let hasMoved = reading.refresh()
        // The generation changes even without a newer snapshot: the transaction's uncommitted values are gone.
        reading.clock.generation += 1
        if hasMoved { observations.notifyRealmObservers(.didChange) }
    }

    // MARK: Writes

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
        reading.clock.generation += 1
    }

    /// Traps outside of a write transaction.
    func requireTransaction() {
        if reading.isFrozen { throwRealmException(RealmMisuse.frozenObject) }
        reading.scheduler.verify()
        if !reading.isWriting { throwRealmException("Cannot modify managed objects outside of a write transaction.") }
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

    /// Deletes objects of a class with a row of their own.
    func delete(_ type: Int, _ keys: [Value]) {
        change { transaction throws(SluiceError) in
            for key in keys { try transaction.delete(type: type, key: key) }
        }
        observations.deleted(type, keys)
    }

    // MARK: Edits of collections in place

    /// Returns a collection to edit in the open transaction; nil if its whole value must be written.
    func editedCollection(_ type: Int, _ key: Value, _ slot: Int) -> EditedCollection? {
        requireTransaction()
        guard let transaction = reading.transaction, failure == nil else { return nil }
        reading.detachLoops()
        // Falls back to `write`, which repeats the error, so that the commit throws it.
        return try? transaction.editedCollection(type: type, key: key, property: slot)
    }

    /// Runs an edit of a collection that `editedCollection` returned.
    func edit(_ type: Int, _ key: Value, _ slot: Int, _ body: () throws(SluiceError) -> Void) {
        change { _ throws(SluiceError) in try body() }
        observations.wrote(type, key, slot)
    }

    /// `true` if all links of an edited collection were found to have targets, and no object was deleted since.
    func isAllShown(_ collection: EditedCollection) -> Bool {
        collection.deletionsWhenShown.map { $0 == reading.transaction?.deletions } ?? false
    }

    /// Records that all links of an edited collection have targets.
    func noteAllShown(_ collection: EditedCollection) { collection.deletionsWhenShown = reading.transaction?.deletions }
}
