import Logging
import SluiceCore
import SluiceWire

/// The view of a session: made of the set that the client asks for and of what its user may, and made anew when either changes.
extension Session {
    func subscribe(_ set: PBSubscribe) async throws {
        try state.request(set.version)
        let pending = try PendingObjects(set)
        do {
            let view = try await patientlyBuild(set)
            self.set = set
            self.pending = pending
            // A look at the members of the set before may have had no answer meanwhile: what ends that doubt brings the new set.
            if doubt == nil { await bring(view) }
        } catch let error as SluiceError where error.code.isQueryError || error.code == .pluginRefused || error.code.isPluginFailure {
            // What was live or under way goes on (QL-8).
            services.observer.failed(error.code)
            if error.code.isInternal || error.detail != nil {
                // The client's copy withholds the cause.
                logger.warning("A subscription set fails.", metadata: ["version": "\(set.version)", "error": .string(error.description)])
            }
            send(SessionMessages.queryError(version: set.version, error))
        }
    }

    /// Sends no more of the view that is live, as the user may not see all of it any more.
    func silence() async {
        guard let subscriber, let wanted = await services.fanout.remove(subscriber) else { return }
        unannounced = (max(wanted, unannounced?.lsn ?? .zero), false)
    }

    /// Bootstraps a view in the place of what is live or under way; of several that wait for its end the one that came last.
    func bring(_ view: View) async {
        brings += 1
        let number = brings
        await endBootstrap()
        guard number == brings, state.phase == .open else { return }
        isBuilding = true
        target = view
        // Unstructured because: uploads go on beside it; it is cancelled by the next one or the close, and awaited there.
        bootstrap = Task {
            await self.watch(view)
            await self.run(view)
            await self.follow()
        }
    }

    /// Returns when no bootstrap is under way any more.
    func endBootstrap() async {
        while isBuilding {
            bootstrap?.cancel()
            await bootstrap?.value
        }
    }

    func build(_ set: PBSubscribe) async throws -> View {
        try await learn(set)
        return try await ViewBuilder(services: services, user: user?.user, plan: plan, clientTypes: clientTypes).build(set)
    }

    /// Development mode: the fields of a query become queryable as it comes (QF-4), in rules as well.
    private func learn(_ set: PBSubscribe) async throws {
        var schema = services.authority.current()
        guard schema.isDevelopment, let user = user?.user else { return }
        let fields = try ViewBuilder.unqueryable(set, schema)
        if !fields.isEmpty { schema = try await services.authority.makeQueryable(fields) }
        // Another session may have brought them.
        guard schema.fields != planned else { return }
        plan = try await services.rules.openSession(user: user, types: clientTypes.map(\.name))
        planned = schema.fields
    }

    /// Watches what decides on the members of a view. What happened between building the view and now is taken to have changed it.
    private func watch(_ view: View) async {
        let old = watch
        watch = nil
        if !view.watched.isEmpty {
            let channel = MemberWatch { [weak self] in
                // Unstructured because: whoever delivers commits does not wait for the session; it ends with the session's next step.
                Task { await self?.membersChanged() }
            }
            let watched = View(version: view.version, types: view.watched, partitions: [])
            watch = (await services.fanout.add(channel, view: watched, staged: false), channel)
            channel.send([])
        }
        if let old { await services.fanout.remove(old.id) }
    }

    func membersChanged() {
        guard !isBuilding, doubt == nil, state.phase == .open, watch?.channel.isStale == true else { return }
        isBuilding = true
        // Unstructured because: as in `subscribe`.
        bootstrap = Task { await self.follow() }
    }

    /// Builds the view anew when something has changed that decides on its members, and has that done again if it has by then.
    private func follow() async {
        await look()
        isBuilding = false
        // A task that is over keeps its memory for as long as somebody has it.
        bootstrap = nil
        // Whoever cancels brings another view, or none.
        if !Task.isCancelled { membersChanged() }
    }

    private func look() async {
        guard !Task.isCancelled, state.phase == .open, let watch, watch.channel.isStale else { return }
        do {
            try await services.environment.sleep(nanoseconds: MemberWatch.pause * 1_000_000)
            guard watch.channel.take() else { return }
            looks.begun += 1
            let number = looks.begun
            let next = try await buildAnew()
            if !next.selectsSame(as: view) || watch.channel.isClosed {
                target = next
                await self.watch(next)
                await run(next)
            }
            looks.over = number
        } catch is CancellationError {
            // Nothing was found, and nothing is said of it.
        } catch let error as SluiceError where error.code.isPluginFailure {
            beInDoubt(error)
        } catch {
            fail(SluiceError(.resync, "The objects of the subscriptions cannot be found again.", detail: "\(error)"))
        }
    }

    /// The view of what the user may when it is built: the rules may have been taken up anew meanwhile.
    private func buildAnew() async throws -> View {
        while true {
            let known = plans
            let next = try await build(set)
            try Task.checkCancellation()
            if known == plans { return next }
        }
    }

    private func run(_ view: View) async {
        do {
            try await services.feed.require(view.partitions)
        } catch {
            fail(error as? SluiceError ?? SluiceError(.logUnreachable, "The partitions of the view cannot be read.", detail: "\(error)"))
            return
        }
        do {
            let runner = BootstrapRunner(
                authority: services.authority, snapshots: services.snapshots, fanout: services.fanout, frames: services.frames,
                environment: services.environment, channel: channel, client: file?.id ?? .server,
                user: user?.user.id ?? "", sealer: services.sealer, progress: progress, pending: pending,
                taken: { await self.told })
            // Also when a newer version has been asked for meanwhile: this one is what is live until then.
            if let id = try await resume(view, runner) {
                subscriber = id
            } else {
                services.observer.bootstrapBegan()
                let begin = services.environment.monotonicNanoseconds()
                // The same question under the same rules: what is not among the first any more has left the query.
                let before = view.version == self.view.version && view.ruling == self.view.ruling ? self.view : nil
                let (id, held, rows) = try await runner.run(view, replacing: subscriber, held: held, changing: before) {
                    self.writable = view
                }
                services.observer.bootstrapped(rows: rows, nanoseconds: services.environment.monotonicNanoseconds() - begin)
                self.held = held
                seen.add(held.point, at: await services.fanout.watermark)
                subscriber = id
            }
            isInStep = true
            if let (lsn, isCommit) = unannounced {
                unannounced = nil
                await announce(lsn, isCommit: isCommit)
            }
            state.complete(view.version)
            count(subscriptions: set.queries.count)
            await services.feed.release(self.view.partitions)
            self.view = view
        } catch {
            writable = self.view
            await services.feed.release(view.partitions)
            guard !Task.isCancelled, !channel.isClosed else { return }
            fail(error as? SluiceError ?? SluiceError(.internalError, "A bootstrap failed.", detail: "\(error)"))
        }
    }
}
