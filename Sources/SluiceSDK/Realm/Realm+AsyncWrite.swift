import SluiceCore
import SluiceReplica

extension Realm {
    /// Runs the block as one transaction when the writer is free, and calls back when it is stored; for Realms of the main
    /// thread, a queue or an actor. Writes of one Realm run in the order in which they were given.
    /// - Parameter onComplete: called where the Realm lives, with the error when the transaction could not be stored.
    /// - Returns: what `cancelAsyncWrite` takes.
    @discardableResult
    public func writeAsync(_ block: @escaping () -> Void, onComplete: (((any Swift.Error)?) -> Void)? = nil) -> AsyncTransactionId {
        core.enqueueWrite({
            block()
            // The block may have ended the transaction itself.
            if core.isWriting { commitAsyncWrite(onComplete) }
        }) { error in
            onComplete?(error)
        }
    }

    /// Begins a transaction when the writer is free and runs the block in it. The block ends it with `commitAsyncWrite`,
    /// `commitWrite` or `cancelWrite`; else it is cancelled.
    ///
    /// When the transaction cannot begin the block is not run; see `Realm.onFileError`.
    @discardableResult
    public func beginAsyncWrite(_ asyncWriteBlock: @escaping () -> Void) -> AsyncTransactionId {
        core.enqueueWrite(asyncWriteBlock) { [file = core.file] error in
            file.report(failedWrite: error)
        }
    }

    /// Stores the open transaction and calls back later, where the Realm lives.
    /// - Parameter allowGrouping: in a transaction that `beginAsyncWrite` began: the commit does not wait for the disk by itself when
    ///   another asynchronous write of the Realm waits, but together with it, and is told of when both are there. A crash of the
    ///   system before that undoes both.
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

    /// Takes an asynchronous write back that has not begun; nothing happens when it has.
    public func cancelAsyncWrite(_ asyncTransactionId: AsyncTransactionId) throws { core.cancelWrite(asyncTransactionId) }

    /// Whether asynchronous writes wait, run, or have not called back.
    public var isPerformingAsynchronousWriteOperations: Bool {
        core.asyncWrites.isRunning || core.asyncWrites.unfinished > 0 || !core.asyncWrites.waiting.isEmpty
    }

    /// Runs the block as one transaction, without blocking the thread while others write; for Realms of the main actor or
    /// another one, and of tasks.
    ///
    /// A task that is cancelled while it waits does not write.
    /// - Throws: what the block throws, `CancellationError`, or why the transaction could not be stored.
    @discardableResult
    public func asyncWrite<Result>(
        _isolation: isolated (any Actor)? = #isolation, _ block: () throws -> Result
    ) async throws -> Result {
        requireActor("asyncWrite")
        if core.file.isReadOnly { throwRealmException(RealmMisuse.readOnlyTransaction) }
        try await core.waitForWriter()
        return try core.finish(block)
    }

    /// Moves to the newest state, on an actor.
    /// - Returns: whether there was something newer.
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
    func waitForWriter(_isolation: isolated (any Actor)? = #isolation) async throws {
        while true {
            try _Concurrency.Task.checkCancellation()
            let turn = Turn()
            let lease = replica.askForWriter { turn.come() }
            leases.append(lease)
            await withTaskCancellationHandler {
                await withCheckedContinuation { turn.wait($0) }
            } onCancel: {
                lease.cancel()
            }
            leases.removeAll { $0 === lease }
            if _Concurrency.Task.isCancelled { lease.cancel() }
            if isWriting { throwRealmException(RealmMisuse.alreadyWriting) }
            do {
                try checkWritable()
            } catch {
                lease.cancel()
                throw error
            }
            guard let open = try asRealmError({ try replica.beginWrite(lease) }) else { continue }
            begun(open)
            return
        }
    }
}
