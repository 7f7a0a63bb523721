import Glibc
import Logging
import SluiceCore
import Synchronization

/// One plugin and its host, supervised: a host that crashes or hangs is replaced.
///
/// A caller sends its call itself if the socket has room. A thread reads the answers and does all work that may block. The owner must
/// call `stop`: the thread keeps this object alive until then.
final class PluginHostProcess: Sendable {
    let spec: PluginSpec
    /// The name of the plugin's file, used in errors and logs.
    let label: String
    private let executable: String
    private let logger: Logger
    let observer: PluginObserver
    let ledger = PluginLedger()
    private let services: HostServices
    private let shared: Mutex<Shared>

    private struct Shared {
        enum Life { case idle, running, stopping, stopped }

        var life = Life.idle
        var line: PluginHostChannel
        var nextID: UInt64 = 1
        var waiters: [UInt64: Waiter] = [:]
        var claimedBytes = 0
        /// The writing end of the socket that wakes the thread.
        var waker: Int32 = -1
        var starting: CheckedContinuation<Result<PluginInfo, SluiceError>, Never>?
        var stopping: [CheckedContinuation<Void, Never>] = []
        var processID: pid_t?
        /// The library that every host loads, set by `start`.
        var image: PluginImage?

        init(line: PluginHostChannel) { self.line = line }

        /// Wakes the thread. Runs under the lock, because the descriptor is closed under it.
        mutating func wake() {
            line.isAwake = true
            _ = Descriptors.send(waker, [0])
        }

        /// Lets the calls decide and collects the results to deliver without the lock.
        mutating func step(_ decide: (inout HostedCalls) -> [HostedCalls.Action]) -> Step {
            var step = Step()
            for action in line.step(decide) {
                guard case .finish(let id, let result) = action else {
                    step.acts.append(action)
                    continue
                }
                // Removing the continuation ensures that it is resumed once.
                guard let waiter = waiters.removeValue(forKey: id) else { continue }
                claimedBytes -= waiter.bytes
                step.answered.append((waiter.continuation, result))
            }
            return step
        }
    }

    private typealias Answer = Result<HookAnswer, SluiceError>

    private struct Waiter {
        var bytes: Int
        var continuation: CheckedContinuation<Answer, Never>
    }

    /// The work to do without the lock.
    private struct Step {
        var answered: [(continuation: CheckedContinuation<Answer, Never>, answer: Answer)] = []
        /// The actions reserved for the thread.
        var acts: [HostedCalls.Action] = []
    }

    /// - Parameter callsInFlight: The maximum number of calls sent to the host and not yet answered.
    init(
        spec: PluginSpec, executable: String, logger: Logger, observer: PluginObserver = PluginObserver(), services: HostServices = .none,
        callsInFlight: Int = PluginLimits.callsInFlight
    ) {
        self.services = services
        self.observer = observer
        self.spec = spec
        self.executable = executable
        self.logger = logger
        label = spec.path.split(separator: "/").last.map(String.init) ?? spec.path
        let calls = HostedCalls(
            plugin: label, startBudget: spec.startDeadline, isReplaceable: spec.mode == .process, callsInFlight: callsInFlight)
        shared = Mutex(Shared(line: PluginHostChannel(calls)))
    }

    /// The current process of the host; nil in process and between hosts.
    var processID: Int32? { shared.withLock { $0.processID } }

    /// Returns the status of the plugin.
    /// - Parameter info: The identity of the plugin; nil before it is loaded.
    func standing(_ info: PluginInfo?) -> PluginHealth {
        var standing = PluginHealth(path: spec.path, info: info, processID: processID, isInProcess: spec.mode == .inProcess)
        ledger.fill(&standing, at: monotonicNow())
        return standing
    }

    /// Starts the host and loads the plugin. Call it once.
    /// - Throws: the reason if the plugin cannot be used. The host is stopped then.
    func start() async throws(SluiceError) -> PluginInfo {
        let image: PluginImage
        if let checked = spec.image { image = checked } else { image = try PluginImage(readingFrom: spec.path) }
        let wake = try Descriptors.socketPair()
        Descriptors.makeNonBlocking(wake.0)
        Descriptors.makeNonBlocking(wake.1)
        let result: Result<PluginInfo, SluiceError> = await withCheckedContinuation { continuation in
            let begins = shared.withLock { shared in
                guard shared.life == .idle else { return false }
                shared.life = .running
                shared.waker = wake.1
                shared.image = image
                shared.starting = continuation
                return true
            }
            if begins {
                do throws(SluiceError) { try Threads.start { HostLoop(owner: self, wake: wake.0).run() } } catch {
                    // The thread would close its end, but it does not run.
                    Descriptors.close(wake.0)
                    finishStart(.failure(error))
                    finishStop()
                }
            } else {
                Descriptors.close(wake.0, wake.1)
                continuation.resume(returning: .failure(SluiceError(.pluginUnavailable, "\(label) has been started before")))
            }
        }
        return try result.get()
    }

