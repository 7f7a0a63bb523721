import Glibc
package import Logging
package import SluiceCore
import SluicePorts
package import SluiceValues

/// The conformance checks of a plugin: all for `sluice plugin check`, a short form before a gateway adopts a plugin.
///
/// Calls have invented users and objects, which a plugin may deny. It must not end its host, be late, answer in another form or decide
/// inconsistently.
package struct PluginConformance: Sendable {
    /// The result of one check.
    package struct Outcome: Hashable, Sendable {
        package var name: String
        /// The fault; nil if the check passed.
        package var failure: String?
        /// Further information about the check.
        package var note = ""
    }

    /// A user that does not exist.
    static let user = UserContext(id: "sluice-conformance-check")
    static let largeBatch = 1_000
    static let manyCalls = 2_000
    /// The maximum memory growth of a host over many calls, in bytes.
    static let growth = 16 << 20

    let info: PluginInfo
    let schema: Schema
    let host: PluginHostProcess
    /// The host of functions; nil if no function has the plugin as a target.
    var functions: PluginHostProcess?

    private func host(of hook: Hook) -> PluginHostProcess? { hook.isForFunctions ? functions : host }

    /// Calls one hook.
    private func call(_ hook: Hook, _ input: JSON, parts: Int = 1) async throws(SluiceError) -> HookAnswer {
        try await host.call(hook, input.utf8, parts: parts)
    }

    // MARK: The short form

    /// Checks every hook of the plugin with usual, unknown and empty input.
    /// - Returns: the results in order, up to and including the first failure.
    func short() async -> [Outcome] { await run(shortProbes) }

    private struct Probe {
        var name: String
        var body: @Sendable () async throws -> String
    }

    private func run(_ probes: [Probe]) async -> [Outcome] {
        var outcomes: [Outcome] = []
        for probe in probes {
            do {
                outcomes.append(Outcome(name: probe.name, failure: nil, note: try await probe.body()))
            } catch {
                let failure = SluiceError(of: error).map { "\($0.code.name): \($0.operatorText)" } ?? "\(error)"
                outcomes.append(Outcome(name: probe.name, failure: failure))
                // The host may have been ended: later failures would be consequences of this one.
                break
            }
        }
        return outcomes
    }

    private var shortProbes: [Probe] {
        var probes: [Probe] = []
        if info.hooks.contains(.openSession) {
            probes.append(Probe(name: "open_session of the app's types") { try await openSession(types) })
            probes.append(
                Probe(name: "open_session of no class and of an unknown class") {
                    _ = try await openSession([])
                    return try await openSession(["NoSuchType"])
                })
        }
        if info.hooks.contains(.checkSubscription) {
            probes.append(
                Probe(name: "check_subscription") {
                    _ = try await checkSubscription([])
                    return try await checkSubscription(types.map { TypeQuery(type: $0, query: "TRUEPREDICATE") })
                })
        }
        if info.hooks.contains(.checkWrite) {
            probes.append(
                Probe(name: "check_write of none, and of an insert, an update and a delete of each type") {
                    _ = try await checkWrites([])
                    return try await checkWrites(writes)
                })
        }
        if info.hooks.contains(.ingest) {
            probes.append(
                Probe(name: "ingest of nothing and of one object of each type") {
                    for type in asymmetric {
                        _ = try await ingest(type, count: 0)
                        _ = try await ingest(type, count: 1)
                    }
                    return ""
                })
        }
        return probes + functionProbes
    }

    // MARK: The whole form

    /// Runs all checks.
    /// - Parameter configuration: The configuration that the plugin has accepted.
    func whole(configuration: JSON, processID: @escaping @Sendable () -> Int32?) async -> [Outcome] {
        var probes = shortProbes
        if info.hooks.contains(.openSession) {
            probes.append(Probe(name: "open_session decides the same twice") { try await repeats(.openSession, openSessionInput(types)) })
        }
        if info.hooks.contains(.checkWrite) {
            probes.append(
                Probe(name: "check_write of \(Self.largeBatch) writes") {
                    guard let write = writes.first else { return "the app has no type" }
                    return try await checkWrites(Array(repeating: write, count: Self.largeBatch))
                })
        }
        if info.hooks.contains(.ingest) {
            probes.append(
                Probe(name: "ingest of \(Self.largeBatch) objects") {
                    for type in asymmetric { _ = try await ingest(type, count: Self.largeBatch) }
                    return ""
                })
        }
        for hook in Hook.allCases where hook != .load && info.hooks.contains(hook) {
            guard let host = host(of: hook) else { continue }
            probes.append(
                Probe(name: "\(hook.name) survives empty input") {
                    // The host validates the form of rows, so only their content can be missing.
                    let nothing = hook.takesRows ? RowFrame.encode(UserContext(id: "", type: ""), []) : JSON.object([]).utf8
                    _ = try await host.call(hook, nothing)
                    // The plugin may have accepted the empty input as its configuration.
                    if hook == .configure { _ = try await call(.configure, configuration) }
                    return ""
                })
        }
        if info.hooks.contains(.configure) {
            probes.append(Probe(name: "configure rejects an invalid configuration") { try await refusesGarbage(configuration) })
            probes.append(Probe(name: "configure once more changes nothing") { try await configuresAgain(configuration) })
        }
        if info.hooks.contains(.userChanged) {
            probes.append(
                Probe(name: "user_changed") {
                    try Self.note(try await call(.userChanged, ["user": HookCoding.json(Self.user)]))
                })
        }
        if info.hooks.contains(.openSession) {
            probes.append(Probe(name: "\(Self.manyCalls) sessions leak nothing") { try await leaksNothing(processID) })
        }
        return await run(probes)
    }

    // MARK: Hooks

    private var types: [String] { schema.types.filter { $0.kind == .topLevel }.map(\.name) }
    private var asymmetric: [ObjectType] { schema.types.filter { $0.kind == .asymmetric } }

    private func openSessionInput(_ types: [String]) -> JSON {
        ["user": HookCoding.json(Self.user), "types": .array(types.map { .string($0) })]
    }

    private func openSession(_ types: [String]) async throws -> String {
        let answer = try await call(.openSession, openSessionInput(types))
        guard answer.status == .ok else { return try Self.note(answer) }
        let plan = try HookCoding.sessionPlan(try Answer(answer, plugin: info.name, hook: .openSession), types: types)
        if !info.checksWrites, let type = plan.types.first(where: { $0.value.checkWrite }) {
            throw SluiceError(.pluginBadAnswer, "types.\(type.key).check_write is set, and the plugin has no check_write")
        }
        return ""
    }

    private func checkSubscription(_ queries: [TypeQuery]) async throws -> String {
        let input: JSON = ["user": HookCoding.json(Self.user), "queries": .array(queries.map { HookCoding.json($0) })]
        let answer = try await call(.checkSubscription, input)
        guard answer.status == .ok else { return try Self.note(answer) }
        _ = try HookCoding.narrowing(try Answer(answer, plugin: info.name, hook: .checkSubscription), asked: queries)
        return ""
    }

    private func checkWrites(_ writes: [ProposedWrite]) async throws -> String {
        let answer = try await host.call(.checkWrite, RowFrame.encode(Self.user, writes), parts: writes.count)
        guard answer.status == .ok else { return try Self.note(answer) }
        _ = try HookCoding.writeVerdicts(try Answer(answer, plugin: info.name, hook: .checkWrite), writes: writes, schema: schema)
        return ""
    }

    private func ingest(_ type: ObjectType, count: Int) async throws -> String {
        let objects = ObjectRows(type: type, values: Array(repeating: Self.values(of: type), count: count))
        let answer = try await host.call(.ingest, RowFrame.encode(objects, Array(0..<count)), parts: count)
        guard answer.status == .ok else { return try Self.note(answer) }
        _ = try HookCoding.ingestVerdicts(try Answer(answer, plugin: info.name, hook: .ingest), count: count, type: type, schema: schema)
        return ""
    }

    /// An insert, an update and a delete of each class, with null in every optional property.
    private var writes: [ProposedWrite] {
        schema.types.filter { $0.kind == .topLevel }.flatMap { type in
            let values = Self.values(of: type)
            return [
                ProposedWrite(type: type, operation: .insert, before: nil, after: values),
                ProposedWrite(type: type, operation: .update, before: values, after: values),
                ProposedWrite(type: type, operation: .delete, before: values, after: nil),
            ]
        }
    }

    private static func values(of type: ObjectType) -> [String: Value] {
        Dictionary(type.properties.map { ($0.name, $0.emptyValue) }, uniquingKeysWith: { first, _ in first })
    }

    /// Returns the note for an answer. A denial is as valid as any other answer.
    private static func note(_ answer: HookAnswer) throws -> String {
        switch answer.status {
        case .ok: ""
        case .denied: "denied: \(answer.text)"
        case .failed: "could not decide: \(answer.text)"
        case .unusable: throw SluiceError(hostedBytes: answer.bytes)
        case .late, .overrun: throw SluiceError(.pluginTimeout, "the call did not begin in time")
        }
    }

    /// The checks of the hooks for functions, with a function and a payload that no app has.
    private var functionProbes: [Probe] {
        guard let functions else { return [] }
        func probe(_ name: String, _ hook: Hook, _ subjects: [PluginFunctionCall.Subject]) -> [Probe] {
            guard info.hooks.contains(hook) else { return [] }
            return [
                Probe(name: name) {
                    var note = ""
                    for subject in subjects {
                        let call = PluginFunctionCall(info.name, subject, id: Self.user.id, milliseconds: 0, answerBytes: 0)
                        let answer = try await functions.call(hook, HookCoding.json(call).utf8)
                        note = try Self.note(answer)
                        guard answer.status == .ok else { continue }
                        let read = try Answer(answer, plugin: info.name, hook: hook)
                        if hook == .authenticate { _ = try HookCoding.identity(read) }
                    }
                    return note
                }
            ]
        }
        return probe(
            "call_function of an unknown function, by a user and by the gateway", .callFunction,
            [
                .function(name: Self.user.id, arguments: [], user: Self.user, runAs: Self.user.id),
                .function(name: Self.user.id, arguments: [], user: nil, runAs: "system"),
            ]) + probe("authenticate of an empty payload", .authenticate, [.login(payload: .object([]))])
    }

    // MARK: Behaviour

    private func repeats(_ hook: Hook, _ input: JSON) async throws -> String {
        let (first, second) = (try await call(hook, input), try await call(hook, input))
        guard first == second else {
            throw SluiceError(.pluginBadAnswer, "the same call was answered in two ways: \(first.text) and \(second.text)")
        }
        return ""
    }

    private func refusesGarbage(_ configuration: JSON) async throws -> String {
        if info.configSchema != nil { return "the gateway checks it by what the plugin declares" }
        var members = configuration.members ?? []
        members.removeAll { $0.key == "config" }
        members.append(JSON.Member("config", ["no-plugin-knows-this-key": [1, "x", .null]]))
        guard try await call(.configure, .object(members)).status == .ok else { return "" }
        _ = try await call(.configure, configuration)
        throw SluiceError(
            .configUnknownKey,
            "an unknown key was accepted: declare the configuration (config_schema), and the gateway rejects it")
    }

    private func configuresAgain(_ configuration: JSON) async throws -> String {
        let before = info.hooks.contains(.openSession) ? try await call(.openSession, openSessionInput(types)) : nil
        let answer = try await call(.configure, configuration)
        guard answer.status == .ok else { throw SluiceError(.pluginRefused, "it was refused the second time: \(answer.text)") }
        let after = info.hooks.contains(.openSession) ? try await call(.openSession, openSessionInput(types)) : nil
        guard before == after else { throw SluiceError(.pluginBadAnswer, "open_session answers something else afterwards") }
        return ""
    }

    private func leaksNothing(_ processID: @Sendable () -> Int32?) async throws -> String {
        func callMany() async throws {
            for _ in 0..<Self.manyCalls { _ = try await call(.openSession, openSessionInput(types)) }
        }
        // Warm up first: caches and lazy initialization are no leak.
        try await callMany()
        guard let before = processID().flatMap(Self.residentBytes) else { return "not measured: it has no process of its own" }
        let start = monotonicNow()
        try await callMany()
        let microseconds = Double(monotonicNow() - start) / 1_000 / Double(Self.manyCalls)
        let grown = (processID().flatMap(Self.residentBytes) ?? before) - before
        guard grown < Self.growth else {
            throw SluiceError(.limitsExceeded, "the host has \(grown >> 10) KiB more after \(Self.manyCalls) calls of open_session")
        }
        return "\(Int(microseconds.rounded())) µs a call, \(max(grown, 0) >> 10) KiB more afterwards"
    }

    private static func residentBytes(_ process: Int32) -> Int? {
        guard let file = unsafe fopen("/proc/\(process)/statm", "re") else { return nil }
        defer { unsafe fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        guard unsafe fgets(&line, Int32(line.count), file) != nil else { return nil }
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * Int(getpagesize()) }
    }
}

