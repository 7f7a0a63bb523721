import DequeModule
import Logging
import SluiceCore
import SluicePorts

// The files and views of the sessions.
extension RealmConnection {
    /// A session in which a file is allotted or opened. A class, as each access to a structure in the map would copy its references.
    final class FileSession {
        /// Changesets of uploads that take effect together. Beyond: the rest follows, as the wait for an upload has a deadline.
        static let joinedChangesets = 1_000

        /// Present from the opening on.
        var file: RealmFileSession?
        var view: (any RealmClientView)?
        /// Hands the events of the views to the machine.
        let delivery = EventDelivery()
        /// `true` once events reach the machine.
        var isDelivering = false
        /// Events that the views have yielded, and that must wait for something.
        var held: Deque<RealmViewEvent> = []
        /// Counts the server version up to which the machine has every entry.
        var reached = AwaitedCount()
        /// Counts the server version up to which uploads need no other entry before their acknowledgement.
        var settled = AwaitedCount()
        /// Counts the client version up to which the machine knows that uploads took effect.
        var acknowledged = AwaitedCount()
        /// Uploads to apply, each with the number of its turn among the views. The machine bounds their bytes.
        var uploads: Deque<(message: RealmUploadMessage, turn: UInt64)> = []
        /// The number of the last turn, and of its changesets.
        var turn: UInt64 = 0
        var turnChangesets = 0
        /// `true` if a view was ordered after the last turn.
        var hasNewView = false
        var isIntegrating = false
        /// The numbers of uploads without changesets that came, and that were answered. They take effect at once.
        var confirmations = (come: UInt64(0), answered: UInt64(0))
        /// The progress of the last one.
        var confirmed = RealmUploadProgress()
        var isConfirming = false
        /// The newest mark. The client needs no answer to older ones.
        var mark: UInt64?
        var isCatchingUp = false
        /// The number of the view's events, and of the parts of bootstraps among them.
        var events: UInt64 = 0
        var parts: UInt64 = 0
        /// `true` while the views wait for a client to read.
        var isDraining = false
        /// The query version of a view whose next part is awaited.
        var building: UInt64?
        /// The task that ends the session unless the part comes.
        var deadline: UInt64?

        /// Adds an upload to those that wait. They take effect together, unless a view was ordered between them.
        func add(_ upload: RealmUploadMessage) {
            if uploads.isEmpty || hasNewView || turnChangesets + upload.entries.count > Self.joinedChangesets {
                view?.expectUpload()
                turn += 1
                (turnChangesets, hasNewView) = (0, false)
            }
            turnChangesets += upload.entries.count
            uploads.append((upload, turn))
        }

        /// Takes the confirmations up to one, so that they are answered.
        /// - Returns: Their number.
        func takeConfirmations(upTo number: UInt64) -> Int {
            let count = number > confirmations.answered ? number - confirmations.answered : 0
            confirmations.answered += count
            return Int(clamping: count)
        }

        /// Records that the machine has every entry up to a version.
        func reach(_ version: UInt64) {
            settled.reach(version)
            reached.reach(version)
        }
    }

    // MARK: Waits