    /// Calls a hook and waits for its answer within the budget.
    /// - Parameters:
    ///   - parts: The number of writes or objects of the call.
    ///   - budget: The budget; nil uses the plugin's own for the hook.
    ///   - identity: The part of the input that repetitions of the call share; nil for all of it.
    ///   - hasPriority: `true` if the call precedes waiting ones without priority.
    /// - Throws: `pluginTimeout`, `pluginCrashed`, `pluginUnavailable`, `limitsExceeded`.
    func call(
        _ hook: Hook, _ input: [UInt8], parts: Int = 1, budget: CallBudget? = nil, identity: [UInt8]? = nil,
        hasPriority: Bool = false
    ) async throws(SluiceError) -> HookAnswer {
        guard input.count <= PluginLimits.messageBytes else {
            throw SluiceError(
                .limitsExceeded, "\(input.count) bytes for \(hook.name) of \(label) are more than \(PluginLimits.messageBytes)")
        }
        let budget = budget ?? spec.budget(hook, parts: parts, bytes: input.count)
        let expires = monotonicNow() &+ budget.patience
        let result: Answer = await withCheckedContinuation { continuation in
            // Submitting under the lock keeps the order of identifiers equal to the order on the socket.
            let step = shared.withLock { shared in
                if let refusal = self.refusal(of: input.count, shared) { return Step(answered: [(continuation, .failure(refusal))]) }
                let id = shared.nextID
                shared.nextID += 1
                shared.claimedBytes += input.count
                shared.waiters[id] = Waiter(bytes: input.count, continuation: continuation)
                var call = HostedCalls.Call(id: id, hook: hook, input: input, expires: expires, budget: budget)
                (call.identity, call.hasPriority) = (identity, hasPriority)
                let step = shared.step { $0.submit(call, now: monotonicNow()) }
                // Rarely needed: the thread usually wakes early enough by itself.
                if shared.line.isOverslept { shared.wake() }
                return step
            }
            // Resume outside of the lock: a continuation may run at once and call again.
            for (continuation, answer) in step.answered { continuation.resume(returning: answer) }
        }
        return try result.get()
    }

    /// Ends the host. Calls in flight fail with `pluginUnavailable`.
    func stop() async {
        await withCheckedContinuation { continuation in
            let isOver = shared.withLock { shared in
                switch shared.life {
                // No thread runs, so nothing has to be awaited.
                case .idle, .stopped:
                    shared.life = .stopped
                    return true
                case .running, .stopping:
                    shared.life = .stopping
                    shared.stopping.append(continuation)
                    shared.wake()
                    return false
                }
            }
            if isOver { continuation.resume() }
        }
    }

    /// Returns the error if the bounds of waiting calls or bytes are exceeded; nil otherwise.
    private func refusal(of bytes: Int, _ shared: borrowing Shared) -> SluiceError? {
        guard shared.life == .running else { return SluiceError(.pluginUnavailable, "\(label) is not running") }
        let callsFit = shared.waiters.count < PluginLimits.callsWaiting + PluginLimits.callsInFlight
        guard callsFit, shared.claimedBytes + bytes <= PluginLimits.bytesWaiting else {
            return SluiceError(
                .pluginUnavailable, "\(shared.waiters.count) calls with \(shared.claimedBytes) bytes are waiting for \(label)",
                fix: "Make the plugin faster, or call it for fewer types.")
        }
        return nil
    }
}

// The operations of the thread on the shared state.
extension PluginHostProcess {
    var isStopping: Bool { shared.withLock { $0.life == .stopping } }

    /// Lets the calls decide, sends messages and delivers answers to callers.
    /// - Returns: the actions left for the thread.
    func step(_ decide: (inout HostedCalls) -> [HostedCalls.Action]) -> [HostedCalls.Action] {
        let step = shared.withLock { $0.step(decide) }
        for (continuation, answer) in step.answered { continuation.resume(returning: answer) }
        return step.acts
    }

    func withLine<R>(_ body: (inout PluginHostChannel) -> R) -> R { shared.withLock { body(&$0.line) } }

    /// Answers a question of a host, which has one open at a time.
    func answer(_ question: HostQuestion, of host: Int) {
        Task {  // Unstructured because: the loop's thread must not wait. It captures nothing else and ends with the answer.
            let answer = await services.answer(question)
            shared.withLock { shared in
                guard shared.life == .running else { return }
                // The line drops the answer if the host has been replaced meanwhile.
                shared.line.tell(answer, to: host)
                if shared.line.isOverslept { shared.wake() }
            }
        }
    }

    /// Resumes the caller of `start`, once.
    func finishStart(_ result: Result<PluginInfo, SluiceError>) {
        let continuation = shared.withLock { shared in
            defer { shared.starting = nil }
            // A failed start stops the thread; later failures only cause a restart.
            if case .failure = result, shared.starting != nil { shared.life = .stopping }
            return shared.starting
        }
        continuation?.resume(returning: result)
    }

    func note(processID: pid_t?) { shared.withLock { $0.processID = processID } }

    /// Ends the thread: fails all remaining waiters.
    func finishStop() {
        let (waiters, stopping) = shared.withLock { shared in
            shared.life = .stopped
            Descriptors.close(shared.waker)
            shared.waker = -1
            defer {
                shared.waiters.removeAll()
                shared.stopping.removeAll()
            }
            return (shared.waiters, shared.stopping)
        }
        for waiter in waiters.values {
            waiter.continuation.resume(returning: .failure(SluiceError(.pluginUnavailable, "\(label) has been stopped")))
        }
        finishStart(.failure(SluiceError(.pluginUnavailable, "\(label) has been stopped")))
        for continuation in stopping { continuation.resume() }
    }

    func startPeer() throws(SluiceError) -> PluginHostEndpoint {
        guard let image = shared.withLock({ $0.image }) else { throw SluiceError(.pluginMissing, "\(spec.path) has not been read") }
        return try PluginHostEndpoint.start(spec, image, executable: executable)
    }
    func makeForwarder() -> LogForwarder { LogForwarder(logger: logger, plugin: label) }
}
