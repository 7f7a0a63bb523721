import SluiceCore
import SluiceReplica

extension Realm {
    /// Runs the block as one transaction when the writer is free, and calls back once it is on disk.
    /// For Realms of the main thread, a queue or an actor; traps on others. Writes of one Realm run in the order of the calls.
    /// - Parameter onComplete: Called on the Realm's thread, queue or actor, with the error if the transaction was not stored.
    /// - Returns: The id for `cancelAsyncWrite`.
    @discardableResult
    public func writeAsync(_ block: @escaping () -> Void, onComplete: (((any Swift.Error)?) -> Void)? = nil) -> AsyncTransactionId {
        core.transactions.asyncWrites.enqueue(
            in: core,
            {
                block()
                // The block may have ended the transaction.
                if core.isWriting { commitAsyncWrite(onComplete) }
            }
        ) { error in
            onComplete?(error)
        }
    }

    /// Runs the block in a transaction when the writer is free. The block must end it with `commitAsyncWrite`, `commitWrite` or
    /// `cancelWrite`; otherwise it is rolled back.
    ///
    /// If the transaction cannot begin, the block does not run and the error is reported; see `Realm.onFileError`.
    @discardableResult
    public func beginAsyncWrite(_ asyncWriteBlock: @escaping () -> Void) -> AsyncTransactionId {
        core.transactions.asyncWrites.enqueue(in: core, asyncWriteBlock) { [file = core.file] error in
            file.report(failure: error)
        }
    }

    /// Commits the open transaction and calls back on the Realm's thread, queue or actor once it is on disk.
    /// - Parameter allowGrouping: If `true`, a transaction of `beginAsyncWrite` shares the disk sync with the next queued write.
    ///   Both callbacks then wait for that sync. A system crash before it loses both transactions.
    @discardableResult
    public func commitAsyncWrite(
        allowGrouping: Bool = false, _ completionBlock: (((any Swift.Error)?) -> Void)? = nil
    ) -> AsyncTransactionId {
        core.transactions.asyncWrites.commit(in: core, allowGrouping: allowGrouping) { result in
            switch result {
            case .success: completionBlock?(nil)
            case .failure(let error): completionBlock?(error)
            }
        }
    }

    /// Removes an asynchronous write that has not begun. Does nothing if it has.
    public func cancelAsyncWrite(_ asyncTransactionId: AsyncTransactionId) throws {
        core.transactions.asyncWrites.cancel(asyncTransactionId, in: core)
    }

    /// `true` while asynchronous writes are queued, running, or waiting for their callback.
    public var isPerformingAsynchronousWriteOperations: Bool {
        core.transactions.asyncWrites.isBusy
    }

    /// Runs the block as one transaction. The task suspends while other writers are active, and its thread is not blocked.
    /// For Realms of the main actor, another actor, or a task; traps on others.
    ///
    /// A task that is cancelled while it waits does not write.
    /// - Throws: The block's error, `CancellationError`, or the reason why the transaction was not stored.
    @discardableResult
    public func asyncWrite<Result>(
        _isolation: isolated (any Actor)? = #isolation, _ block: () throws -> Result
    ) async throws -> Result {
        requireActor("asyncWrite")
        if core.file.isReadOnly { throwRealmException(RealmMisuse.readOnlyTransaction) }
        try await core.transactions.waitForWriter()
        return try core.transactions.finish(block)
    }

    /// Advances the Realm to the newest snapshot, on an actor. Traps on Realms without an actor or task.
    /// - Returns: `true` if there was a newer snapshot.
    @discardableResult
    public func asyncRefresh(_isolation: isolated (any Actor)? = #isolation) async -> Bool {
        requireActor("asyncRefresh")
        return refresh()
    }

    private func requireActor(_ name: String) {
        switch core.scheduler {
        case .main, .actor, .task: core.scheduler.verify()
        case .queue, .thread, .none:
            throwRealmException(
                core.isFrozen
                    ? RealmMisuse.frozenTransaction : "\(name)() can only be called on main thread or actor-isolated Realms")
        }
    }
}