    /// Returns the result of `body`, or throws `timeout` after the time. `body` must end soon after its task is cancelled.
    /// - Parameter id: The session whose bootstraps begin the time again with each part; nil for none.
    func within<Result: Sendable>(
        _ milliseconds: Int, of id: RealmSessionID? = nil, _ step: String, _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let environment = services.environment
        return try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                var seen: UInt64?
                repeat {
                    seen = await self.count(\.parts, of: id)
                    try await environment.sleep(nanoseconds: UInt64(max(milliseconds, 0)) * 1_000_000)
                } while await self.hasProgress(\.parts, of: id, since: seen)
                return nil
            }
            defer { group.cancelAll() }
            guard let first = try await group.next(), let result = first else { throw Self.timeout(step, milliseconds) }
            return result
        }
    }

    private func count(_ events: KeyPath<FileSession, UInt64>, of id: RealmSessionID?) -> UInt64? {
        id.flatMap { sessions[$0]?[keyPath: events] }
    }

    /// Returns `true` if the views of a session have yielded events, or wait for the client to read. The socket limits that time.
    private func hasProgress(_ events: KeyPath<FileSession, UInt64>, of id: RealmSessionID?, since seen: UInt64?) -> Bool {
        guard let session = id.flatMap({ sessions[$0] }), let seen else { return false }
        return session[keyPath: events] != seen || session.isDraining
    }

    private static func timeout(_ step: String, _ milliseconds: Int) -> SluiceError {
        SluiceError(.timeout, "\(step) took longer than \(milliseconds) ms.", fix: "Check the load of the database and of the gateway.")
    }

    /// Waits until a count of a session reaches `value`. Returns if the session is over.
    /// - Throws: `timeout` if it does not and the view yields no event for the time.
    func wait(
        for count: ReferenceWritableKeyPath<FileSession, AwaitedCount>, until value: UInt64, of id: RealmSessionID, _ milliseconds: Int,
        _ step: String
    ) async throws {
        guard let event = sessions[id]?[keyPath: count].event(services.environment) else { return }
        while event.count < value {
            let seen = self.count(\.events, of: id)
            await event.wait(until: value, milliseconds: milliseconds)
            try Task.checkCancellation()
            guard event.count < value else { return }
            // A long bootstrap is no stall: each of its parts begins the time again.
            guard hasProgress(\.events, of: id, since: seen) else { throw Self.timeout(step, milliseconds) }
        }
    }

    /// Ends a session because of an error.
    func fail(_ id: RealmSessionID, _ error: any Error) async {
        // The tasks of a session that is over end with any error.
        guard sessions[id] != nil, !machine.isClosed else { return }
        await submit(failure(of: id, error))
    }

    /// The input for an error of a port.
    func failure(of id: RealmSessionID, _ error: any Error) -> RealmConnectionInput {
        let known =
            switch error {
            case let error as SluiceError: error
            case is CancellationError: SluiceError(.shuttingDown, "The gateway is stopping.")
            default: SluiceError(.internalError, "A session could not continue.", cause: ErrorCause(error))
            }
        // The code would reset the client, which has done nothing wrong: another connection has its file.
        if known.code == .resync { return .replaced(id) }
        logger.log(
            level: known.isWithheld ? .warning : .info, "A session ends with an error.",
            metadata: ["code": "\(known.code.rawValue)", "reason": "\(known.operatorText)"])
        return .failed(id, known)
    }

    // MARK: Files

    func allot(_ id: RealmSessionID) async {
        let (store, user) = (services.store, user)
        do {
            let file = try await within(services.waits.allot, "Registering a file") { try await store.allot(user: user) }
            await submit(.allotted(id, file))
        } catch {
            await fail(id, error)
        }
    }

    /// Opens a file. From then on the events of its views reach the machine when they come.
    func open(_ id: RealmSessionID, _ ident: RealmIdent) async {
        do {
            let (state, newest) = try await within(services.waits.open, "Opening file \(ident.file.ident)") {
                try await self.load(id, ident)
            }
            await submit(.opened(id, state, newest: newest))
            guard let session = sessions[id] else { return }
            session.isDelivering = true
            session.delivery.task.start { await self.deliver(id) }
            session.delivery.task.ask()
        } catch {
            await fail(id, error)
        }
    }

    private func load(_ id: RealmSessionID, _ ident: RealmIdent) async throws -> (RealmClientState, UInt64) {
        let store = services.store
        var stored = try await store.open(ident.file, user: user)
        try Task.checkCancellation()
        let session = stored.session
        let client = RealmViewClient(user: user, stored: stored, cursor: ident.download.serverVersion)
        guard let delivery = sessions[id]?.delivery else { throw CancellationError() }
        let view = try await services.views.open(client, for: self, wake: wake(id, delivery)) {
            try await store.keep(replica: $0, ofView: $1, of: session)
        }
        // Changesets may have taken effect before a crash that lost their progress.
        stored.record.upload.clientVersion = max(stored.record.upload.clientVersion, view.clientVersion)
        let stream = ClientStream(stored, bounds: services.bounds)
        // Registered at once: if the time is over, the end of the session closes it.
        guard sessions[id] != nil else {
            view.close()
            throw CancellationError()
        }
        sessions[id]?.file = session
        sessions[id]?.view = view
        services.observer.sessions(1)
        sessions[id]?.reach(stream.lastVersion)
        sessions[id]?.acknowledged.reach(stored.record.upload.clientVersion)
        if let model = services.models.take(stored) { return (RealmClientState(stream: stream, model: model), view.newest) }
        var model = ClientModel()
        if stored.record.view != nil {
            for object in try await view.heldObjects() { model.restore(object) }
        }
        return (RealmClientState(stream: stream, model: model), view.newest)
    }

    // MARK: Views

    func build(_ request: RealmViewRequest, for id: RealmSessionID) {
        guard let view = sessions[id]?.view else { return }
        sessions[id]?.hasNewView = true
        view.build(request)
        awaitPart(of: request.query.version, id)
    }

    /// Begins the deadline of the next part.
    func awaitPart(of version: UInt64, _ id: RealmSessionID) {
        cancel(sessions[id]?.deadline)
        guard sessions[id] != nil else { return }
        let (environment, wait) = (services.environment, services.waits.view)
        sessions[id]?.building = version
        sessions[id]?.deadline = start(id) {
            guard (try? await environment.sleep(nanoseconds: UInt64(max(wait, 0)) * 1_000_000)) != nil, !Task.isCancelled else { return }
            await self.fail(id, Self.timeout("Building the view of query version \(version)", wait))
        }
    }

    /// Ends the deadline of the part that has come.
    func endDeadline(of version: UInt64, _ id: RealmSessionID) {
        guard sessions[id]?.building == version else { return }
        cancel(sessions[id]?.deadline)
        sessions[id]?.building = nil
    }

    /// Waits until the machine knows that the changesets up to a version took effect.
    func untilAcknowledged(_ version: UInt64, _ id: RealmSessionID) async throws {
        try await wait(
            for: \.acknowledged, until: version, of: id, services.waits.integrate, "The upload of version \(version)")
    }
}
