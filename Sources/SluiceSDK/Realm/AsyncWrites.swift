import SluiceCore
import SluiceReplica

/// The queued asynchronous write transactions of a Realm. Confined to the Realm's scheduler.
struct AsyncWrites {
    struct Entry {
        let id: AsyncTransactionId
        let block: () -> Void
        /// Receives the error if the transaction cannot begin.
        let failed: (any Error) -> Void
    }

    /// The queued writes in the order of the calls.
    var waiting: [Entry] = []
    /// The lease requested for the first queued write. At most one lease is requested at a time.
    var lease: WriterLease?
    /// The number of commits whose completion has not run yet.
    var unfinished = 0
    /// The completions of grouped commits that are not yet known to be on disk.
    var grouped: [(Result<Void, any Error>) -> Void] = []
    /// `true` while the block of an asynchronous write runs.
    var isRunning = false
    var lastID: AsyncTransactionId = 0
}

/// The id of an asynchronous write or commit, for `cancelAsyncWrite`.
public typealias AsyncTransactionId = UInt32

extension RealmCore {
    /// Queues a write for the time when the writer is free. Traps if the Realm is frozen, read-only or cannot deliver callbacks.
    func enqueueWrite(_ block: @escaping () -> Void, failed: @escaping (any Error) -> Void) -> AsyncTransactionId {
        scheduler.verify()
        if isFrozen { throwRealmException(RealmMisuse.frozenTransaction) }
        if file.isReadOnly { throwRealmException(RealmMisuse.readOnlyTransaction) }
        guard scheduler.canDeliver else {
            throwRealmException("Cannot schedule async transaction. Make sure you are running from inside a run loop.")
        }
        asyncWrites.lastID += 1
        asyncWrites.waiting.append(.init(id: asyncWrites.lastID, block: block, failed: failed))
        askForWriter()
        return asyncWrites.lastID
    }

    private func askForWriter() {
        guard asyncWrites.lease == nil, !asyncWrites.waiting.isEmpty else { return }
        // The closure retains the Realm, so that pending writes survive the release of the app's last handle.
        let (scheduler, core) = (scheduler, Confined(self))
        asyncWrites.lease = replica.askForWriter { scheduler.enqueue { core.content.takeTurn() } }
    }

    /// Runs on the scheduler when the lease can be claimed or has ended.
    private func takeTurn() {
        guard let lease = asyncWrites.lease else { return }
        asyncWrites.lease = nil
        // Runs on every exit, so a lapsed or unused lease never leaves queued writes without a request.
        defer { askForWriter() }
        // No write is queued, or a synchronous transaction is open: return the lease.
        guard !isWriting, let entry = asyncWrites.waiting.first else { return lease.cancel() }
        do {
            try checkWritable()
            // nil: the lease lapsed before the scheduler ran this. The entry stays first and waits for the next lease.
            guard let open = try asRealmError({ try replica.beginWrite(lease, isDurable: false) }) else { return }
            asyncWrites.waiting.removeFirst()
            begun(open)
            asyncWrites.isRunning = true
            entry.block()
            asyncWrites.isRunning = false
        } catch {
            lease.cancel()
            asyncWrites.waiting.removeFirst()
            entry.failed(error)
        }
        // A block that neither commits nor cancels is rolled back.
        if isWriting { cancel() }
        settleGroup()
    }

    /// Removes a write that has not begun.
    func cancelWrite(_ id: AsyncTransactionId) {
        scheduler.verify()
        asyncWrites.waiting.removeAll { $0.id == id }
        if asyncWrites.waiting.isEmpty { asyncWrites.lease?.cancel() }
        // The removed write may have been the one that grouped commits waited for.
        settleGroup()
    }

    /// Commits now and calls the completion later, on the scheduler.
    /// - Parameter allowGrouping: If `true` and another write is queued, the disk sync is shared with that write.
    ///   The completion then waits until both are on disk.
    func commitLater(allowGrouping: Bool, _ completion: @escaping (Result<Void, any Error>) -> Void) -> AsyncTransactionId {
        let isGrouped = allowGrouping && asyncWrites.isRunning && !asyncWrites.waiting.isEmpty
        // The commit runs here, not later: the transaction's changes are visible when the call returns.
        let result = Result { try commit(isGrouped: isGrouped) }
        asyncWrites.lastID += 1
        asyncWrites.unfinished += 1
        guard case .success = result else {
            tell([completion], result)
            return asyncWrites.lastID
        }
        asyncWrites.grouped.append(completion)
        // A durable commit syncs the log, so it also completes the grouped commits before it.
        if !isGrouped { tellGroup(result) }
        return asyncWrites.lastID
    }

    /// Syncs the log for grouped commits if no queued write will do it.
    private func settleGroup() {
        guard !asyncWrites.grouped.isEmpty, asyncWrites.waiting.isEmpty else { return }
        // The closure retains the Realm until its writes have completed.
        let (scheduler, core) = (scheduler, Confined(self))
        replica.waitForDisk { result in
            scheduler.enqueue { core.content.tellGroup(result.mapError { Realm.Error($0) }) }
        }
    }

    private func tellGroup(_ result: Result<Void, any Error>) {
        let group = asyncWrites.grouped
        asyncWrites.grouped = []
        tell(group, result)
    }

    private func tell(_ completions: [(Result<Void, any Error>) -> Void], _ result: Result<Void, any Error>) {
        let (core, confined, outcome) = (Confined(self), Confined(completions), Confined(result))
        scheduler.enqueue {
            for completion in confined.content {
                core.content.asyncWrites.unfinished -= 1
                completion(outcome.content)
            }
        }
    }
}
