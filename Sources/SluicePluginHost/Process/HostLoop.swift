import Glibc
import Logging
import SluiceCore

/// The thread of a plugin host. Waits for answers, output and deadlines, and performs the actions of `HostedCalls` that may block.
final class HostLoop {
    private let owner: PluginHostProcess
    private let wake: Int32
    private var forwarder: LogForwarder
    private var peer: PluginHostEndpoint?
    private var decoder = HostedDecoder()
    private var outputIsOpen = false
    /// The counter names used by the plugin, over all of its hosts.
    private var counters: Set<String> = []
    /// The last value reported to the observer.
    private var isOut = false

    init(owner: PluginHostProcess, wake: Int32) {
        self.owner = owner
        self.wake = wake
        forwarder = owner.makeForwarder()
    }

    /// Runs until the owner stops. Blocks the thread.
    func run() {
        while !owner.isStopping {
            perform { $0.tick(now: monotonicNow()) }
            report()
            wait()
        }
        perform { $0.stop() }
        endPeer()
        // A stopped plugin must not remain reported as out.
        report(isOut: false)
        owner.ledger.note(.stopped)
        Descriptors.close(wake)
        owner.finishStop()
    }

    /// Reports the state to the ledger, the caller of `start` and the observer.
    private func report() {
        let (standing, info, error, isOut) = owner.withLine { line in
            (line.calls.standing, line.calls.info, line.calls.lastError, line.calls.isOpen)
        }
        // The ledger comes before the callers, so that they find the state that their errors imply.
        owner.ledger.note(standing)
        // The first host decides if `start` succeeds.
        if standing == .running, let info {
            owner.finishStart(.success(info))
        } else if let error {
            owner.finishStart(.failure(error))
        }
        report(isOut: isOut)
    }

    private func report(isOut now: Bool) {
        guard now != isOut else { return }
        isOut = now
        owner.observer.isOut(owner.label, now)
    }

    // MARK: Waiting

    private func wait() {
        guard !owner.isStopping else { return }
        // From here on callers see that the thread sleeps and wake it if needed.
        let (until, forRoom) = owner.withLine { $0.sleep(now: monotonicNow()) }
        var polled = [pollfd(fd: wake, events: Int16(POLLIN), revents: 0)]
        // poll ignores negative descriptors.
        polled.append(pollfd(fd: peer?.socket ?? -1, events: Int16(POLLIN | (forRoom ? POLLOUT : 0)), revents: 0))
        polled.append(pollfd(fd: outputIsOpen ? peer?.output ?? -1 : -1, events: Int16(POLLIN), revents: 0))
        unsafe poll(&polled, nfds_t(polled.count), Self.timeout(until))
        owner.withLine {
            $0.isAwake = true
            $0.send()
        }
        // Only drain the wake-up bytes: the loop checks all of the state in any case.
        if polled[0].revents != 0 { _ = Descriptors.read(wake) }
        if polled[2].revents != 0 { readOutput() }
        if polled[1].revents != 0 { readSocket() }
    }

    /// Returns the milliseconds until a time, rounded up; -1 for no limit.
    private static func timeout(_ until: UInt64) -> Int32 {
        if until == .max { return -1 }
        let now = monotonicNow()
        return until <= now ? 0 : Int32(clamping: (until - now) / 1_000_000 + 1)
    }

    private func readOutput() {
        guard let peer else { return }
        switch Descriptors.read(peer.output) {
        case .bytes(let bytes): forwarder.output(bytes, now: monotonicNow())
        case .nothing: break
        case .ended: outputIsOpen = false
        }
    }

    private func readSocket() {
        guard let peer else { return }
        switch Descriptors.read(peer.socket) {
        case .nothing: return
        case .ended: hostEnded()
        case .bytes(let bytes):
            decoder.feed(bytes)
            do {
                // A message may end the host. Its decoder is then replaced, so the loop ends.
                while let message = try decoder.next() { handle(message) }
            } catch {
                perform { $0.receivedGarbage(error) }
            }
        }
    }

