public import Dispatch
import SluiceReplica

extension Realm {
    /// Determines if opening waits for the server's data.
    public enum OpenBehavior: Sendable {
        /// Opens with the local data. The default.
        case never
        /// Waits at each opening, which therefore needs a connection.
        case always
        /// Waits if the file is new, or if the previous one was moved to a backup.
        case once
    }

    /// Opens a Realm for the caller's actor.
    /// - Parameter downloadBeforeOpen: Determines if opening waits until all data of the subscriptions have arrived.
    /// - Throws: `Realm.Error`, or the error that ended the download.
    public init(
        configuration: Configuration = .defaultConfiguration, downloadBeforeOpen: OpenBehavior = .never,
        _isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let opened = try Realm.makeCore(configuration, scheduler: .of(_isolation), floats: _isolation == nil)
        core = opened.core
        try await Realm.download(core.file, configuration, downloadBeforeOpen, isNew: opened.isNew)
        core.reading.refresh()
    }

    /// Opens a Realm for an actor.
    public init<A: Actor>(
        configuration: Configuration = .defaultConfiguration, actor: A, downloadBeforeOpen: OpenBehavior = .never
    ) async throws {
        let opened = try Realm.makeCore(configuration, scheduler: .of(actor))
        core = opened.core
        try await Realm.download(core.file, configuration, downloadBeforeOpen, isNew: opened.isNew)
        await Realm.refresh(Confined(core), on: actor)
    }

    /// Opens a Realm for the caller's actor; the same as `init`.
    public static func open(
        configuration: Configuration = .defaultConfiguration, _isolation actor: isolated any Actor = #isolation,
        downloadBeforeOpen: OpenBehavior = .never
    ) async throws -> Realm {
        try await Realm(configuration: configuration, downloadBeforeOpen: downloadBeforeOpen, _isolation: actor)
    }

    private static func refresh(_ core: Confined<RealmCore>, on actor: isolated any Actor) { core.content.reading.refresh() }

    /// Waits until the file has the server's data for its subscriptions.
    private static func download(
        _ file: OpenFile, _ configuration: Configuration, _ behavior: OpenBehavior, isNew: Bool
    ) async throws {
        guard let session = file.session, behavior == .always || behavior == .once && isNew else { return }
        // By default a wait survives connection errors, since the session reconnects.
        let isImpatient = configuration.syncConfiguration?.cancelAsyncOpenOnNonFatalErrors == true
        try await session.events.unlessEnded(isImpatient: isImpatient) { try await session.wait(for: .download) }
        // The newest subscription set may still be unanswered after the download.
        let latest = try await file.replica.latestSubscriptionSet()
        try await file.waitForSubscriptionSet(latest.version, isImpatient: isImpatient)
    }

    /// Opens a Realm after a download, and passes it to the callback on a queue.
    @discardableResult
    public static func asyncOpen(
        configuration: Configuration = .defaultConfiguration, callbackQueue: DispatchQueue = .main,
        callback: @escaping (Result<Realm, any Swift.Error>) -> Void
    ) -> AsyncOpenTask {
        let callback = Confined(callback)
        let progress = OpeningProgress()
        let task = _Concurrency.Task {  // Unstructured because: the caller has no task. It ends with the download, or by `cancel`.
            do {
                let file = try Error.naming(configuration) {
                    let (file, isNew) = try OpenFile.of(configuration)
                    let core = try RealmCore(configuration: configuration, file: file, scheduler: .none, floats: false)
                    try file.runInitialSubscriptions(configuration, core: core, isFirstOpen: isNew)
                    return file
                }
                let token = file.session?.addProgressNotification(for: .download, mode: .reportIndefinitely) { step in
                    // The open is complete only after the wait for the subscription set, so 1 is reported last.
                    progress.reached(min(0.99, step.progressEstimate))
                }
                file.start()
                try await download(file, configuration, .always, isNew: true)
                token?.invalidate()
                progress.reached(1)
                if _Concurrency.Task.isCancelled { return }
                callbackQueue.async {
                    // The closure retains the file: it must not close before the Realm opens.
                    withExtendedLifetime(file) {
                        callback.content(
                            Result {
                                try Realm(configuration: configuration, queue: callbackQueue)
                            })
                    }
                }
            } catch {
                if _Concurrency.Task.isCancelled { return }
                callbackQueue.async { callback.content(.failure(error)) }
            }
        }
        return AsyncOpenTask(task: task, progress: progress)
    }

    /// An asynchronous open in progress.
    public struct AsyncOpenTask: Sendable {
        let task: _Concurrency.Task<Void, Never>
        let progress: OpeningProgress
        /// Cancels the open. The callback does not run, unless it is already queued.
        public func cancel() { task.cancel() }

        /// Calls the block with the download's progress: with the current estimate at once, then after each step up to 1.
        public func addProgressNotification(queue: DispatchQueue = .main, block: @escaping (SyncSession.Progress) -> Void) {
            let block = Confined(block)
            progress.add { step in queue.async { block.content(step) } }
        }
    }
}
