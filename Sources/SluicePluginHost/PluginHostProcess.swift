import Glibc
import Logging
import SluiceCore
import Synchronization

/// One plugin and the host that runs it, supervised: a host that crashes or hangs is replaced.
///
/// Whoever makes a call hands it to the host, where the host can take it; a thread of its own reads the answers and does everything that
/// may block. Must be stopped: until then the thread keeps it alive.
final class PluginHostProcess: Sendable {
    let spec: PluginSpec
    /// The file's name, as errors and logs call the plugin.
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
        var line: HostLine
        var nextID: UInt64 = 1
        var waiters: [UInt64: Waiter] = [:]
        var claimedBytes = 0
        /// The writing end of what wakes the thread.
        var waker: Int32 = -1
        var starting: CheckedContinuation<Result<PluginInfo, SluiceError>, Never>?
        var stopping: [CheckedContinuation<Void, Never>] = []
        var processID: pid_t?
        /// What every host loads, from the first start on.
        var image: PluginImage?

        init(line: HostLine) { self.line = line }

        /// Under the lock, since the descriptor is closed under it.
        mutating func wake() {
            line.isAwake = true
            _ = Descriptors.send(waker, [0])
        }

        mutating func step(_ decide: (inout HostedCalls) -> [HostedCalls.Action]) -> Step {
            var step = Step()
            for action in line.step(decide) {
                guard case .finish(let id, let result) = action else {
                    step.acts.append(action)
                    continue
                }
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

    /// What is to be done without the lock.
    private struct Step {
        var answered: [(continuation: CheckedContinuation<Answer, Never>, answer: Answer)] = []
        /// What only the thread does.
        var acts: [HostedCalls.Action] = []
    }

    init(spec: PluginSpec, executable: String, logger: Logger, observer: PluginObserver = PluginObserver(), services: HostServices = .none)
    {
        self.services = services
        self.observer = observer
        self.spec = spec
        self.executable = executable
        self.logger = logger
        label = spec.path.split(separator: "/").last.map(String.init) ?? spec.path
        let calls = HostedCalls(plugin: label, startBudget: spec.startDeadline, isReplaceable: spec.mode == .process)
        shared = Mutex(Shared(line: HostLine(calls)))
    }

    /// The host's process at the moment; nil in process and between hosts.
    var processID: Int32? { shared.withLock { $0.processID } }

    /// - Parameter info: how the plugin introduced itself.
    func standing(_ info: PluginInfo?) -> PluginStanding {
        var standing = PluginStanding(path: spec.path, info: info, processID: processID, isInProcess: spec.mode == .inProcess)
        ledger.fill(&standing, at: monotonicNow())
        return standing
    }

    /// Starts the host and loads the plugin. To be called once.
    /// - Throws: why the plugin cannot be used; the host is then stopped.
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

    /// Calls a hook and waits for its answer, as long as the budget has it.
    /// - Parameters:
    ///   - parts: how many writes or objects the call is about.
    ///   - budget: the plugin's own for the hook when nil.
    /// - Throws: `pluginTimeout`, `pluginCrashed`, `pluginUnavailable`, `limitsExceeded`.
    func call(_ hook: Hook, _ input: [UInt8], parts: Int = 1, budget: CallBudget? = nil) async throws(SluiceError) -> HookAnswer {
        guard input.count <= PluginLimits.messageBytes else {
            throw SluiceError(
                .limitsExceeded, "\(input.count) bytes for \(hook.name) of \(label) are more than \(PluginLimits.messageBytes)")
        }
        let budget = budget ?? spec.budget(hook, parts: parts, bytes: input.count)
        let expires = monotonicNow() &+ budget.patience
        let result: Answer = await withCheckedContinuation { continuation in
            let step = shared.withLock { shared in
                if let refusal = self.refusal(of: input.count, shared) { return Step(answered: [(continuation, .failure(refusal))]) }
                let id = shared.nextID
                shared.nextID += 1
                shared.claimedBytes += input.count
                shared.waiters[id] = Waiter(bytes: input.count, continuation: continuation)
                let call = HostedCalls.Call(id: id, hook: hook, input: input, expires: expires, budget: budget)
                let step = shared.step { $0.submit(call, now: monotonicNow()) }
                if shared.line.isOverslept { shared.wake() }
                return step
            }
            for (continuation, answer) in step.answered { continuation.resume(returning: answer) }
        }
        return try result.get()
    }

    /// Ends the host; calls in flight fail with `pluginUnavailable`.
    func stop() async {
        await withCheckedContinuation { continuation in
            let isOver = shared.withLock { shared in
                switch shared.life {
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

// What the thread does with the shared state.
extension PluginHostProcess {
    var isStopping: Bool { shared.withLock { $0.life == .stopping } }

    /// What the calls decide; what has to be sent is, and who has an answer gets it.
    /// - Returns: what is left for the thread to do.
    func step(_ decide: (inout HostedCalls) -> [HostedCalls.Action]) -> [HostedCalls.Action] {
        let step = shared.withLock { $0.step(decide) }
        for (continuation, answer) in step.answered { continuation.resume(returning: answer) }
        return step.acts
    }

    func withLine<R>(_ body: (inout HostLine) -> R) -> R { shared.withLock { body(&$0.line) } }

    /// Has a question of a host answered, which has one at a time.
    func answer(_ question: HostQuestion, of host: Int) {
        // Unstructured because: the loop's thread must not wait. It holds nothing but this, and ends with the answer.
        Task {
            let answer = await services.answer(question)
            shared.withLock { shared in
                guard shared.life == .running else { return }
                shared.line.tell(answer, to: host)
                if shared.line.isOverslept { shared.wake() }
            }
        }
    }

    /// Tells the caller of `start`, once.
    func finishStart(_ result: Result<PluginInfo, SluiceError>) {
        let continuation = shared.withLock { shared in
            defer { shared.starting = nil }
            if case .failure = result, shared.starting != nil { shared.life = .stopping }
            return shared.starting
        }
        continuation?.resume(returning: result)
    }

    func note(processID: pid_t?) { shared.withLock { $0.processID = processID } }

    /// The thread's last act: nothing is left waiting.
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

    func startPeer() throws(SluiceError) -> HostPeer {
        guard let image = shared.withLock({ $0.image }) else { throw SluiceError(.pluginMissing, "\(spec.path) has not been read") }
        return try HostPeer.start(spec, image, executable: executable)
    }
    func makeForwarder() -> LogForwarder { LogForwarder(logger: logger, plugin: label) }
}
