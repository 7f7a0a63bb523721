package import SluiceCore

/// The calls of one plugin and the life of its host, as a pure state machine: what happens comes in as methods with the
/// time, what is to be done goes out as actions.
///
/// The host works on calls one at a time in the order they were sent. So when it dies, the oldest unanswered call is the
/// one that killed it: that call fails, the others are sent again to the host that replaces it. A call that keeps on
/// killing hosts is refused for a while. When no host lives long enough to answer anything, nobody waits for the next one.
package struct HostedCalls {
    package struct Call {
        package var id: UInt64
        package var hook: Hook
        package var input: [UInt8]
        /// When its caller stops waiting, nanoseconds.
        package var expires: UInt64
        package var budget: CallBudget

        package init(id: UInt64, hook: Hook, input: [UInt8], expires: UInt64, budget: CallBudget) {
            self.id = id
            self.hook = hook
            self.input = input
            self.expires = expires
            self.budget = budget
        }
    }

    package enum Action {
        case start
        case send(HostedMessage)
        case finish(id: UInt64, Result<HookAnswer, SluiceError>)
        /// End the host and report `hostEnded`.
        case kill
        /// Look at the host's thread and report `looked`.
        case look
    }

    package enum Phase: Hashable {
        /// The process is being started and the library loaded.
        case starting(since: UInt64)
        /// The library is loaded and is given the configuration of its predecessor.
        case configuring(since: UInt64)
        case ready
        /// Waiting to be started again.
        case down(until: UInt64)
        case stopped
    }

    /// A call that was sent. Its caller may have stopped waiting, the host will answer it all the same.
    private struct Sent {
        var call: Call
        var isAbandoned = false
    }

    package let plugin: String
    package let startBudget: UInt64
    /// Whether a host that hangs can be ended; the one inside the gateway cannot.
    package let isReplaceable: Bool

    package private(set) var phase: Phase = .down(until: 0)
    package private(set) var info: PluginInfo?
    /// Input of the last accepted `configure`, given again to a new host.
    private var configuration: [UInt8]?
    private var waiting: [Call] = []
    private var sent: [Sent] = []
    private var bytesInFlight = 0
    private var headSince: UInt64 = 0
    /// Of the oldest unanswered call.
    private var sleep = SleepWatch()
    /// Hooks that the present host has been called with.
    private var warm: Set<Hook> = []
    /// Why the host is to be killed, when we decided it.
    private var verdict: SluiceError?
    package private(set) var lastError: SluiceError?
    private var failures = 0
    private var poison = PoisonList()

    package init(plugin: String, startBudget: UInt64, isReplaceable: Bool) {
        self.plugin = plugin
        self.startBudget = startBudget
        self.isReplaceable = isReplaceable
    }

    // MARK: Events

    /// A caller wants an answer.
    package mutating func submit(_ call: Call, now: UInt64) -> [Action] {
        if phase == .stopped { return [.finish(id: call.id, .failure(stoppedError))] }
        if isOpen { return [.finish(id: call.id, .failure(waitedError(call)))] }
        waiting.append(call)
        return pump(now: now)
    }

    /// The host process runs and can be spoken to.
    package mutating func hostStarted(path: String, now: UInt64) -> [Action] {
        phase = .starting(since: now)
        verdict = nil
        warm = []
        return [.send(.call(id: 0, hook: .load, deadline: now &+ startBudget, processor: .max, input: Array(path.utf8)))]
    }

    package mutating func received(id: UInt64, _ answer: HookAnswer, now: UInt64) -> [Action] {
        switch phase {
        case _ where id != 0: return answered(id: id, answer, now: now)
        case .starting: return loaded(answer, now: now)
        case .configuring where answer.status == .ok: return ready(now: now)
        case .configuring where answer.status == .late: return kill(startError)
        case .configuring where answer.status == .unusable: return kill(SluiceError(hostedBytes: answer.bytes))
        case .configuring:
            return kill(SluiceError(.pluginRefused, "\(plugin) refused its configuration: \(answer.text)"))
        default: return []
        }
    }

    /// The host sent something that is no message.
    package mutating func receivedGarbage(_ error: SluiceError) -> [Action] { kill(error) }

    /// The host has ended, by itself or because it was killed.
    /// - Parameter overran: whether it was its processor time that ended it.
    package mutating func hostEnded(_ how: String, overran: Bool = false, now: UInt64) -> [Action] {
        guard phase != .stopped else { return [] }
        let killedFor = verdict ?? (overran ? sent.first.map { overrunError($0.call) } : nil)
        verdict = nil
        let error = killedFor ?? SluiceError(.pluginCrashed, "\(plugin) ended its host process: \(how)")
        lastError = error
        failures += 1
        // A plugin that never ran is not tried again: `start` has failed.
        let first: UInt64 = info == nil ? PluginLimits.restartNanoseconds : 0
        let delay = failures <= 1 ? first : min(100_000_000 << UInt64(min(failures - 2, 20)), PluginLimits.restartNanoseconds)
        phase = .down(until: now &+ delay)
        let unanswered = sent
        sent.removeAll()
        sleep.end()
        bytesInFlight = 0
        guard let head = unanswered.first else { return refuseWaiting() + tick(now: now) }
        poison.strike(head.call, now: now)
        waiting.insert(contentsOf: unanswered.dropFirst().filter { !$0.isAbandoned }.map(\.call), at: 0)
        return (head.isAbandoned ? [] : [.finish(id: head.call.id, .failure(error))]) + refuseWaiting() + tick(now: now)
    }

    /// Whether calls are refused at once, as with a circuit breaker: hosts keep on ending, and none works at the moment.
    package var isOpen: Bool { failures >= PluginLimits.failuresInRow && phase != .ready }

    /// As operators are told of it.
    package var standing: PluginStanding.State {
        if phase == .ready { return .running }
        return isOpen ? .out : info == nil ? .starting : .restarting
    }

    private mutating func refuseWaiting() -> [Action] {
        guard isOpen else { return [] }
        defer { waiting.removeAll() }
        return waiting.map { .finish(id: $0.id, .failure(waitedError($0))) }
    }

    /// The host could not even be started.
    package mutating func startFailed(_ error: SluiceError, now: UInt64) -> [Action] {
        verdict = error
        return hostEnded("it did not start", now: now)
    }

    /// Time has passed: to be called at `nextWake`.
    package mutating func tick(now: UInt64) -> [Action] {
        var actions = expire(now: now)
        switch phase {
        case .down(let until) where until <= now:
            phase = .starting(since: now)
            actions.append(.start)
        case .starting(let since) where since &+ startBudget <= now, .configuring(let since) where since &+ startBudget <= now:
            actions += kill(startError)
        case .ready:
            guard isReplaceable, let head = sent.first else { break }
            if headIsOver(now: now) {
                actions += kill(timeoutError(head.call))
            } else if let due = sleep.due, due <= now {
                actions.append(.look)
            }
        default: break
        }
        return actions
    }

    /// The host's thread has been looked at.
    /// - Parameter use: nil when it cannot be told, or the thread may be waiting for us.
    package mutating func looked(_ use: ThreadUse?, now: UInt64) -> [Action] {
        guard phase == .ready, let head = sent.first, sleep.look(use, now: now) else { return [] }
        return kill(sleptError(head.call))
    }

    /// The host's thread may have waited for us: for the answer to a question, or the rest of a call.
    package mutating func hostWaited() { sleep.interrupt() }

    package mutating func stop() -> [Action] {
        phase = .stopped
        sleep.end()
        let calls = sent.filter { !$0.isAbandoned }.map(\.call) + waiting
        sent.removeAll()
        waiting.removeAll()
        return calls.map { .finish(id: $0.id, .failure(stoppedError)) }
    }

    /// When `tick` is due; nil when only events matter.
    package var nextWake: UInt64? {
        var wake: UInt64?
        func include(_ time: UInt64) { wake = min(wake ?? time, time) }
        for sent in sent where !sent.isAbandoned { include(sent.call.expires) }
        for call in waiting { include(call.expires) }
        switch phase {
        case .down(let until): include(until)
        case .starting(let since), .configuring(let since): include(since &+ startBudget)
        case .ready:
            if let head = sent.first, isReplaceable || !head.isAbandoned { include(headSince &+ head.call.budget.work) }
            if isReplaceable, let due = sleep.due { include(due) }
        case .stopped: return nil
        }
        return wake
    }

    // MARK: Steps

    private mutating func kill(_ error: SluiceError) -> [Action] {
        guard verdict == nil else { return [] }
        verdict = error
        return [.kill]
    }

    private mutating func loaded(_ answer: HookAnswer, now: UInt64) -> [Action] {
        guard answer.status == .ok else { return kill(SluiceError(hostedBytes: answer.bytes)) }
        do {
            let info = try PluginInfo(try JSON.parse(answer.bytes))
            guard max(info.name.utf8.count, info.version.utf8.count) <= PluginLimits.nameBytes else {
                return kill(
                    SluiceError(
                        .pluginRefused, "\(plugin) has a name or a version of more than \(PluginLimits.nameBytes) bytes",
                        fix: "Call it something shorter."))
            }
            self.info = info
            guard let configuration, info.hooks.contains(.configure) else { return ready(now: now) }
            phase = .configuring(since: now)
            return [.send(.call(id: 0, hook: .configure, deadline: now &+ startBudget, processor: .max, input: configuration))]
        } catch { return kill(error) }
    }

    private mutating func ready(now: UInt64) -> [Action] {
        phase = .ready
        return pump(now: now)
    }

    private mutating func answered(id: UInt64, _ answer: HookAnswer, now: UInt64) -> [Action] {
        guard let head = sent.first, head.call.id == id else {
            // Answers come in order: another one means that the stream cannot be trusted.
            return kill(HostedProtocol.malformed("an answer to a call whose turn it was not"))
        }
        sent.removeFirst()
        bytesInFlight -= head.call.input.count
        headChanged(now: now)
        failures = 0
        if head.call.hook == .configure, answer.status == .ok { configuration = head.call.input }
        let result: Result<HookAnswer, SluiceError> =
            switch answer.status {
            case .late: .failure(waitedError(head.call))
            case .overrun: .failure(overrunError(head.call))
            case .ok, .denied, .failed, .unusable: .success(answer)
            }
        return (head.isAbandoned ? [] : [.finish(id: id, result)]) + pump(now: now)
    }

    /// Sends what may be sent.
    private mutating func pump(now: UInt64) -> [Action] {
        guard phase == .ready, verdict == nil else { return [] }
        var actions: [Action] = []
        while let call = waiting.first, sent.count < PluginLimits.callsInFlight,
            sent.isEmpty || bytesInFlight + call.input.count <= PluginLimits.bytesInFlight
        {
            waiting.removeFirst()
            if poison.refuses(call, now: now) {
                actions.append(.finish(id: call.id, .failure(poisonError(call))))
                continue
            }
            bytesInFlight += call.input.count
            sent.append(Sent(call: call))
            if sent.count == 1 { headChanged(now: now) }
            actions.append(
                .send(
                    .call(
                        id: call.id, hook: call.hook, deadline: call.expires, processor: call.budget.processor, input: call.input)))
        }
        return actions
    }

    private mutating func headChanged(now: UInt64) {
        headSince = now
        guard let call = sent.first?.call, call.budget.processor < .max else { return sleep.end() }
        let first = warm.insert(call.hook).inserted
        sleep.begin(first ? call.budget.processor &+ PluginLimits.firstCallNanoseconds : call.budget.processor, now: now)
    }

    private func headIsOver(now: UInt64) -> Bool {
        guard phase == .ready, let head = sent.first else { return false }
        return headSince &+ head.call.budget.work <= now
    }

    private mutating func expire(now: UInt64) -> [Action] {
        var actions: [Action] = []
        for index in sent.indices where !sent[index].isAbandoned {
            let hangs = index == 0 && headIsOver(now: now)
            // The call that hangs fails when its host has been ended, if that can be.
            guard hangs ? !isReplaceable : sent[index].call.expires <= now else { continue }
            sent[index].isAbandoned = true
            let error = hangs ? timeoutError(sent[index].call) : waitedError(sent[index].call)
            actions.append(.finish(id: sent[index].call.id, .failure(error)))
        }
        for call in waiting where call.expires <= now { actions.append(.finish(id: call.id, .failure(waitedError(call)))) }
        waiting.removeAll { $0.expires <= now }
        return actions
    }

    // MARK: Errors

    private var stoppedError: SluiceError { SluiceError(.pluginUnavailable, "\(plugin) has been stopped") }

    private var startError: SluiceError { SluiceError(.pluginTimeout, "\(plugin) did not start within \(startBudget / 1_000_000) ms") }

    private func poisonError(_ call: Call) -> SluiceError {
        SluiceError(
            .pluginCrashed, "\(plugin): this very call of \(call.hook.name) has ended the plugin's host before; it is refused for a while")
    }

    private func timeoutError(_ call: Call) -> SluiceError {
        SluiceError(.pluginTimeout, "\(plugin) did not answer \(call.hook.name) within \(call.budget.work / 1_000_000) ms")
    }

    private func overrunError(_ call: Call) -> SluiceError {
        let milliseconds = call.budget.processor / 1_000_000
        return SluiceError(.pluginTimeout, "\(plugin) used more than \(milliseconds) ms of processor time for \(call.hook.name)")
    }

    private func sleptError(_ call: Call) -> SluiceError {
        let milliseconds = call.budget.processor / 1_000_000
        return SluiceError(.pluginTimeout, "\(plugin) slept for more than \(milliseconds) ms in \(call.hook.name)")
    }

    private func waitedError(_ call: Call) -> SluiceError {
        if phase == .ready {
            let milliseconds = call.budget.patience / 1_000_000
            return SluiceError(.pluginUnavailable, "\(plugin) did not come to \(call.hook.name) within \(milliseconds) ms")
        }
        let reason = lastError.map { ": \($0.message)" } ?? ""
        return SluiceError(.pluginUnavailable, "\(plugin) is not running\(reason)")
    }
}
