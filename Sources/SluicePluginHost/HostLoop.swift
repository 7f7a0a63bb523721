import Glibc
import Logging
import SluiceCore

/// The thread of a plugin host: waits for calls, answers, output and time, and performs what `HostedCalls` decides.
final class HostLoop {
    private let owner: PluginHostProcess
    private let wake: Int32
    private var calls: HostedCalls
    private var forwarder: LogForwarder
    private var peer: HostPeer?
    private var decoder = HostedDecoder()
    private var outgoing: [UInt8] = []
    /// Bytes of `outgoing` that the socket has taken.
    private var outgoingSent = 0
    private var outputIsOpen = false
    /// Tells one host from those after it.
    private var host = 0
    /// Whether the host waits for an answer of ours.
    private var isAsking = false
    /// Names that the plugin has counted by, in all of its hosts.
    private var counters: Set<String> = []
    /// What the observer knows of `HostedCalls.isOpen`.
    private var isOut = false

    init(owner: PluginHostProcess, wake: Int32) {
        self.owner = owner
        self.wake = wake
        calls = HostedCalls(
            plugin: owner.label, startBudget: owner.spec.startDeadline, isReplaceable: owner.spec.mode == .process)
        forwarder = owner.makeForwarder()
    }

    func run() {
        while !owner.isStopping {
            let now = monotonicNow()
            perform(calls.tick(now: now))
            let (inbox, told) = owner.takeInbox()
            for call in inbox { perform(calls.submit(call, now: now)) }
            // What a host asked that has ended since is nobody's any more.
            for (host, answer) in told where host == self.host && isAsking {
                isAsking = false
                calls.hostWaited()
                HostedProtocol.encode(.told(answer), into: &outgoing)
            }
            flush()
            // Before anybody hears of it.
            owner.ledger.note(state)
            reportStart()
            report(isOut: calls.isOpen)
            wait()
        }
        perform(calls.stop())
        endPeer()
        report(isOut: false)
        owner.ledger.note(.stopped)
        Descriptors.close(wake)
        owner.finishStop()
    }

    /// The first host decides whether `start` succeeds.
    private func reportStart() {
        if calls.phase == .ready, let info = calls.info {
            owner.finishStart(.success(info))
        } else if let error = calls.lastError {
            owner.finishStart(.failure(error))
        }
    }

    private func report(isOut now: Bool) {
        guard now != isOut else { return }
        isOut = now
        owner.observer.isOut(owner.label, now)
    }

    private var state: PluginStanding.State {
        if calls.phase == .ready { return .running }
        return calls.isOpen ? .out : calls.info == nil ? .starting : .restarting
    }

    // MARK: Waiting

    private func wait() {
        guard !owner.isStopping else { return }
        var polled = [pollfd(fd: wake, events: Int16(POLLIN), revents: 0)]
        let writing = outgoing.isEmpty ? 0 : POLLOUT
        polled.append(pollfd(fd: peer?.socket ?? -1, events: Int16(POLLIN | writing), revents: 0))
        polled.append(pollfd(fd: outputIsOpen ? peer?.output ?? -1 : -1, events: Int16(POLLIN), revents: 0))
        unsafe poll(&polled, nfds_t(polled.count), timeout())
        if polled[0].revents != 0 { _ = Descriptors.read(wake) }
        if polled[2].revents != 0 { readOutput() }
        if polled[1].revents != 0 {
            flush()
            readSocket()
        }
    }

