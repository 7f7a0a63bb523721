public import Dispatch
import SluiceReplica

extension Realm {
    /// Whether opening waits for the server.
    public enum OpenBehavior: Sendable {
        case never
        case always
        /// When there is no file yet, or the one that there was has been set aside.
        case once
    }

    /// Opens a Realm for the actor of the caller.
    /// - Parameter downloadBeforeOpen: whether to wait until everything that the subscriptions ask for is here.
    public init(
        configuration: Configuration = .defaultConfiguration, downloadBeforeOpen: OpenBehavior = .never,
        _isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let opened = try Realm.makeCore(configuration, scheduler: .of(_isolation), floats: _isolation == nil)
        core = opened.core
        try await Realm.download(core.file, configuration, downloadBeforeOpen, isNew: opened.isNew)
        core.refresh()
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

    /// Opens a Realm for the actor of the caller; the same as `init`.
    public static func open(
        configuration: Configuration = .defaultConfiguration, _isolation actor: isolated any Actor = #isolation,
        downloadBeforeOpen: OpenBehavior = .never
    ) async throws -> Realm {
        try await Realm(configuration: configuration, downloadBeforeOpen: downloadBeforeOpen, _isolation: actor)
    }

    private static func refresh(_ core: Confined<RealmCore>, on actor: isolated any Actor) { core.content.refresh() }

    /// Waits until the file has what the server has for its subscriptions.
    private static func download(
        _ file: OpenFile, _ configuration: Configuration, _ behavior: OpenBehavior, isNew: Bool
    ) async throws {
        guard let session = file.session, behavior == .always || behavior == .once && isNew else { return }
        let isImpatient = configuration.syncConfiguration?.cancelAsyncOpenOnNonFatalErrors == true
        try await session.events.unlessEnded(isImpatient: isImpatient) { try await session.wait(for: .download) }
        let latest = try await file.replica.latestSubscriptionSet()
        try await file.waitForSubscriptionSet(latest.version, isImpatient: isImpatient)
    }

    /// Opens a Realm after waiting for the server, and hands it over on a queue.
    @discardableResult
    public static func asyncOpen(
        configuration: Configuration = .defaultConfiguration, callbackQueue: DispatchQueue = .main,
        callback: @escaping (Result<Realm, any Swift.Error>) -> Void
    ) -> AsyncOpenTask {
        let callback = Confined(callback)
        let progress = OpeningProgress()
        // Unstructured because: the caller has no task; it ends with the download, or by `cancel`.
        let task = _Concurrency.Task {
            do {
                let file = try Error.naming(configuration) {
                    let (file, isNew) = try OpenFile.of(configuration)
                    let core = try RealmCore(configuration: configuration, file: file, scheduler: .none, floats: false)
                    try file.runInitialSubscriptions(configuration, core: core, isFirstOpen: isNew)
                    return file
                }
                let token = file.session?.addProgressNotification(for: .download, mode: .reportIndefinitely) { step in
                    // A whole that is only whole when the file is open.
                    progress.reached(min(0.99, step.progressEstimate))
                }
                file.start()
                try await download(file, configuration, .always, isNew: true)
                token?.invalidate()
                progress.reached(1)
                if _Concurrency.Task.isCancelled { return }
                callbackQueue.async {
                    // The file is kept open across the hop.
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

    /// An opening under way.
    public struct AsyncOpenTask: Sendable {
        let task: _Concurrency.Task<Void, Never>
        let progress: OpeningProgress
        /// Gives it up; the callback is not called then.
        public func cancel() { task.cancel() }

        /// Calls the block with how far the download is: now, and after each step until everything is here.
        public func addProgressNotification(queue: DispatchQueue = .main, block: @escaping (SyncSession.Progress) -> Void) {
            let block = Confined(block)
            progress.add { step in queue.async { block.content(step) } }
        }
    }
}

extension Scheduler {
    static func of(_ actor: (any Actor)?) -> Scheduler {
        guard let actor else { return .current }
        return actor === MainActor.shared ? .main : .actor(actor)
    }
}
