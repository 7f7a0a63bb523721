import SluiceCore
import SluiceReplica

/// The write transactions of a Realm that wait for their turn without blocking.
struct AsyncWrites {
    struct Entry {
        let id: AsyncTransactionId
        let block: () -> Void
    }

    var waiting: [Entry] = []
    /// The turn that was asked for, for the first that waits.
    var lease: WriterLease?
    /// Commits whose completion has not been called.
    var unfinished = 0
    var isRunning = false
    var lastID: AsyncTransactionId = 0
}

/// Names an asynchronous write or commit for `cancelAsyncWrite`.
public typealias AsyncTransactionId = UInt32

extension RealmCore {
    func enqueueWrite(_ block: @escaping () -> Void) -> AsyncTransactionId {
        scheduler.verify()
        if isFrozen { throwRealmException(RealmMisuse.frozenTransaction) }
        if file.isReadOnly { throwRealmException(RealmMisuse.readOnlyTransaction) }
        guard scheduler.canDeliver else {
            throwRealmException("Cannot schedule async transaction. Make sure you are running from inside a run loop.")
        }
        asyncWrites.lastID += 1
        asyncWrites.waiting.append(.init(id: asyncWrites.lastID, block: block))
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
        guard transaction == nil, !asyncWrites.waiting.isEmpty else { return lease.cancel() }
        do throws(SluiceError) {
            guard let open = try replica.beginWrite(lease) else { return }
            let entry = asyncWrites.waiting.removeFirst()
            begun(open)
            asyncWrites.isRunning = true
            entry.block()
            asyncWrites.isRunning = false
        } catch {
            file.report(error)
        }
        if transaction != nil { cancel() }
    }

    func cancelWrite(_ id: AsyncTransactionId) {
        scheduler.verify()
        asyncWrites.waiting.removeAll { $0.id == id }
        if asyncWrites.waiting.isEmpty { asyncWrites.lease?.cancel() }
    }

    /// Commits now and tells of it later.
    func commitLater(_ completion: ((Result<Void, any Error>) -> Void)?) -> AsyncTransactionId {
        let result = Result { try commit() }
        asyncWrites.lastID += 1
        asyncWrites.unfinished += 1
        let (core, confined) = (Confined(self), Confined(completion))
        let outcome = Confined(result)
        scheduler.enqueue {
            core.content.asyncWrites.unfinished -= 1
            confined.content?(outcome.content)
        }
        return asyncWrites.lastID
    }
}
