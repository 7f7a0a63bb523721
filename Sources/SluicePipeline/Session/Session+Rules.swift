import Logging
import SluiceCore
import SluiceQuery
import SluiceWire

/// What a session does when the rules or its user's data change, and while a plugin that should tell does not answer.
///
/// A session is never ended for a plugin's failure. While it does not know what its user may, it is *in doubt*: nothing is sent of
/// its view, and what the client asks for waits. What is on the device stays there: it was allowed when it was sent.
extension Session {
    /// Takes up what the rules and the user's data say now: the session goes on, and the client gets what it makes of its view
    /// as a difference (PERM-3). Where they say what they said before, nothing happens.
    /// - Parameter id: the user whose data changed; nil: the rules did.
    package func reconsider(user id: String?) async {
        guard state.phase == .open, let user = user?.user, id == nil || id == user.id else { return }
        reviews += 1
        await services.reviews.pass { await self.takeUp(newData: id != nil) }
    }

    private func takeUp(newData: Bool) async {
        // Who is in doubt asks again anyway.
        guard state.phase == .open, doubt == nil else { return }
        do {
            let next = try await ask(withNewData: newData)
            // A look at the members may have had no answer meanwhile. Who is in doubt then decides, and asks later than this did.
            guard doubt == nil, let next else { return }
            guard !next.selectsSame(as: target) || next.writable != target.writable else {
                // What comes of the members later on comes under these rules.
                if next.selectsSame(as: view) { view.ruling = next.ruling }
                return
            }
            logger.info("What the user may see has changed.", metadata: ["version": "\(set.version)"])
            await stopSending()
            if doubt == nil { await bring(next) }
        } catch let error as SluiceError where error.code.isPluginFailure {
            beInDoubt(error)
        } catch {
            if doubt == nil { refuse(error) }
        }
    }

    /// Asks once for a session in doubt, which stays so when there is no answer, or one to what is not the question any more.
    private func resolve() async {
        let (asked, version) = (reviews, set.version)
        do {
            let next = try await ask(withNewData: true)
            guard reviews == asked, set.version == version else { return }
            doubt = nil
            if let next { await bring(next) }
        } catch let error as SluiceError where error.code.isPluginFailure {
            return
        } catch {
            guard reviews == asked, set.version == version else { return }
            doubt = nil
            refuse(error)
        }
    }

    /// The rules' answer leaves no view.
    private func refuse(_ error: any Error) {
        guard let error = error as? SluiceError else {
            return fail(SluiceError(.resync, "The new rules could not be asked.", detail: "\(error)"))
        }
        guard error.code.isQueryError else { return fail(error) }
        fail(SluiceError(.resync, "The subscriptions do not fit the new rules: \(error.message)", detail: error.detail))
    }

    /// What the user may now, and the view that comes of it; nil when nothing has been subscribed to.
    private func ask(withNewData: Bool) async throws -> View? {
        guard let user = user?.user else { return nil }
        let now = withNewData ? try await services.authenticator.user(id: user.id) : user
        let queryable = services.authority.current().fields
        do {
            plan = try await services.rules.openSession(user: now, types: clientTypes.map(\.name))
        } catch let error as SluiceError where error.code == .pluginRefused {
            // That is an answer: the user may do nothing.
            logger.info("The rules deny the user everything.", metadata: ["reason": .string(error.operatorText)])
            plan = SessionPlan(types: [:])
        }
        planned = queryable
        self.user?.user = now
        if set.version == 0 { return nil }
        do { return try await build(set) } catch let error as SluiceError where error.code == .pluginRefused {
            logger.info("The rules refuse the subscriptions.", metadata: ["reason": .string(error.operatorText)])
            return try nothing()
        }
    }

    /// A view of the same types in which there is nothing.
    private func nothing() throws -> View {
        let types = try target.types.map { type in
            let never = try Query.parse("FALSEPREDICATE").bind(to: type.predicate.type)
            return TypeView(
                type: type.type, predicate: never, mask: type.mask, form: type.form, asked: type.asked ?? type.predicate)
        }
        return View(version: set.version, types: types, partitions: [])
    }

    /// Asks again until there is an answer, one task for a session.
    func beInDoubt(_ error: SluiceError) {
        guard doubt == nil else { return }
        logger.warning("A session waits for its rules.", metadata: ["error": .string(error.description)])
        // Unstructured because: the client's other messages are read meanwhile; it ends with an answer, or with the session.
        doubt = Task {
            await self.stopSending()
            await self.askAgain()
        }
    }

    /// Sends nothing of the view that is live or under way.
    private func stopSending() async {
        guard set.version > 0 else { return }
        await silence()
        await endBootstrap()
        // A bootstrap may have come to its end meanwhile.
        await silence()
    }

    /// Asks with growing pauses until there is an answer.
    private func askAgain() async {
        var pause = Doubt.firstPause
        while doubt != nil {
            let asked = reviews
            let slept = (try? await services.environment.sleep(nanoseconds: pause)) != nil
            guard slept, !Task.isCancelled, state.phase == .open, !channel.isClosed else {
                // What waited is not judged by rules that may be over.
                state.close()
                return doubt = nil
            }
            // Somebody changed something meanwhile, which may be what was wrong.
            pause = reviews == asked ? min(pause * 2, Doubt.longestPause) : Doubt.firstPause
            await services.reviews.pass { await self.resolve() }
        }
    }

    /// Returns when the session knows what its user may.
    func settleDoubt() async {
        while let doubt { await doubt.value }
    }

    /// Builds a view; a plugin that does not answer is asked again for a while.
    func patientlyBuild(_ set: PBSubscribe) async throws -> View {
        try await patiently(after: { $0.isPluginFailure }) { try await build(set) }
    }

    /// What a user may who says hello; while there is no plugin to ask, it is tried again for a while.
    func patientlyOpen(_ user: UserContext, _ types: [String]) async throws -> SessionPlan {
        try await patiently(after: { $0 == .pluginUnavailable }) { try await services.rules.openSession(user: user, types: types) }
    }

    private func patiently<R>(after isWorthIt: (ErrorCode) -> Bool, _ body: () async throws -> R) async throws -> R {
        let deadline = services.environment.monotonicNanoseconds() + Doubt.patience
        var pause = Doubt.firstPause
        while true {
            do { return try await body() } catch let error as SluiceError where isWorthIt(error.code) {
                guard services.environment.monotonicNanoseconds() + pause < deadline, state.phase == .open, !channel.isClosed else {
                    throw error
                }
                try await services.environment.sleep(nanoseconds: pause)
                pause = min(pause * 2, Doubt.longestPause)
            }
        }
    }
}

/// How a session asks a plugin again that gave no answer.
enum Doubt {
    static let firstPause: UInt64 = 100_000_000
    static let longestPause: UInt64 = 5_000_000_000
    /// For how long a subscription set, or the opening of a session, is tried before it fails.
    static let patience: UInt64 = 10_000_000_000
    /// When a client whose session failed over it is to come back at the earliest.
    static let backoffMilliseconds: UInt32 = 2_000
}
