import SluiceCore

/// What the callers of a plugin and the thread of its host share, under one lock: the calls, and the socket that they are sent by.
struct HostLine {
    private(set) var calls: HostedCalls
    /// Whether the thread is about to look at all of this.
    var isAwake = true
    /// When it looks again by itself, monotonic nanoseconds.
    private var sleepsUntil = UInt64.max
    /// Tells one host from those after it.
    private(set) var host = 0
    /// Of the present host; not open between hosts.
    private var socket: Int32 = -1
    /// Whether the host waits for an answer of ours.
    private(set) var isAsking = false
    /// What is in flight at most (`PluginLimits.callsInFlight`, `.bytesInFlight`; one call may be larger), and the answer to one question.
    private var outgoing: [UInt8] = []
    /// Bytes of `outgoing` that the socket has taken.
    private var sent = 0

    init(_ calls: HostedCalls) { self.calls = calls }

    /// Whether the socket has yet to take something.
    var isUnsent: Bool { !outgoing.isEmpty }

    /// Whether the thread sleeps and has to be woken: for what the socket has not taken, or since it would look too late.
    var isOverslept: Bool { !isAwake && (isUnsent || calls.nextWake ?? .max < sleepsUntil) }

    /// The thread is about to wait.
    ///
    /// It looks once more than it has to when the calls that it would have looked for are over: as a rule there are others by then, for
    /// which nobody has to wake it.
    /// - Returns: until when at the latest, and whether for room in the socket as well.
    mutating func sleep(now: UInt64) -> (until: UInt64, forRoom: Bool) {
        isAwake = false
        let next = calls.nextWake ?? .max
        if sleepsUntil <= now || next < sleepsUntil { sleepsUntil = next }
        return (sleepsUntil, isUnsent)
    }

    /// Has the calls decide, and sends what is to be sent.
    /// - Returns: the other actions.
    mutating func step(_ decide: (inout HostedCalls) -> [HostedCalls.Action]) -> [HostedCalls.Action] {
        var others: [HostedCalls.Action] = []
        for action in decide(&calls) {
            if case .send(let message) = action { HostedProtocol.encode(message, into: &outgoing) } else { others.append(action) }
        }
        send()
        return others
    }

    /// The host asks something. - Returns: which host that is; nil when it has asked before and has no answer yet.
    mutating func ask() -> Int? {
        guard !isAsking else { return nil }
        isAsking = true
        calls.hostWaited()
        return host
    }

    /// Answers what a host asked; what one asked that has ended since is nobody's any more.
    mutating func tell(_ answer: HookAnswer, to host: Int) {
        guard host == self.host, isAsking else { return }
        isAsking = false
        calls.hostWaited()
        HostedProtocol.encode(.told(answer), into: &outgoing)
        send()
    }

    /// A new host is there.
    mutating func connect(_ socket: Int32) {
        disconnect()
        self.socket = socket
        host += 1
    }

    /// The socket is about to be closed.
    mutating func disconnect() {
        socket = -1
        isAsking = false
        clear()
    }

    /// Sends what the socket takes.
    mutating func send() {
        guard isUnsent, socket >= 0 else { return }
        // A closed socket shows when it is read.
        let count = Descriptors.send(socket, outgoing[sent...]) ?? outgoing.count - sent
        if sent > 0, count > 0 { calls.hostWaited() }
        sent += count
        if sent == outgoing.count { clear() }
    }

    private mutating func clear() {
        outgoing.removeAll(keepingCapacity: outgoing.count < 1 << 16)
        sent = 0
    }
}
