import Logging
import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceWire

/// The reaction of a session to changed rules or user data, and to a plugin that does not answer.
///
/// A plugin's failure never ends an open session. While the permissions are unknown, the session is in *doubt*: it sends nothing of its
/// view, and requests of the client wait. Objects on the device stay there, because they were allowed when sent.
extension Session {
    /// Re-evaluates the rules for this session. If the permissions changed, the client receives the difference of its view.
    /// - Parameter id: The user with new data; nil if the rules changed.
    package func reconsider(user id: String?) async {
        guard state.phase == .open, let user = user?.user, id == nil || id == user.id else { return }
        reviews += 1
        await services.reviews.pass { await self.takeUp(newData: id != nil) }
    }

    private func takeUp(newData: Bool) async {
        // A session in doubt asks again by itself.
        guard state.phase == .open, doubt == nil else { return }
        do {
            let next = try await ask(withNewData: newData)
            // A member search may have failed meanwhile. The session is in doubt then and asks again later.
            guard doubt == nil, let next else { return }
            guard !next.selectsSame(as: target) || next.writable != target.writable else {
                // Later members are found under these rules.
                if next.selectsSame(as: view) { view.ruling = next.ruling }
                return
            }
            logger.info("The permissions of a user have changed.", metadata: ["version": "\(set.version)"])
            // Stop first: nothing may be sent under the old permissions while the new view is built.
            await stopSending()
            if doubt == nil { await bring(next) }
        } catch let error as SluiceError where error.code.isPluginFailure {
            markRulesUnavailable(error)
        } catch {
            if doubt == nil { refuse(error) }
        }
    }

    /// Asks once for a session in doubt. The doubt remains if no plugin answers, or if the question has changed meanwhile.
    private func resolve() async {
        // An answer to an older question must not end the doubt: it may predate the newest rules.
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

    /// Handles an answer of the rules that allows no view.
    private func refuse(_ error: any Error) {
        guard let error = SluiceError(of: error) else {
            return fail(SluiceError(.resync, "The new rules gave no answer.", cause: ErrorCause(error)))
        }
        guard error.code.isQueryError else { return fail(error) }
        let message = "The subscriptions do not fit the new rules: \(error.message)"
        fail(SluiceError(.resync, message, value: error.value, cause: error.cause))
    }

    /// Asks for the current permissions and the view under them; nil without subscriptions.
    private func ask(withNewData: Bool) async throws -> View? {
        guard let user = user?.user else { return nil }
        let now = withNewData ? try await services.authenticator.user(id: user.id) : user
        let queryable = services.authority.current().fields
        do {
            plan = try await services.rules.openSession(user: now, types: clientTypes.map(\.name))
        } catch let error as SluiceError where error.code == .pluginRefused {
            // This is an answer: the user has no permissions.
            logger.info("The rules grant the user no permissions.", metadata: ["reason": .string(error.operatorText)])
            plan = SessionPlan(types: [:])
        }
        planned = queryable
        self.user?.user = now
        if set.version == 0 { return nil }
        do { return try await build(set) } catch let error as SluiceError where error.code == .pluginRefused {
            logger.info("The rules reject the subscriptions.", metadata: ["reason": .string(error.operatorText)])
            return nothing()
        }
    }

    /// Returns the permissions, bound to the current schema.
    func boundPermissions() -> SessionPermissions {
        let schema = services.authority.current()
        // In development mode, the queryable fields change while the classes stay.
        if var known = bound, known.schema.schema == schema.schema {
            known.schema = schema
            return known
        }
        let permissions = SessionPermissions(plan, schema: schema)
        bound = permissions
        return permissions
    }

    /// Returns a view of the same classes that matches no object.
    private func nothing() -> View {
        let types = target.types.map { type in
            TypeView(
                type: type.type, predicate: .false(type.predicate.type), mask: type.mask, form: type.form,
                asked: type.asked ?? type.predicate)
        }
        return View(version: set.version, types: types, partitions: [])
    }

    /// Puts the session in doubt: stops sending and asks again until an answer arrives. One task a session.
    func markRulesUnavailable(_ error: SluiceError) {
        guard doubt == nil else { return }
        logger.warning("A session waits for its permissions.", metadata: ["error": .string(error.description)])
        // Unstructured because: the client's other messages are read meanwhile; it ends with an answer, or with the session.
        doubt = Task {
            await self.stopSending()
            await self.askAgain()
        }
    }

    /// Stops the live view and cancels its bootstrap.
    private func stopSending() async {
        guard set.version > 0 else { return }
        await silence()
        await endBootstrap()
        // A bootstrap may have ended meanwhile and left a live subscriber.
        await silence()
    }

    /// Asks with a growing back-off until an answer arrives.
    private func askAgain() async {
        var pause = Doubt.firstPause
        while doubt != nil {
            let asked = reviews
            let slept = (try? await services.environment.sleep(nanoseconds: pause)) != nil
            guard slept, !Task.isCancelled, state.phase == .open, !channel.isClosed else {
                // Waiting requests must not be judged by outdated rules.
                state.close()
                return doubt = nil
            }
            // A change meanwhile may have fixed the cause, so retry soon.
            pause = reviews == asked ? min(pause * 2, Doubt.longestPause) : Doubt.firstPause
            await services.reviews.pass { await self.resolve() }
        }
    }

    /// Waits until the session's permissions are known.
    func markRulesAvailable() async {
        while let doubt { await doubt.value }
    }

    /// Builds a view. Retries a plugin that does not answer until `Doubt.patience`.
    func patientlyBuild(_ set: PBSubscribe) async throws -> View {
        try await patiently(after: { $0.isPluginFailure }) { try await build(set) }
    }

    /// Returns the permissions of a user who opens a session. Retries until `Doubt.patience` while no plugin is available.
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

/// The back-off for asking a plugin again.
enum Doubt {
    /// The first pause, in nanoseconds.
    static let firstPause: UInt64 = 100_000_000
    /// The longest pause, in nanoseconds.
    static let longestPause: UInt64 = 5_000_000_000
    /// The time after which a subscription set or the opening of a session fails, in nanoseconds.
    static let patience: UInt64 = 10_000_000_000
    /// The earliest time at which a client returns after such a failure, in milliseconds.
    static let backoffMilliseconds: UInt32 = 2_000
}
