import Logging
import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceWire

/// The reaction of a session to changed rules or user data, and to a plugin that does not answer.
///
/// A plugin's failure never ends an open session. While the permissions are unavailable, the session sends nothing of its view, and
/// requests of the client wait. Objects on the device stay there, because they were allowed when sent.
extension Session {
    /// Re-evaluates the rules for this session. If the permissions changed, the client receives the difference of its view.
    /// - Parameter id: The user with new data; nil if the rules changed.
    package func reconsider(user id: String?) async {
        guard machine.isOpen, let user = user?.user, id == nil || id == user.id else { return }
        perform(machine.handle(.rulesChanged))
        await services.reviews.pass { await self.review(newData: id != nil) }
    }

    private func review(newData: Bool) async {
        // A session without permissions asks again by itself.
        guard machine.isOpen, !machine.isAsking else { return }
        do {
            guard var next = try await ask(withNewData: newData), machine.review(next) else { return }
            logger.info(
                "The permissions of a user have changed.", metadata: ["version": "\(machine.views.subscriptions.version)"])
            // Stop first: nothing may be sent under the old permissions while the new view is built.
            await stopSending()
            // Loop: the client may have sent another set meanwhile, whose view is stopped too.
            while next.version != machine.views.subscriptions.version {
                guard let newer = try await ask(withNewData: newData) else { return }
                next = newer
            }
            perform(machine.handle(.replace(next)))
        } catch let error as SluiceError where error.code.isPluginFailure {
            perform(machine.handle(.rulesFailed(error)))
        } catch {
            perform(machine.handle(.rulesRefused(error)))
        }
    }

    /// Asks once for a session without permissions. The machine ignores the answer if the question has changed meanwhile.
    private func askOnce() async {
        let question = machine.rules.question
        do {
            let next = try await ask(withNewData: true)
            perform(machine.handle(.answered(question: question, next)))
        } catch let error as SluiceError where error.code.isPluginFailure {
            return
        } catch {
            perform(machine.handle(.answerRefused(question: question, error)))
        }
    }

    /// Asks for the current permissions and the view under them; nil without subscriptions.
    private func ask(withNewData: Bool) async throws -> View? {
        guard let user else { return nil }
        var now = withNewData ? try await services.authenticator.current(user) : user.user
        let queryable = services.authority.current().fields
        do {
            let plan = try await services.rules.openSession(user: now, types: clientTypes.map(\.name))
            now.functions = plan.functions
            machine.planned(plan, for: queryable)
        } catch let error as SluiceError where error.code == .pluginRefused {
            // This is an answer: the user has no permissions.
            logger.info("The rules grant the user no permissions.", metadata: ["reason": .string(error.operatorText)])
            machine.planned(SessionPlan(types: [:]), for: queryable)
        }
        self.user?.user = now
        let set = machine.views.subscriptions.message
        if set.version == 0 { return nil }
        do { return try await build(set) } catch let error as SluiceError where error.code == .pluginRefused {
            logger.info("The rules reject the subscriptions.", metadata: ["reason": .string(error.operatorText)])
            return nothing()
        }
    }

    /// Returns the permissions, bound to the current schema.
    func boundPermissions() -> SessionPermissions { machine.permissions(for: services.authority.current()) }

    /// Returns a view of the same classes that matches no object.
    private func nothing() -> View {
        let types = machine.views.target.types.map { type in
            TypeView(
                type: type.type, predicate: .false(type.predicate.type), mask: type.mask, form: type.form,
                asked: type.asked ?? type.predicate)
        }
        return View(version: machine.views.subscriptions.version, types: types, partitions: [])
    }

    /// Stops sending and asks the rules again until an answer arrives.
    func askRules(_ number: UInt64, after error: SluiceError) {
        logger.warning("A session waits for its permissions.", metadata: ["error": .string(error.description)])
        // Unstructured because: the client's other messages are read meanwhile; it ends with an answer, or with the session.
        tasks.asking = Task {
            await self.stopSending()
            await self.askAgain(number)
            // A finished task would keep its memory alive.
            if !machine.isAsking { tasks.asking = nil }
        }
    }

    /// Stops the live view and ends its task.
    private func stopSending() async {
        guard machine.views.subscriptions.version > 0 else { return }
        await silence()
        // Loop: another task may begin while this call awaits the first.
        while machine.views.isWorking {
            perform(machine.handle(.stop))
            await tasks.work?.value
        }
        // A bootstrap may have ended meanwhile and left a live subscriber.
        await silence()
    }

    /// Asks with a growing back-off until an answer arrives.
    private func askAgain(_ number: UInt64) async {
        var pause = RulesBackoff.firstPause
        while machine.rules.availability == .unavailable(number) {
            let asked = machine.rules.question
            let slept = (try? await services.environment.sleep(nanoseconds: pause)) != nil
            guard slept, !Task.isCancelled, machine.isOpen, !channel.isClosed else {
                return perform(machine.handle(.askingEnded(number: number)))
            }
            // A change meanwhile may have fixed the cause, so retry soon.
            pause = machine.rules.question == asked ? min(pause * 2, RulesBackoff.longestPause) : RulesBackoff.firstPause
            await services.reviews.pass { await self.askOnce() }
        }
    }

    /// Waits until the session's permissions are known.
    func rulesAvailable() async {
        while machine.isAsking, let asking = tasks.asking { await asking.value }
    }

    /// Builds a view. Retries a plugin that does not answer until `RulesBackoff.patience`.
    func patientlyBuild(_ set: PBSubscribe) async throws -> View {
        try await patiently(after: { $0.isPluginFailure }) { try await build(set) }
    }

    /// Returns the permissions of a user who opens a session. Retries until `RulesBackoff.patience` while no plugin is available.
    func patientlyOpen(_ user: UserContext, _ types: [String]) async throws -> SessionPlan {
        try await patiently(after: { $0 == .pluginUnavailable }) { try await services.rules.openSession(user: user, types: types) }
    }

    private func patiently<R>(after isWorthIt: (ErrorCode) -> Bool, _ body: () async throws -> R) async throws -> R {
        let deadline = services.environment.monotonicNanoseconds() + RulesBackoff.patience
        var pause = RulesBackoff.firstPause
        while true {
            do { return try await body() } catch let error as SluiceError where isWorthIt(error.code) {
                guard services.environment.monotonicNanoseconds() + pause < deadline, machine.isOpen, !channel.isClosed else {
                    throw error
                }
                try await services.environment.sleep(nanoseconds: pause)
                pause = min(pause * 2, RulesBackoff.longestPause)
            }
        }
    }
}

/// The back-off for asking a plugin again.
enum RulesBackoff {
    /// The first pause, in nanoseconds.
    static let firstPause: UInt64 = 100_000_000
    /// The longest pause, in nanoseconds.
    static let longestPause: UInt64 = 5_000_000_000
    /// The time after which a subscription set or the opening of a session fails, in nanoseconds.
    static let patience: UInt64 = 10_000_000_000
    /// The earliest time at which a client returns after such a failure, in milliseconds.
    static let backoffMilliseconds: UInt32 = 2_000
}
