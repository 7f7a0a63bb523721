import SluiceCore
import SluiceReplica

/// The id of an asynchronous write or commit, for `cancelAsyncWrite`.
public typealias AsyncTransactionId = UInt32

/// The queued asynchronous write transactions of a Realm. Confined to the Realm's scheduler.
///
/// Closures that wait for the writer or the disk retain the Realm, so that pending writes survive the release of its last handle.
final class AsyncWriteQueue {
    typealias Completion = (Result<Void, any Error>) -> Void

    private struct Entry {
        let id: AsyncTransactionId
        let block: () -> Void
        /// Receives the error if the transaction cannot begin.
        let failed: (any Error) -> Void
    }

    /// The queued writes in the order of the calls.
    private var waiting: [Entry] = []
    /// The lease requested for the first queued write. At most one lease is requested at a time.
    private(set) var lease: WriterLease?
    /// The number of commits whose completion has not run yet.
    private var unfinished = 0
    /// The completions of grouped commits that are not yet known to be on disk.
    private var grouped: [Completion] = []
    /// `true` while the block of an asynchronous write runs.
    private var isRunning = false
    private var lastID: AsyncTransactionId = 0

    /// `true` while asynchronous writes are queued, running, or waiting for their callback.
    var isBusy: Bool { isRunning || unfinished > 0 || !waiting.isEmpty }

    /// Queues a write for the time when the writer is free. Traps if the Realm is frozen, read-only or cannot deliver callbacks.
    func enqueue(in core: RealmCore, _ block: @escaping () -> Void, failed: @escaping (any Error) -> Void) -> AsyncTransactionId {
        core.scheduler.verify()
        if core.isFrozen { throwRealmException(RealmMisuse.frozenTransaction) }
        if core.file.isReadOnly { throwRealmException(RealmMisuse.readOnlyTransaction) }
        guard core.scheduler.canDeliver else {
            throwRealmException("Cannot schedule async transaction. Make sure you are running from inside a run loop.")
        }
        lastID += 1
        waiting.append(Entry(id: lastID, block: block, failed: failed))
        askForWriter(in: core)
        return lastID
    }

    private func askForWriter(in core: RealmCore) {
        guard lease == nil, !waiting.isEmpty else { return }
        let (scheduler, confined) = (core.scheduler, Confined(core))
        lease = core.replica.askForWriter {
            scheduler.enqueue { confined.content.transactions.asyncWrites.takeTurn(in: confined.content) }
        }
    }

    /// Runs on the scheduler when the lease can be claimed or has ended.
    private func takeTurn(in core: RealmCore) {
        guard let lease else { return }
        self.lease = nil
        // Runs on every exit, so a lapsed or unused lease never leaves queued writes without a request.
        defer { askForWriter(in: core) }
        // No write is queued, or a synchronous transaction is open: return the lease.
        guard !core.isWriting, let entry = waiting.first else { return lease.cancel() }
        do {
            try core.transactions.checkWritable()
            // nil: the lease lapsed before the scheduler ran this. The entry stays first and waits for the next lease.
            guard let open = try asRealmError({ try core.replica.beginWrite(lease, isDurable: false) }) else { return }
            waiting.removeFirst()
            core.transactions.begun(open)
            isRunning = true
            entry.block()
            isRunning = false
        } catch {
            lease.cancel()
            waiting.removeFirst()
            entry.failed(error)
        }
        // A block that neither commits nor cancels is rolled back.
        if core.isWriting { core.transactions.cancel() }
        syncGroup(in: core)
    }

    /// Removes a write that has not begun.
    func cancel(_ id: AsyncTransactionId, in core: RealmCore) {
        core.scheduler.verify()
        waiting.removeAll { $0.id == id }
        if waiting.isEmpty { lease?.cancel() }
        // The removed write may have been the one that grouped commits waited for.
        syncGroup(in: core)
    }

    /// Commits now and calls the completion later, on the scheduler.
    /// - Parameter allowGrouping: If `true` and another write is queued, the disk sync is shared with that write.
    ///   The completion then waits until both are on disk.
    func commit(in core: RealmCore, allowGrouping: Bool, _ completion: @escaping Completion) -> AsyncTransactionId {
        let isGrouped = allowGrouping && isRunning && !waiting.isEmpty
        // The commit runs here, not later: the transaction's changes are visible when the call returns.
        let result = Result { try core.transactions.commit(isGrouped: isGrouped) }
        lastID += 1
        unfinished += 1
        guard case .success = result else {
            complete([completion], result, in: core)
            return lastID
        }
        grouped.append(completion)
        // A durable commit syncs the log, so it also completes the grouped commits before it.
        if !isGrouped { completeGroup(result, in: core) }
        return lastID
    }

    /// Syncs the log for grouped commits if no queued write will do it.
    private func syncGroup(in core: RealmCore) {
        guard !grouped.isEmpty, waiting.isEmpty else { return }
        let (scheduler, confined) = (core.scheduler, Confined(core))
        core.replica.waitForDisk { result in
            scheduler.enqueue {
                confined.content.transactions.asyncWrites.completeGroup(result.mapError { Realm.Error($0) }, in: confined.content)
            }
        }
    }

    private func completeGroup(_ result: Result<Void, any Error>, in core: RealmCore) {
        let group = grouped
        grouped = []
        complete(group, result, in: core)
    }

    private func complete(_ completions: [Completion], _ result: Result<Void, any Error>, in core: RealmCore) {
        // In a later turn: a completion never runs inside the call that registers it.
        let (owner, confined, outcome) = (Confined(core), Confined(completions), Confined(result))
        core.scheduler.enqueue {
            for completion in confined.content {
                owner.content.transactions.asyncWrites.unfinished -= 1
                completion(outcome.content)
            }
        }
    }
}
