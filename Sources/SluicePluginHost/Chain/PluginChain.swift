package import Logging
package import SluiceCore
package import SluicePorts
package import SluiceValues
import Synchronization

/// The rule plugins of an app, in order. The gateway asks them before it permits reads or writes.
///
/// A plugin that runs functions of the app has a second host for them. A function may take seconds, and no session waits for it there.
///
/// Each plugin with a hook is asked in turn. A plugin can only narrow the permissions of earlier ones, and a denial or failure is the
/// chain's. Every call has a deadline and ends in an answer or a named error.
///
/// Cost: a single call wakes three threads, one after another, beside the plugin's own work; concurrent calls hardly any. Safe to use
/// from concurrent tasks.
package final class PluginChain: Sendable {
    private struct Link: Sendable {
        let host: PluginHostProcess
        let info: PluginInfo
        /// The host of its functions; nil if no function of the app has it as a target.
        var functions: PluginHostProcess?
    }

    private struct State {
        var links: [Link] = []
        /// The app that every plugin accepted last.
        var app: JSON?
    }

    private let hosts: [PluginHostProcess]
    /// The names of the plugins that functions of the app have as targets.
    private let functionPlugins: Set<String>
    private let hostExecutable: String
    private let logger: Logger
    private let state = Mutex(State())

    private let observer: PluginObserver
    private let services: HostServices
    /// Returns once the records are stored.
    private let keep: @Sendable ([PluginRecord]) async throws(SluiceError) -> Void

    /// - Parameters:
    ///   - functionPlugins: The names of the plugins that functions of the app have as targets.
    ///   - hostExecutable: The path of the program `sluice-plugin-host`; unused for plugins in process.
    package init(
        plugins: [PluginSpec], functionPlugins: Set<String> = [], hostExecutable: String, logger: Logger,
        observer: PluginObserver = PluginObserver(),
        services: HostServices = .none,
        keep: @escaping @Sendable ([PluginRecord]) async throws(SluiceError) -> Void = PluginRecord.nowhere
    ) {
        self.functionPlugins = functionPlugins
        self.hostExecutable = hostExecutable
        self.keep = keep
        self.services = services
        self.logger = logger
        self.observer = observer
        hosts = plugins.map {
            PluginHostProcess(spec: $0, executable: hostExecutable, logger: logger, observer: observer, services: services)
        }
    }

    /// The identities of the loaded plugins, in order; empty before `start`.
    package var plugins: [PluginInfo] { state.withLock { $0.links.map(\.info) } }

    /// The loaded plugins with their hosts.
    var loaded: [(host: PluginHostProcess, functions: PluginHostProcess?, info: PluginInfo)] {
        state.withLock { $0.links.map { ($0.host, $0.functions, $0.info) } }
    }

    /// The status of each plugin, in order. The host of its functions follows.
    package var standings: [PluginHealth] {
        let links = loaded
        return hosts.indices.flatMap { index -> [PluginHealth] in
            guard index < links.count else { return [hosts[index].standing(nil)] }
            var standings = [hosts[index].standing(links[index].info)]
            if var functions = links[index].functions?.standing(links[index].info) {
                functions.isForFunctions = true
                standings.append(functions)
            }
            return standings
        }
    }

    /// Loads all plugins and checks their configurations against their declarations. Call it once; `configure` must follow.
    /// - Throws: `pluginMissing`, `pluginABIMismatch`, `pluginRefused`, `pluginTimeout`, `pluginCrashed` or `pluginUnavailable`, with the
    ///   file; `configUnknownKey`, `configInvalid` or `configMissing`, with the line. The chain is then stopped.
    package func start() async throws(SluiceError) {
        var links: [Link] = []
        for host in hosts {
            do {
                let info = try await host.start()
                try host.spec.checkConfig(info)
                report(info, of: host)
                var link = Link(host: host, info: info)
                // The first plugin of a name runs its functions.
                let isTarget = functionPlugins.contains(info.name) && !links.contains { $0.info.name == info.name }
                if info.runsFunctions, isTarget { link.functions = try makeFunctionHost(host.spec) }
                // Before the start: `stop` ends it, whatever happens.
                links.append(link)
                state.withLock { $0.links = links }
                _ = try await link.functions?.start()
            } catch {
                await stop()
                throw error
            }
        }
    }

    private func makeFunctionHost(_ spec: PluginSpec) throws(SluiceError) -> PluginHostProcess {
        var spec = spec
        // A second instance in one process needs variables of its own.
        if spec.mode == .inProcess { spec.image = try spec.image?.copied(path: spec.path) }
        // One call at a time is sent, so that a call with priority waits for one other call at most.
        return PluginHostProcess(
            spec: spec, executable: hostExecutable, logger: logger, observer: observer, services: services, callsInFlight: 1)
    }

    /// Logs a loaded plugin. Always logs the missing parts of its sandbox as warnings.
    private func report(_ info: PluginInfo, of host: PluginHostProcess) {
        let plugin: Logger.Metadata = ["plugin": .string(info.name), "version": .string(info.version), "file": .string(host.spec.path)]
        logger.info("A plugin is loaded.", metadata: plugin)
        for part in info.missing { logger.warning("\(Self.statement(missing: part))", metadata: plugin) }
    }

    /// Returns the consequence of a part that a plugin's sandbox lacks (`PluginInfo.missing`).
    package static func statement(missing part: String) -> String {
        switch part {
        case "process": "A plugin runs inside the gateway and can use the gateway's memory, files and network."
        case "seccomp": "The kernel has no seccomp filter: a plugin's process can use the network and start processes."
        case "landlock": "The kernel has no Landlock: a plugin's process can read files while its library is loaded, and none afterwards."
        case "threads": "The kernel asks nobody about new threads (Linux 5.5): a plugin's process can start any number."
        default: "A plugin's process could not give up its privileges."
        }
    }

    /// The number of plugins that lack each part of the sandbox.
    package var missing: [String: Int] {
        state.withLock { state in
            state.links.flatMap(\.info.missing).reduce(into: [:]) { $0[$1, default: 0] += 1 }
        }
    }

    /// Ends all hosts. Calls in flight fail with `pluginUnavailable`.
    package func stop() async {
        for host in hosts + loaded.compactMap(\.functions) { await host.stop() }
    }

    /// Sends the app (`AppDescription.json`) to the plugins, after `start` and after each change of the app directory.
    /// The caller must not call it concurrently.
    /// - Returns: The plugins' warnings, which are also logged.
    /// - Throws: the first plugin's refusal. All plugins then have the app that they accepted last.
    @discardableResult
    package func configure(app: JSON) async throws(SluiceError) -> [String] {
        let links = links(with: .configure)
        var warnings: [String] = []
        for (index, link) in links.enumerated() {
            do { warnings += try await configure(link, app: app) } catch {
                // All or none: the plugins that have accepted the new app get the previous one back.
                if let previous = state.withLock({ $0.app }) {
                    for link in links[...index] { _ = try? await configure(link, app: previous) }
                }
                throw error
            }
        }
        state.withLock { $0.app = app }
        return warnings
    }

    private func configure(_ link: Link, app: JSON) async throws(SluiceError) -> [String] {
        let configuration = AppDescription.configuration(app, for: link.host.spec)
        let answer = try await ask(link, .configure, configuration, budget: link.host.spec.startBudget)
        if let functions = link.functions {
            let answered = try await functions.call(.configure, configuration.utf8, budget: functions.spec.startBudget)
            _ = try HookCoding.warnings(try Answer(answered, plugin: link.info.name, hook: .configure))
        }
        let warnings = try HookCoding.warnings(answer)
        for warning in warnings {
            logger.warning("A plugin warns about the app.", metadata: ["plugin": .string(link.info.name), "text": .string(warning)])
        }
        return warnings
    }

    // MARK: Hooks

    /// Asks for the permissions of a session on the given classes.
    /// - Returns: nil if no plugin has the hook.
    /// - Throws: a denial or failure. The session has no permissions then.
    package func openSession(user: UserContext, types: [String]) async throws(SluiceError) -> SessionPlan? {
        var plan: SessionPlan?
        let input: JSON = ["user": HookCoding.json(user), "types": .array(types.map { .string($0) })]
        for link in links(with: .openSession) {
            let answer = try await ask(link, .openSession, input)
            let answered = try read(link) { () throws(SluiceError) in
                let answered = try HookCoding.sessionPlan(answer, types: types)
                // Permissions that rely on a missing hook would allow every write.
                if !link.info.checksWrites, let type = answered.types.first(where: { $0.value.checkWrite }) {
                    throw answer.bad("types.\(type.key).check_write is set, and the plugin has no check_write")
                }
                return answered
            }
            plan = plan?.intersected(with: answered, isQuery: services.isQuery) ?? answered
        }
        return plan
    }

    /// Asks if a subscription set is acceptable.
    /// - Returns: queries to AND to those of their classes; empty if nothing is narrowed.
    /// - Throws: a refusal with its reason, or a failure. The set is rejected then.
    package func checkSubscription(user: UserContext, queries: [TypeQuery]) async throws(SluiceError) -> [TypeQuery] {
        var narrowed: [TypeQuery] = []
        let input: JSON = ["user": HookCoding.json(user), "queries": .array(queries.map { HookCoding.json($0) })]
        for link in links(with: .checkSubscription) {
            let answer = try await ask(link, .checkSubscription, input)
            narrowed += try read(link) { () throws(SluiceError) in try HookCoding.narrowing(answer, asked: queries) }
        }
        return narrowed
    }

    /// Asks about writes, in parts that fit one call.
    /// A plugin sees earlier plugins' amendments. Writes that one denied are not shown to the next.
    /// - Returns: a verdict for each write. A failure denies all of them; its code and message are for operators.
    package func checkWrites(user: UserContext, writes: [ProposedWrite], schema: Schema) async -> [WriteVerdict] {
        var review = WriteReview(writes: writes)
        for link in links(with: .checkWrite) where !review.undecided.isEmpty {
            let open = review.undecided
            let asked = open.map { review.writes[$0] }
            do throws(SluiceError) {
                for part in WriteReview.parts(of: asked) {
                    let writes = Array(asked[part])
                    let answer = try await ask(link, .checkWrite, RowFrame.encode(user, writes), parts: writes.count)
                    let verdicts = try read(link) { () throws(SluiceError) in
                        try HookCoding.writeVerdicts(answer, writes: writes, schema: schema)
                    }
                    // Records first: an accepted write must never lack its record.
                    try await keepRecords(of: answer)
                    review.apply(verdicts, to: Array(open[part]))
                }
            } catch {
                // Fail closed: writes that earlier plugins allowed are denied too.
                return writes.map { _ in .undecided(error) }
            }
        }
        return review.verdicts
    }

    /// `true` if any plugin decides about asymmetric objects.
    package var judgesIngest: Bool { !links(with: .ingest).isEmpty }

    /// Asks about asymmetric objects of one class. A plugin sees earlier plugins' transformations.
    /// - Returns: a verdict for each object.
    /// - Throws: a failure. No object is decided then, and the caller must retry later.
    package func ingest(_ objects: ObjectRows, schema: Schema) async throws(SluiceError) -> [IngestVerdict] {
        var review = IngestReview(objects: objects)
        for link in links(with: .ingest) where review.goesOn {
            let open = review.undecided
            let answer = try await ask(link, .ingest, RowFrame.encode(review.objects, open), parts: open.count)
            let verdicts = try read(link) { () throws(SluiceError) in
                try HookCoding.ingestVerdicts(answer, count: open.count, type: objects.type, schema: schema)
            }
            try await keepRecords(of: answer)
            review.apply(verdicts, to: open)
        }
        return review.verdicts
    }

    /// Notifies the plugins that a user's data changed. The caller re-evaluates the user's sessions afterwards. Failures are logged.
    package func userChanged(_ user: UserContext) async {
        for link in links(with: .userChanged) {
            do throws(SluiceError) { _ = try await ask(link, .userChanged, ["user": HookCoding.json(user)]) } catch {
                logger.warning("A plugin failed in user_changed.", metadata: ["error": .string(error.description)])
            }
        }
    }

    /// Calls a function of the app in its plugin.
    /// - Throws: As `FunctionPlugins.call`.
    package func call(_ call: PluginFunctionCall) async throws(SluiceError) -> PluginFunctionAnswer {
        let link = state.withLock { $0.links.first { $0.info.name == call.plugin && $0.functions != nil } }
        guard let link, let host = link.functions, link.info.hooks.contains(call.hook) else {
            throw SluiceError(.pluginUnavailable, "The plugin '\(call.plugin)' has no hook \(call.hook.name) in use.")
        }
        let start = monotonicNow()
        host.ledger.noteCall()
        do throws(SluiceError) {
            let answer = try await answer(of: call, host)
            // As for the other hooks, a denial counts as a failure.
            if case .denied(let text) = answer { host.ledger.note(SluiceError(.pluginRefused, text), at: monotonicNow()) }
            observer.called(call.hook, monotonicNow() - start, answer.isDenial)
            return answer
        } catch {
            observer.called(call.hook, monotonicNow() - start, true)
            host.ledger.note(error, at: monotonicNow())
            throw error
        }
    }

    private func answer(of call: PluginFunctionCall, _ host: PluginHostProcess) async throws(SluiceError) -> PluginFunctionAnswer {
        let answered = try await host.call(
            call.hook, HookCoding.json(call).utf8, budget: host.spec.functionBudget(UInt64(call.milliseconds) * 1_000_000),
            identity: HookCoding.json(call.subject).utf8, hasPriority: !call.isFromUser)
        if answered.status == .denied { return .denied(answered.text) }
        guard answered.bytes.count <= call.answerBytes || answered.status != .ok else {
            throw SluiceError(
                .limitsExceeded, "\(call.plugin) answered \(call.hook.name) with \(answered.bytes.count) bytes.",
                fix: "Answer with at most \(call.answerBytes) bytes, or raise answer_bytes in sluice.json.")
        }
        let answer = try Answer(answered, plugin: call.plugin, hook: call.hook)
        return .result(call.hook == .authenticate ? try HookCoding.identity(answer) : answer.json)
    }

    /// Stores the records of an answer. The answer takes effect only afterwards.
    private func keepRecords(of answer: Answer) async throws(SluiceError) {
        let records = try HookCoding.records(answer)
        if !records.isEmpty { try await keep(records) }
    }

    /// Decodes an answer. One in an invalid form counts as a failure of the plugin.
    private func read<R>(_ link: Link, _ body: () throws(SluiceError) -> R) throws(SluiceError) -> R {
        do throws(SluiceError) { return try body() } catch {
            link.host.ledger.note(error, at: monotonicNow())
            throw error
        }
    }

    // Copy the links and release the lock, since calls suspend.
    private func links(with hook: Hook) -> [Link] { state.withLock { $0.links.filter { $0.info.hooks.contains(hook) } } }

    private func ask(
        _ link: Link, _ hook: Hook, _ input: JSON, parts: Int = 1, budget: CallBudget? = nil
    ) async throws(SluiceError) -> Answer {
        try await ask(link, hook, input.utf8, parts: parts, budget: budget)
    }

    private func ask(
        _ link: Link, _ hook: Hook, _ input: [UInt8], parts: Int = 1, budget: CallBudget? = nil
    ) async throws(SluiceError) -> Answer {
        let start = monotonicNow()
        link.host.ledger.noteCall()
        do throws(SluiceError) {
            let answered = try await link.host.call(hook, input, parts: parts, budget: budget)
            let answer = try Answer(answered, plugin: link.info.name, hook: hook)
            observer.called(hook, monotonicNow() - start, false)
            return answer
        } catch {
            observer.called(hook, monotonicNow() - start, true)
            link.host.ledger.note(error, at: monotonicNow())
            throw error
        }
    }
}
