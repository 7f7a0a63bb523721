import Logging
import SluiceCore
import SluicePorts
import SluiceWire

/// The view of a session, built from the client's subscription set and the user's permissions, and rebuilt when either changes.
extension Session {
    /// Builds and bootstraps the view of a new subscription set. A query error fails this version only.
    func subscribe(_ message: PBSubscribe) async throws {
        perform(machine.handle(.requested(version: message.version)))
        let wait = pace.take(at: services.environment.monotonicNanoseconds())
        if wait > 0 {
            logger.debug("A client changes its subscriptions too often, and waits.", metadata: ["version": "\(message.version)"])
            try await services.environment.sleep(nanoseconds: wait)
        }
        // Sets that wait when the connection ends cost nothing.
        guard machine.isOpen, !channel.isClosed else { return }
        let set = try SubscriptionSet(message)
        do {
            let view = try await patientlyBuild(message)
            perform(machine.handle(.accepted(set, view)))
        } catch let error as SluiceError where error.code.isQueryError || error.code == .pluginRefused || error.code.isPluginFailure {
            // The live or pending view continues.
            services.observer.failed(error.code)
            if error.isWithheld {
                // The client's copy of the error omits the cause.
                logger.warning(
                    "A subscription set was rejected.", metadata: ["version": "\(set.version)", "error": .string(error.description)])
            }
            let index = ViewBuilder.firstRejected(of: message, services.authority.current(), error)
            send(SessionMessages.queryError(version: set.version, error, index: index))
        }
    }

    /// Stops sending the live view, because the user may have lost permissions. Keeps the position still to be reported.
    func silence() async {
        guard let subscriber, let awaited = await services.fanout.remove(subscriber) else { return }
        machine.deferAnnouncement(of: AwaitedPosition(lsn: awaited, isCommit: false))
    }

    /// Builds the view of a set under the current permissions. Repeats if they change meanwhile.
    func build(_ set: PBSubscribe) async throws -> View {
        try await learn(set)
        while true {
            let known = machine.rules.answers
            let builder = ViewBuilder(
                services: services, user: user?.user, permissions: boundPermissions(), clientTypes: clientTypes, channel: channel)
            let view = try await builder.build(set)
            if known == machine.rules.answers { return view }
            try Task.checkCancellation()
        }
    }

    /// Makes the fields of a set queryable, in development mode only, and asks the rules again if fields were added.
    private func learn(_ set: PBSubscribe) async throws {
        var schema = services.authority.current()
        guard schema.isDevelopment, let user = user?.user else { return }
        let fields = try ViewBuilder.unqueryable(set, schema)
        if !fields.isEmpty { schema = try await services.authority.makeQueryable(fields) }
        // Another session may have added them.
        guard schema.fields != machine.rules.planned else { return }
        let plan = try await services.rules.openSession(user: user, types: clientTypes.map(\.name))
        self.user?.user.functions = plan.functions
        machine.planned(plan, for: schema.fields)
    }

    /// Watches the objects that determine the members of a view. A change between building the view and this call counts as a change.
    private func watch(_ view: View) async {
        let old = watch
        watch = nil
        if !view.watched.isEmpty {
            let channel = MemberWatch { [weak self] in
                // Unstructured because: the delivery of commits must not wait for the session; it ends with the session's next step.
                Task { await self?.membersChanged() }
            }
            let watched = View(version: view.version, types: view.watched, partitions: [])
            watch = (await services.fanout.add(channel, view: watched, staged: false), channel)
            // Mark it stale at once, since a change before the subscription may have been missed.
            channel.send([])
        }
        // Remove the old watcher last, so that no change passes unobserved.
        if let old { await services.fanout.remove(old.id) }
    }

    /// `true` if a change may have affected the members of the view, and no search has read since.
    var isStale: Bool { watch?.channel.isStale == true }

    /// Starts a search for the view's members if one is due.
    func membersChanged() { perform(machine.handle(.membersChanged(isStale: isStale))) }

    /// Reports the end of a task. The machine starts the next one: another view, or a search if the members have changed meanwhile.
    private func endWork(_ number: UInt64, _ outcome: WorkOutcome) {
        // A finished task would keep its memory alive.
        tasks.work = nil
        perform(machine.handle(.workEnded(number: number, outcome, isStale: isStale)))
    }