    private func handle(_ message: HostedMessage) {
        switch message {
        case .answer(let id, let answer): perform { $0.received(id: id, answer, now: monotonicNow()) }
        case .log(let level, let text):
            // The host cuts lines. Only a plugin that writes to the socket itself sends longer ones.
            guard text.utf8.count <= PluginLimits.logTextBytes else { return refuse("a log line of \(text.utf8.count) bytes") }
            forwarder.logged(level: level, text: text, now: monotonicNow())
        case .count(let name, let amount): count(name, amount)
        case .ask(let question):
            guard let host = owner.withLine({ $0.ask() }) else { return refuse("two questions at a time") }
            owner.answer(question, of: host)
        case .call, .told: refuse("a message that only the gateway sends")
        }
    }

    /// Treats a message as garbage, which ends the host.
    private func refuse(_ what: String) { perform { $0.receivedGarbage(HostedProtocol.malformed(what)) } }

    /// Counts after validating the name again, because a plugin may write to the socket directly.
    private func count(_ name: String, _ amount: UInt64) {
        guard PluginHostServices.isCounter(name) else { return refuse("a counter with an invalid name") }
        if counters.count < PluginLimits.counters { counters.insert(name) }
        guard counters.contains(name) else { return }
        owner.observer.counted(owner.withLine { $0.calls.info?.name } ?? owner.label, name, amount)
    }

    // MARK: Acting

    /// Lets the calls decide, then performs the actions that only this thread may perform.
    private func perform(_ decide: (inout HostedCalls) -> [HostedCalls.Action]) {
        for action in owner.step(decide) {
            switch action {
            case .start: startPeer()
            case .kill: hostEnded()
            case .look: look()
            case .send, .finish: break
            }
        }
    }

    private func look() {
        let use = owner.withLine(\.isAsking) ? nil : peer?.use
        // Bytes in the socket may be the answer. The thread then sleeps because it waits for the next call.
        let isOver = hasSpoken
        perform { $0.looked(isOver ? nil : use, now: monotonicNow()) }
    }

    private var hasSpoken: Bool {
        var polled = pollfd(fd: peer?.socket ?? -1, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&polled, 1, 0) > 0
    }

    /// Starts a host and reports success or failure to the calls.
    private func startPeer() {
        decoder = HostedDecoder()
        do {
            let peer = try owner.startPeer()
            self.peer = peer
            outputIsOpen = peer.output >= 0
            owner.note(processID: peer.processID)
            owner.withLine { $0.connect(peer.socket) }
            perform { $0.hostStarted(path: owner.spec.path, now: monotonicNow()) }
        } catch {
            perform { $0.startFailed(error, now: monotonicNow()) }
        }
    }

    /// Ends the current host, reports its end and logs it.
    private func hostEnded() {
        let end = endPeer()
        owner.observer.hostEnded(owner.label)
        let now = monotonicNow()
        perform { [ledger = owner.ledger] calls in
            let actions = calls.hostEnded(end.text, overran: end.overran, now: now)
            // Note it before the callers resume with its error.
            ledger.noteEnd(calls.lastError, at: now)
            return actions
        }
        report()
        let (error, isOut) = owner.withLine { ($0.calls.lastError, $0.calls.isOpen) }
        forwarder.note(
            .error, "the plugin host ended",
            [
                "how": .string(end.text), "error": .string(error?.operatorText ?? "none"),
                "calls": isOut ? "are refused until it works" : "wait for the next one",
            ])
    }

    /// Ends the current host and waits for its end.
    @discardableResult
    private func endPeer() -> PluginHostEndpoint.End {
        guard let peer else { return PluginHostEndpoint.End(text: "it was not running") }
        self.peer = nil
        owner.note(processID: nil)
        // Disconnect before the socket is closed: callers send on it, and its number may be reused.
        owner.withLine { $0.disconnect() }
        let end = peer.end { forwarder.output($0, now: monotonicNow()) }
        forwarder.finish(now: monotonicNow())
        decoder = HostedDecoder()
        return end
    }
}
