package import SluiceCore
import SluiceValues

/// The calls of one plugin and the life of its host, as a pure state machine. Methods receive events with the time; actions are the
/// output.
///
/// The host processes calls one at a time, in the order sent. If it dies, the oldest unanswered call is the cause: that call fails, and
/// the others are sent again to the next host. A call that repeatedly kills hosts is quarantined for a while. If no host lives long
/// enough to answer anything, calls fail at once instead of waiting for the next host.
package struct HostedCalls {
    package struct Call {
        package var id: UInt64
        package var hook: Hook
        package var input: [UInt8]
        /// The time at which its caller stops waiting, in monotonic nanoseconds.
        package var expires: UInt64
        package var budget: CallBudget
        /// The part of the input that repetitions of the call share, for their quarantine; nil for all of it.
        package var identity: [UInt8]?
        /// `true` if it precedes the waiting calls without this mark.
        package var hasPriority = false

        package init(id: UInt64, hook: Hook, input: [UInt8], expires: UInt64, budget: CallBudget) {
            self.id = id
            self.hook = hook
            self.input = input
            self.expires = expires
            self.budget = budget
        }
    }

    package enum Action {
        /// Start a host and report `hostStarted` or `startFailed`.
        case start
        case send(HostedMessage)
        case finish(id: UInt64, Result<HookAnswer, SluiceError>)
        /// End the host and report `hostEnded`.
        case kill
        /// Sample the host's thread and report `looked`.
        case look
    }

    package enum Phase: Hashable {
        /// The process starts and loads the library.
        case starting(since: UInt64)
        /// The library is loaded and receives the last accepted configuration.
        case configuring(since: UInt64)
        case ready
        /// Waiting for the next start.
        case down(until: UInt64)
        case stopped
    }

    /// A call that was sent. Its caller may have stopped waiting, but the host answers it nevertheless.
    private struct Sent {
        var call: Call
        var isAbandoned = false
    }

    package let plugin: String
    package let startBudget: UInt64
    /// `true` if a hanging host can be ended. The one inside the gateway cannot.
    package let isReplaceable: Bool
    /// The maximum number of calls sent to the host and not yet answered.
    private let callsInFlight: Int

    package private(set) var phase: Phase = .down(until: 0)
    package private(set) var info: PluginInfo?
    /// The input of the last accepted `configure`, sent again to a new host.
    private var configuration: [UInt8]?
    private var waiting: [Call] = []
    private var sent: [Sent] = []
    private var bytesInFlight = 0
    private var headSince: UInt64 = 0
    /// The sleep of the thread in the oldest unanswered call.
    private var sleep = SleepWatch()
    /// The hooks that the current host has been called with. The first call of each has a larger budget.
    private var warm: Set<Hook> = []
    /// The reason to kill the host, once the gateway has decided to.
    private var verdict: SluiceError?
    package private(set) var lastError: SluiceError?
    private var failures = 0
    private var poison = QuarantinedCalls()

    package init(plugin: String, startBudget: UInt64, isReplaceable: Bool, callsInFlight: Int = PluginLimits.callsInFlight) {
        self.callsInFlight = callsInFlight
        self.plugin = plugin
        self.startBudget = startBudget
        self.isReplaceable = isReplaceable
    }

    // MARK: Events

    /// Adds a call. It is sent, waits for its turn, or fails at once.
    package mutating func submit(_ call: Call, now: UInt64) -> [Action] {
        if phase == .stopped { return [.finish(id: call.id, .failure(stoppedError))] }
        if isOpen { return [.finish(id: call.id, .failure(waitedError(call)))] }
        let place = call.hasPriority ? waiting.firstIndex { !$0.hasPriority } : nil
        waiting.insert(call, at: place ?? waiting.endIndex)
        return pump(now: now)
    }

    /// Records that a new host can receive messages, and makes it load the library.
    package mutating func hostStarted(path: String, now: UInt64) -> [Action] {
        phase = .starting(since: now)
        verdict = nil
        warm = []
        return [.send(.call(id: 0, hook: .load, deadline: now &+ startBudget, processor: .max, input: Array(path.utf8)))]
    }

    /// Handles an answer of the host. Identifier 0 belongs to loading and configuring.
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

    /// Handles bytes that are no valid message: ends the host.
    package mutating func receivedGarbage(_ error: SluiceError) -> [Action] { kill(error) }

    /// Handles the end of the host, for any reason.
    /// - Parameter overran: `true` if it exceeded its processor time.
    package mutating func hostEnded(_ how: String, overran: Bool = false, now: UInt64) -> [Action] {
        guard phase != .stopped else { return [] }
        // The gateway's own reason precedes the signal that resulted from it.
        let killedFor = verdict ?? (overran ? sent.first.map { overrunError($0.call) } : nil)
        verdict = nil
        let error = killedFor ?? SluiceError(.pluginCrashed, "\(plugin) ended its host process", cause: .plugin(how))
        lastError = error
        failures += 1
        // A plugin that never ran is not retried soon: `start` has failed.
        let first: UInt64 = info == nil ? PluginLimits.restartNanoseconds : 0
        // Restart at once after the first failure, then after 100 ms, doubling.
        let delay = failures <= 1 ? first : min(100_000_000 << UInt64(min(failures - 2, 20)), PluginLimits.restartNanoseconds)
        phase = .down(until: now &+ delay)
        let unanswered = sent
        sent.removeAll()
        sleep.end()
        bytesInFlight = 0
        // No call was in flight, so none is to blame.
        guard let head = unanswered.first else { return refuseWaiting() + tick(now: now) }
        // Only the oldest call was being processed. The others are innocent and are sent again, in their order.
        poison.strike(head.call, now: now)
        waiting.insert(contentsOf: unanswered.dropFirst().filter { !$0.isAbandoned }.map(\.call), at: 0)
        return (head.isAbandoned ? [] : [.finish(id: head.call.id, .failure(error))]) + refuseWaiting() + tick(now: now)
    }

    /// `true` if the circuit breaker is open: hosts have ended repeatedly and none works now. Calls then fail at once.
    package var isOpen: Bool { failures >= PluginLimits.failuresInRow && phase != .ready }

    /// The state shown to operators.
    package var standing: PluginHealth.State {
        if phase == .ready { return .running }
        return isOpen ? .out : info == nil ? .starting : .restarting
    }

    private mutating func refuseWaiting() -> [Action] {
        guard isOpen else { return [] }
        defer { waiting.removeAll() }
        return waiting.map { .finish(id: $0.id, .failure(waitedError($0))) }
    }

    /// Handles a host that could not be started.
    package mutating func startFailed(_ error: SluiceError, now: UInt64) -> [Action] {
        verdict = error
        return hostEnded("it did not start", now: now)
    }

    /// Handles the passage of time. Call it at `nextWake`.
    package mutating func tick(now: UInt64) -> [Action] {
        var actions = expire(now: now)
        switch phase {
        case .down(let until) where until <= now:
            phase = .starting(since: now)
            actions.append(.start)
        case .starting(let since) where since &+ startBudget <= now, .configuring(let since) where since &+ startBudget <= now:
            actions += kill(startError)
        case .ready:
            // Only a process can be ended. The calls of a thread merely expire.
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

    /// Handles a sample of the host's thread.
    /// - Parameter use: nil if it is unknown, or if the thread may be waiting for the gateway.
    package mutating func looked(_ use: ThreadUse?, now: UInt64) -> [Action] {
        guard phase == .ready, let head = sent.first, sleep.look(use, now: now) else { return [] }
        return kill(sleptError(head.call))
    }

    /// Records that the host's thread may have waited for the gateway: for an answer to a question or the rest of a call.
    package mutating func hostWaited() { sleep.interrupt() }

    /// Ends everything. All calls fail.
    package mutating func stop() -> [Action] {
        phase = .stopped
        sleep.end()
        let calls = sent.filter { !$0.isAbandoned }.map(\.call) + waiting
        sent.removeAll()
        waiting.removeAll()
        return calls.map { .finish(id: $0.id, .failure(stoppedError)) }
    }

    /// The time at which `tick` is due; nil if only events matter.
    package var nextWake: UInt64? {
        var wake: UInt64?
        func include(_ time: UInt64) { wake = min(wake ?? time, time) }
        for sent in sent where !sent.isAbandoned { include(sent.call.expires) }
        for call in waiting { include(call.expires) }
        switch phase {
        case .down(let until): include(until)
        case .starting(let since), .configuring(let since): include(since &+ startBudget)
        case .ready:
            // The abandoned call of a thread has no deadline left: waking for it would spin.
            if let head = sent.first, isReplaceable || !head.isAbandoned { include(headSince &+ head.call.budget.work) }
            if isReplaceable, let due = sleep.due { include(due) }
        case .stopped: return nil
        }
        return wake
    }

    // MARK: Steps

    /// Requests the end of the host, once. The error becomes that of the oldest call.
    private mutating func kill(_ error: SluiceError) -> [Action] {
        // The host is being ended already, for an earlier reason.
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
                        fix: "Choose a shorter name."))
            }
            self.info = info
            // A replacement is configured before it receives any call.
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
            // Answers arrive in order, so any other one means that the stream is corrupt.
            return kill(HostedProtocol.malformed("an answer to another call than the current one"))
        }
        sent.removeFirst()
        bytesInFlight -= head.call.input.count
        // The next call's turn begins now: its work budget excludes the wait.
        headChanged(now: now)
        // An answer proves that the host works, which closes the circuit breaker.
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

    /// Sends waiting calls up to the bounds in flight. A single call may exceed the bound of bytes.
    private mutating func pump(now: UInt64) -> [Action] {
        // A host that is being ended must not receive further calls.
        guard phase == .ready, verdict == nil else { return [] }
        var actions: [Action] = []
        // A call over the bound of bytes is sent alone.
        while let call = waiting.first, sent.count < callsInFlight,
            sent.isEmpty || bytesInFlight + call.input.count <= PluginLimits.bytesInFlight
        {
            waiting.removeFirst()
            // Check here and not in `submit`: the call may have been waiting while an equal one ended a host.
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
        // Without a processor budget, as for configuring, only the work budget applies.
        guard let call = sent.first?.call, call.budget.processor < .max else { return sleep.end() }
        // The first call of a hook also loads its code and tables.
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
            // The hanging call fails once its host has been ended, if that is possible.
            guard hangs ? !isReplaceable : sent[index].call.expires <= now else { continue }
            // It stays in `sent`: the host answers it nevertheless, and the order of answers must match.
            sent[index].isAbandoned = true
            let call = sent[index].call
            let error = hangs ? timeoutError(call) : index == 0 && call.hook.isForFunctions ? lateError(call) : waitedError(call)
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
            .pluginCrashed, "\(plugin): this call of \(call.hook.name) ended the plugin's host before, so it is rejected for a while")
    }

    private func timeoutError(_ call: Call) -> SluiceError {
        SluiceError(.pluginTimeout, "\(plugin) did not answer \(call.hook.name) within \(call.budget.work / 1_000_000) ms")
    }

    /// The error of a function that runs when its time is over. The wait for its turn is part of its time.
    private func lateError(_ call: Call) -> SluiceError {
        SluiceError(
            .pluginTimeout,
            "\(plugin) did not answer \(call.hook.name) within \(call.budget.patience / 1_000_000) ms, with the wait for its turn")
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
        // A ready host that was too late is slow; any other one is absent.
        if phase == .ready {
            let milliseconds = call.budget.patience / 1_000_000
            return SluiceError(.pluginUnavailable, "\(plugin) did not begin \(call.hook.name) within \(milliseconds) ms")
        }
        return SluiceError(.pluginUnavailable, "\(plugin) is not running", cause: lastError.map { .error($0) })
    }
}