    /// Milliseconds until the machine wants to be told the time, rounded up.
    private func timeout() -> Int32 {
        guard let next = calls.nextWake else { return -1 }
        let now = monotonicNow()
        return next <= now ? 0 : Int32(clamping: (next - now) / 1_000_000 + 1)
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
                while let message = try decoder.next() { handle(message) }
            } catch {
                perform(calls.receivedGarbage(error))
            }
        }
    }

    private func handle(_ message: HostedMessage) {
        switch message {
        case .answer(let id, let answer): perform(calls.received(id: id, answer, now: monotonicNow()))
        case .log(let level, let text):
            guard text.utf8.count <= PluginLimits.logTextBytes else {
                return perform(calls.receivedGarbage(HostedProtocol.malformed("a log line of \(text.utf8.count) bytes")))
            }
            forwarder.logged(level: level, text: text, now: monotonicNow())
        case .count(let name, let amount): count(name, amount)
        case .ask(let question):
            guard !isAsking else { return perform(calls.receivedGarbage(HostedProtocol.malformed("two questions at a time"))) }
            isAsking = true
            calls.hostWaited()
            owner.answer(question, of: host)
        case .call, .told: perform(calls.receivedGarbage(HostedProtocol.malformed("what only the gateway says")))
        }
    }

    /// A plugin may write to its socket what the host never would: names are looked at here as well.
    private func count(_ name: String, _ amount: UInt64) {
        guard HostDesk.isCounter(name) else {
            return perform(calls.receivedGarbage(HostedProtocol.malformed("a counter that has no name of one")))
        }
        if counters.count < PluginLimits.counters { counters.insert(name) }
        if counters.contains(name) { owner.observer.counted(calls.info?.name ?? owner.label, name, amount) }
    }

    private func flush() {
        guard let peer, !outgoing.isEmpty else { return }
        // A closed socket shows when it is read.
        let count = Descriptors.send(peer.socket, outgoing[outgoingSent...]) ?? outgoing.count - outgoingSent
        if outgoingSent > 0, count > 0 { calls.hostWaited() }
        outgoingSent += count
        if outgoingSent == outgoing.count { clearOutgoing() }
    }

    private func clearOutgoing() {
        outgoing.removeAll(keepingCapacity: outgoing.count < 1 << 16)
        outgoingSent = 0
    }

    // MARK: Acting

    private func perform(_ actions: [HostedCalls.Action]) {
        for action in actions {
            switch action {
            case .send(let message): HostedProtocol.encode(message, into: &outgoing)
            case .finish(let id, let result): owner.finish(id: id, result)
            case .start: startPeer()
            case .kill: hostEnded()
            case .look: look()
            }
        }
    }

    private func look() {
        let use = isAsking ? nil : peer?.use
        // What it has said by now may be its answer: it then sleeps because it waits for the next call.
        perform(calls.looked(hasSpoken ? nil : use, now: monotonicNow()))
    }

    private var hasSpoken: Bool {
        var polled = pollfd(fd: peer?.socket ?? -1, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&polled, 1, 0) > 0
    }

    private func startPeer() {
        decoder = HostedDecoder()
        clearOutgoing()
        host += 1
        isAsking = false
        do {
            let peer = try owner.startPeer()
            self.peer = peer
            outputIsOpen = peer.output >= 0
            owner.note(processID: peer.processID)
            perform(calls.hostStarted(path: owner.spec.path, now: monotonicNow()))
        } catch {
            perform(calls.startFailed(error, now: monotonicNow()))
        }
    }

    private func hostEnded() {
        let end = endPeer()
        owner.observer.hostEnded(owner.label)
        let actions = calls.hostEnded(end.text, overran: end.overran, now: monotonicNow())
        owner.ledger.noteEnd(calls.lastError, at: monotonicNow())
        perform(actions)
        reportStart()
        forwarder.note(
            .error, "the plugin host ended",
            [
                "how": .string(end.text), "error": .string(calls.lastError?.message ?? "none"),
                "calls": calls.isOpen ? "are refused until it works" : "wait for the next one",
            ])
    }

    @discardableResult
    private func endPeer() -> HostPeer.End {
        guard let peer else { return HostPeer.End(text: "it was not running") }
        self.peer = nil
        owner.note(processID: nil)
        let end = peer.end { forwarder.output($0, now: monotonicNow()) }
        forwarder.finish(now: monotonicNow())
        clearOutgoing()
        decoder = HostedDecoder()
        return end
    }
}
