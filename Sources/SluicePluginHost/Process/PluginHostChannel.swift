import SluiceCore

/// The state shared by the callers of a plugin and the thread of its host, under one lock: the calls and their socket.
struct PluginHostChannel {
    private(set) var calls: HostedCalls
    /// `true` if the thread is about to check all of this state.
    var isAwake = true
    /// The time at which the thread wakes by itself, in monotonic nanoseconds.
    private var sleepsUntil = UInt64.max
    /// The number of the current host, which distinguishes it from its successors.
    private(set) var host = 0
    /// The socket of the current host; -1 between hosts.
    private var socket: Int32 = -1
    /// `true` if the host waits for an answer of the gateway.
    private(set) var isAsking = false
    /// The unsent bytes of calls and of the answer to one question.
    /// `PluginLimits.callsInFlight` and `.bytesInFlight` bound them, except for a single larger call.
    private var outgoing: [UInt8] = []
    /// The number of bytes of `outgoing` that the socket has accepted.
    private var sent = 0

    init(_ calls: HostedCalls) { self.calls = calls }

    /// `true` if bytes remain to be sent.
    var isUnsent: Bool { !outgoing.isEmpty }

    /// `true` if the sleeping thread must be woken: to send the rest, or because it would wake too late.
    var isOverslept: Bool { !isAwake && (isUnsent || calls.nextWake ?? .max < sleepsUntil) }

    /// Records that the thread is about to wait.
    ///
    /// An earlier wake-up is kept even if its calls have ended. New calls usually exist by then, and their callers need not wake the
    /// thread.
    /// - Returns: the latest time to wake, and `true` if room in the socket must wake it too.
    mutating func sleep(now: UInt64) -> (until: UInt64, forRoom: Bool) {
        isAwake = false
        let next = calls.nextWake ?? .max
        if sleepsUntil <= now || next < sleepsUntil { sleepsUntil = next }
        return (sleepsUntil, isUnsent)
    }

    /// Lets the calls decide and sends the resulting messages.
    /// - Returns: the remaining actions.
    mutating func step(_ decide: (inout HostedCalls) -> [HostedCalls.Action]) -> [HostedCalls.Action] {
        var others: [HostedCalls.Action] = []
        for action in decide(&calls) {
            if case .send(let message) = action { HostedProtocol.encode(message, into: &outgoing) } else { others.append(action) }
        }
        send()
        return others
    }

    /// Records a question of the host.
    /// - Returns: the number of the host; nil if its previous question is unanswered.
    mutating func ask() -> Int? {
        guard !isAsking else { return nil }
        isAsking = true
        calls.hostWaited()
        return host
    }

    /// Answers a host's question. An answer for an earlier host is dropped.
    mutating func tell(_ answer: HookAnswer, to host: Int) {
        guard host == self.host, isAsking else { return }
        isAsking = false
        calls.hostWaited()
        HostedProtocol.encode(.told(answer), into: &outgoing)
        send()
    }

    /// Connects a new host.
    mutating func connect(_ socket: Int32) {
        disconnect()
        self.socket = socket
        host += 1
    }

    /// Disconnects before the socket is closed.
    mutating func disconnect() {
        socket = -1
        isAsking = false
        clear()
    }

    /// Sends as many bytes as the socket accepts.
    mutating func send() {
        guard isUnsent, socket >= 0 else { return }
        // A closed socket is detected when the thread reads it, so its bytes are dropped here.
        let count = Descriptors.send(socket, outgoing[sent...]) ?? outgoing.count - sent
        // A call arrived in pieces: the host may have slept for the rest, which is not the plugin's fault.
        if sent > 0, count > 0 { calls.hostWaited() }
        sent += count
        if sent == outgoing.count { clear() }
    }

    private mutating func clear() {
        outgoing.removeAll(keepingCapacity: outgoing.count < 1 << 16)
        sent = 0
    }
}
