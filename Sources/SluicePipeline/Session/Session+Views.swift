import Logging
import SluiceCore
import SluicePorts
import SluiceWire

/// The view of a session, built from the client's subscription set and the user's permissions, and rebuilt when either changes.
extension Session {
    /// Builds and bootstraps the view of a new subscription set. A query error fails this version only.
    func subscribe(_ set: PBSubscribe) async throws {
        try state.request(set.version)
        let pending = try PendingObjects(set)
        do {
            let view = try await patientlyBuild(set)
            self.set = set
            self.pending = pending
            // A member search for the previous set may have failed meanwhile. The end of that doubt then bootstraps the new set.
            if doubt == nil { await bring(view) }
        } catch let error as SluiceError where error.code.isQueryError || error.code == .pluginRefused || error.code.isPluginFailure {
            // The live or pending view continues.
            services.observer.failed(error.code)
            if error.code.isInternal || error.detail != nil {
                // The client's copy of the error omits the cause.
                logger.warning(
                    "A subscription set was rejected.", metadata: ["version": "\(set.version)", "error": .string(error.description)])
            }
            send(SessionMessages.queryError(version: set.version, error))
        }
    }

    /// Stops sending the live view, because the user may have lost permissions. Keeps the position still to be reported.
    func silence() async {
        guard let subscriber, let wanted = await services.fanout.remove(subscriber) else { return }
        unannounced = (max(wanted, unannounced?.lsn ?? .zero), false)
    }

    /// Bootstraps a view in place of the live or pending one. Of several concurrent calls, the last one wins.
    func bring(_ view: View) async {
        brings += 1
        let number = brings
        // Cancel and await the old bootstrap: two must never replace the same subscriber.
        await endBootstrap()
        // A later call has taken over.
        guard number == brings, state.phase == .open else { return }
        isBuilding = true
        target = view
        // Unstructured because: uploads continue beside it; it is cancelled by the next one or the close, and awaited there.
        bootstrap = Task {
            await self.watch(view)
            await self.run(view)
            await self.follow()
        }
    }

    /// Cancels the bootstrap and waits until none is running.
    func endBootstrap() async {
        // Loop: another bootstrap may begin while this call awaits the first.
        while isBuilding {
            bootstrap?.cancel()
            await bootstrap?.value
        }
    }

    func build(_ set: PBSubscribe) async throws -> View {
        try await learn(set)
        let permissions = boundPermissions()
        return try await ViewBuilder(services: services, user: user?.user, permissions: permissions, clientTypes: clientTypes).build(set)
    }

    /// Makes the fields of a set queryable, in development mode only, and asks the rules again if fields were added.
    private func learn(_ set: PBSubscribe) async throws {
        var schema = services.authority.current()
        guard schema.isDevelopment, let user = user?.user else { return }
        let fields = try ViewBuilder.unqueryable(set, schema)
        if !fields.isEmpty { schema = try await services.authority.makeQueryable(fields) }
        // Another session may have added them.
        guard schema.fields != planned else { return }
        plan = try await services.rules.openSession(user: user, types: clientTypes.map(\.name))
        planned = schema.fields
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

    /// Starts a search for the view's members if one is due and no bootstrap is running.
    func membersChanged() {
        guard !isBuilding, doubt == nil, state.phase == .open, watch?.channel.isStale == true else { return }
        isBuilding = true
        bootstrap = Task { await self.follow() }  // Unstructured because: as in `bring`.
    }

    /// Rebuilds the view after a change of its members, and checks again afterwards.
    private func follow() async {
        await look()
        isBuilding = false
        // A finished task would keep its memory alive.
        bootstrap = nil
        // A caller that cancels this task starts another view, or none.
        if !Task.isCancelled { membersChanged() }
    }

    /// Rebuilds the view if its members may have changed, and bootstraps it if they have.
    private func look() async {
        guard !Task.isCancelled, state.phase == .open, let watch, watch.channel.isStale else { return }
        do {
            try await services.environment.sleep(nanoseconds: MemberWatch.pause * 1_000_000)
            // Clear the flag before reading: a change during the search sets it again.
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
            // The search has no result, so nothing is recorded.
        } catch let error as SluiceError where error.code.isPluginFailure {
            markRulesUnavailable(error)
        } catch {
            fail(SluiceError(.resync, "The objects of the subscriptions cannot be found again.", detail: "\(error)"))
        }
    }

    /// Builds the view under the current permissions. Repeats if they change meanwhile.
    private func buildAnew() async throws -> View {
        while true {
            let known = plans
            let next = try await build(set)
            try Task.checkCancellation()
            if known == plans { return next }
        }
    }

    /// Resumes or bootstraps a view and makes it live. On failure the previous view stays in force for writes.
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
            // Also if a newer version was requested meanwhile: this one is live until then.
            if let id = try await resume(view, runner) {
                subscriber = id
            } else {
                services.observer.bootstrapBegan()
                let begin = services.environment.monotonicNanoseconds()
                // With the same set and rules, an object that is no longer among the first has left the query.
                let before = view.version == self.view.version && view.ruling == self.view.ruling ? self.view : nil
                let (id, held, rows) = try await runner.run(view, replacing: subscriber, held: held, changing: before) {
                    self.writable = view
                }
                services.observer.bootstrapped(rows: rows, nanoseconds: services.environment.monotonicNanoseconds() - begin)
                self.held = held
                seen.add(held.point, at: await services.fanout.watermark)
                subscriber = id
            }
            // From here on the client may receive positions.
            isInStep = true
            if let (lsn, isCommit) = unannounced {
                unannounced = nil
                await announce(lsn, isCommit: isCommit)
            }
            state.complete(view.version)
            count(subscriptions: set.queries.count)
            // Release the old partitions after acquiring the new ones, so that shared ones are read without a gap.
            await services.feed.release(self.view.partitions)
            self.view = view
        } catch {
            // The new view has not become live.
            writable = self.view
            await services.feed.release(view.partitions)
            // Another view replaces a cancelled bootstrap, so its error does not concern the client.
            guard !Task.isCancelled, !channel.isClosed else { return }
            fail(error as? SluiceError ?? SluiceError(.internalError, "A bootstrap failed.", detail: "\(error)"))
        }
    }
}