extension PluginConformance {
    /// Loads a plugin in a host of its own, configures it and runs all checks. Then compares the decisions of a second host.
    /// - Throws: the reason if it cannot be loaded or configured.
    package static func check(
        _ spec: PluginSpec, app: JSON, schema: Schema, hostExecutable: String, logger: Logger
    ) async throws(SluiceError) -> (info: PluginInfo, outcomes: [Outcome]) {
        let hosts = (0..<3).map { _ in PluginHostProcess(spec: spec, executable: hostExecutable, logger: logger) }
        let result: Result<(PluginInfo, [Outcome]), SluiceError>
        do throws(SluiceError) {
            result = .success(try await check(hosts[0], hosts[1], functions: hosts[2], app: app, schema: schema))
        } catch {
            result = .failure(error)
        }
        for host in hosts { await host.stop() }
        return try result.get()
    }

    private static func check(
        _ host: PluginHostProcess, _ next: PluginHostProcess, functions: PluginHostProcess, app: JSON, schema: Schema
    ) async throws(SluiceError) -> (PluginInfo, [Outcome]) {
        let info = try await host.start()
        try host.spec.checkConfig(info)
        let configuration = AppDescription.configuration(app, for: host.spec)
        var suite = try await configured(host, info, configuration, schema)
        if info.runsFunctions {
            _ = try await functions.start()
            suite.functions = try await configured(functions, info, configuration, schema).host
        }
        var outcomes = await suite.whole(configuration: configuration, processID: { host.processID })
        guard !outcomes.contains(where: { $0.failure != nil }), info.hooks.contains(.openSession) else { return (info, outcomes) }
        _ = try await next.start()
        let again = try await configured(next, info, configuration, schema)
        let types = suite.openSessionInput(suite.types)
        let isSame = try await suite.call(.openSession, types) == (try await again.call(.openSession, types))
        outcomes.append(
            Outcome(name: "another host decides the same", failure: isSame ? nil : "open_session answers something else in a new process"))
        return (info, outcomes)
    }

    private static func configured(
        _ host: PluginHostProcess, _ info: PluginInfo, _ configuration: JSON, _ schema: Schema
    ) async throws(SluiceError) -> PluginConformance {
        if info.hooks.contains(.configure) {
            let answer = try await host.call(.configure, configuration.utf8, budget: host.spec.startBudget)
            _ = try HookCoding.warnings(try Answer(answer, plugin: info.name, hook: .configure))
        }
        return PluginConformance(info: info, schema: schema, host: host)
    }
}

extension PluginChain {
    /// Runs the short checks on every plugin, before it is adopted. Call it after `configure`.
    /// - Throws: `pluginUnfit` with the plugin and its fault.
    package func conform(schema: Schema) async throws(SluiceError) {
        for (host, functions, info) in loaded {
            let suite = PluginConformance(info: info, schema: schema, host: host, functions: functions)
            guard let bad = await suite.short().first(where: { $0.failure != nil }) else { continue }
            throw SluiceError(.pluginUnfit, "\(info.name) fails at \(bad.name): \(bad.failure ?? "")")
        }
    }
}
