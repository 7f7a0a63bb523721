import SluiceCore
import SluiceReplica

extension Realm {
    /// Runs the block as one transaction when the writer is free, and calls back once it is on disk.
    /// For Realms of the main thread, a queue or an actor; traps on others. Writes of one Realm run in the order of the calls.
    /// - Parameter onComplete: Called on the Realm's thread, queue or actor, with the error if the transaction was not stored.
    /// - Returns: The id for `cancelAsyncWrite`.
    @discardableResult
    public func writeAsync(_ block: @escaping () -> Void, onComplete: (((any Swift.Error)?) -> Void)? = nil) -> AsyncTransactionId {
        core.enqueueWrite({
            block()
            // The block may have ended the transaction.
            if core.isWriting { commitAsyncWrite(onComplete) }
        }) { error in
            onComplete?(error)
        }
    }

    /// Runs the block in a transaction when the writer is free. The block must end it with `commitAsyncWrite`, `commitWrite` or
    /// `cancelWrite`; otherwise it is rolled back.
    ///
    /// If the transaction cannot begin, the block does not run and the error is reported; see `Realm.onFileError`.
    @discardableResult
    public func beginAsyncWrite(_ asyncWriteBlock: @escaping () -> Void) -> AsyncTransactionId {
        core.enqueueWrite(asyncWriteBlock) { [file = core.file] error in
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
        core.commitLater(allowGrouping: allowGrouping) { result in
            switch result {
            case .success: completionBlock?(nil)
            case .failure(let error): completionBlock?(error)
            }
        }
    }

    /// Removes an asynchronous write that has not begun. Does nothing if it has.
    public func cancelAsyncWrite(_ asyncTransactionId: AsyncTransactionId) throws { core.cancelWrite(asyncTransactionId) }

    /// `true` while asynchronous writes are queued, running, or waiting for their callback.
    public var isPerformingAsynchronousWriteOperations: Bool {
        core.asyncWrites.isRunning || core.asyncWrites.unfinished > 0 || !core.asyncWrites.waiting.isEmpty
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
        try await core.waitForWriter()
        return try core.finish(block)
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

extension RealmCore {
    /// Begins a transaction when the writer is free.
    /// - Throws: `CancellationError`, or the reason why the file cannot be written.
    func waitForWriter(_isolation: isolated (any Actor)? = #isolation) async throws {
        while true {
            try _Concurrency.Task.checkCancellation()
            let turn = AsyncEvent()
            let lease = replica.askForWriter { turn.come() }
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
            if isWriting { throwRealmException(RealmMisuse.alreadyWriting) }
            do {
                try checkWritable()
            } catch {
                lease.cancel()
                throw error
            }
            // nil: the lease lapsed before this task ran. Request another.
            guard let open = try asRealmError({ try replica.beginWrite(lease) }) else { continue }
            begun(open)
            return
        }
    }
}
