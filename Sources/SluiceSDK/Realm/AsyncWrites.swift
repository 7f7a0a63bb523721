import SluiceCore
import SluiceReplica

/// The write transactions of a Realm that wait for their turn without blocking.
struct AsyncWrites {
    struct Entry {
        let id: AsyncTransactionId
        let block: () -> Void
        /// Hears why the transaction could not begin.
        let failed: (any Error) -> Void
    }

    var waiting: [Entry] = []
    /// The turn that was asked for, for the first that waits.
    var lease: WriterLease?
    /// Commits whose completion has not been called.
    var unfinished = 0
    /// The completions of commits that are not known to be on the disk.
    var grouped: [(Result<Void, any Error>) -> Void] = []
    var isRunning = false
    var lastID: AsyncTransactionId = 0
}

/// Names an asynchronous write or commit for `cancelAsyncWrite`.
public typealias AsyncTransactionId = UInt32

extension RealmCore {
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
        // The Realm lives on until its writes are done.
        let (scheduler, core) = (scheduler, Confined(self))
        asyncWrites.lease = replica.askForWriter { scheduler.enqueue { core.content.takeTurn() } }
    }

    /// On the scheduler, when the lease can be claimed or is over.
    private func takeTurn() {
        guard let lease = asyncWrites.lease else { return }
        asyncWrites.lease = nil
        defer { askForWriter() }
        guard !isWriting, let entry = asyncWrites.waiting.first else { return lease.cancel() }
        do {
            try checkWritable()
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
        if isWriting { cancel() }
        settleGroup()
    }

    func cancelWrite(_ id: AsyncTransactionId) {
        scheduler.verify()
        asyncWrites.waiting.removeAll { $0.id == id }
        if asyncWrites.waiting.isEmpty { asyncWrites.lease?.cancel() }
        settleGroup()
    }

    /// Commits now and tells of it later.
    /// - Parameter allowGrouping: whether a write that waits may have the disk wait for both. It is told of when both are there.
    func commitLater(allowGrouping: Bool, _ completion: @escaping (Result<Void, any Error>) -> Void) -> AsyncTransactionId {
        let isGrouped = allowGrouping && asyncWrites.isRunning && !asyncWrites.waiting.isEmpty
        let result = Result { try commit(isGrouped: isGrouped) }
        asyncWrites.lastID += 1
        asyncWrites.unfinished += 1
        guard case .success = result else {
            tell([completion], result)
            return asyncWrites.lastID
        }
        asyncWrites.grouped.append(completion)
        if !isGrouped { tellGroup(result) }
        return asyncWrites.lastID
    }

    /// Has the disk wait for commits that no other write will.
    private func settleGroup() {
        guard !asyncWrites.grouped.isEmpty, asyncWrites.waiting.isEmpty else { return }
        // The Realm lives on until its writes are done.
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