    /// Makes a view live.
    func bootstrap(_ view: View, _ number: UInt64) async {
        await watch(view)
        endWork(number, await run(view, number).map { .bootstrapFailed($0) } ?? .done)
    }

    /// Rebuilds the view if its members may have changed, and makes it live if they have.
    func search(_ number: UInt64) async {
        do {
            endWork(number, try await findMembers(number))
        } catch is CancellationError {
            // The search has no result, so nothing is recorded.
            endWork(number, .done)
        } catch {
            endWork(number, .searchFailed(error))
        }
    }

    private func findMembers(_ number: UInt64) async throws -> WorkOutcome {
        guard !Task.isCancelled, machine.isOpen, let watch, watch.channel.isStale else { return .done }
        try await services.environment.sleep(nanoseconds: MemberWatch.pause * 1_000_000)
        // Clear the flag before reading: a change during the search sets it again.
        guard watch.channel.take() else { return .done }
        let reading = machine.beginReading()
        let next = try await build(machine.views.subscriptions.message)
        try Task.checkCancellation()
        if machine.found(next, isWatchClosed: watch.channel.isClosed) {
            await self.watch(next)
            if let error = await run(next, number) { return .bootstrapFailed(error) }
        }
        return Task.isCancelled ? .done : .searched(reading)
    }

    /// Resumes or bootstraps a view and makes it live. On failure the previous view stays in force for writes.
    /// - Returns: the error that must end the session; nil if the view is live, or the connection is gone.
    private func run(_ view: View, _ number: UInt64) async -> SluiceError? {
        do {
            try await services.feed.require(view.partitions)
        } catch {
            return SluiceError(error, otherwise: .logUnreachable, "The partitions of the view cannot be read.")
        }
        do {
            // Also if a newer version was requested meanwhile: this one is live until then.
            let id = try await subscribe(to: view, number)
            let released = machine.views.live.partitions
            subscriber = id
            perform(machine.handle(.live(number: number, view)))
            // From here on the client may receive positions.
            if let position = machine.takeDeferred() { await announce(position) }
            count(subscriptions: machine.views.subscriptions.message.queries.count)
            // Release the old partitions after acquiring the new ones, so that shared ones are read without a gap.
            await services.feed.release(released)
            return nil
        } catch {
            perform(machine.handle(.bootstrapFailed(number: number)))
            await services.feed.release(view.partitions)
            // Another view replaces a cancelled bootstrap, so its error does not concern the client.
            guard !Task.isCancelled, !channel.isClosed else { return nil }
            return SluiceError(error, otherwise: .internalError, "A bootstrap failed.")
        }
    }

    /// Resumes a view from the log, or bootstraps it.
    /// - Returns: the new live subscriber.
    private func subscribe(to view: View, _ number: UInt64) async throws -> Fanout.Handle {
        // A reader in this process drops the rows of a bootstrap that ends early, so none continues from them.
        let progress = channel.isLocal ? BootstrapProgress() : replica.progress
        let runner = BootstrapRunner(
            authority: services.authority, snapshots: services.snapshots, fanout: services.fanout, frames: services.frames,
            environment: services.environment, channel: channel, sealer: services.sealer,
            client: BootstrapRunner.Client(
                id: file?.id ?? .server, user: user?.user.id ?? "", progress: progress,
                pending: machine.views.subscriptions.pending, taken: { await self.machine.uploads.told }))
        if let id = try await resume(view, number, runner) { return id }
        services.observer.bootstrapBegan()
        let begin = services.environment.monotonicNanoseconds()
        let live = machine.views.live
        // With the same set and rules, an object that is no longer among the first has left the query.
        let before = view.version == live.version && view.ruling == live.ruling ? live : nil
        let (id, held, rows) = try await runner.run(view, replacing: subscriber, held: replica.held, changing: before) {
            self.perform(self.machine.handle(.ending(number: number, view)))
        }
        services.observer.bootstrapped(rows: rows, nanoseconds: services.environment.monotonicNanoseconds() - begin)
        replica.held = held
        replica.seen.add(held.point, at: await services.fanout.watermark)
        return id
    }
}
