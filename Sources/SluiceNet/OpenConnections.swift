import NIOCore
import Synchronization

/// The connections of a server: their admission, and the means to close those that do not end by themselves.
final class OpenConnections: Sendable {
    private struct State {
        var admission: Admission
        var channels: [Admission.ID: any Channel] = [:]
        var ids: [ObjectIdentifier: Admission.ID] = [:]
        /// `true` once a graceful shutdown has begun.
        var isStopping = false
        /// The WebSockets that the shutdown has closed, and that wait for the peer's close frame.
        var leaving: Set<Admission.ID> = []
        var cutOff = ShutdownCutOff()
        /// By event loop, for the sockets of each.
        var calls: [ObjectIdentifier: LoopCalls] = [:]
    }

    private let limits: AdmissionLimits
    private let proxies: TrustedProxies
    /// The pace of a graceful shutdown.
    let pace: ShutdownPace
    private let onRefusal: @Sendable (NetRefusal) -> Void
    private let state: Mutex<State>

    init(
        limits: AdmissionLimits, proxies: TrustedProxies, pace: ShutdownPace, onRefusal: @escaping @Sendable (NetRefusal) -> Void
    ) {
        self.limits = limits
        self.proxies = proxies
        self.pace = pace
        self.onRefusal = onRefusal
        state = Mutex(State(admission: Admission(limits: limits)))
    }

    /// Returns the short calls of an event loop, which all of its connections share.
    func calls(on loop: any EventLoop) -> LoopCalls {
        state.withLock { state in
            let known = state.calls[ObjectIdentifier(loop)] ?? LoopCalls(loop)
            state.calls[ObjectIdentifier(loop)] = known
            return known
        }
    }

    var count: Int { state.withLock { $0.admission.count } }

    /// Decides on a new connection. A connection that was admitted before stays admitted.
    /// - Returns: `nil` if it is refused. The caller must then close it.
    func admit(_ channel: any Channel) -> ConnectionTicket? {
        let key = ObjectIdentifier(channel)
        if let id = state.withLock({ $0.ids[key] }) { return ConnectionTicket(connections: self, id: id) }
        // A proxy's connection is counted under its client's address, which is not known yet.
        let peer = NetworkAddress(channel.remoteAddress)
        let group = peer.flatMap { proxies.trust($0) ? nil : limits.group(of: $0) }
        let (decision, victim) = state.withLock { state -> (Admission.Decision, (any Channel)?) in
            let decision = state.admission.open(group)
            guard case .admit(let id, let evicted) = decision else { return (decision, nil) }
            state.channels[id] = channel
            state.ids[key] = id
            return (decision, evicted.flatMap { state.channels[$0] })
        }
        switch decision {
        case .refuse(let reason):
            onRefusal(reason)
            return nil
        case .admit(let id, _):
            // Outside the lock: the channel's close future calls `remove`, which takes the lock.
            if let victim {
                onRefusal(.evicted)
                victim.close(promise: nil)
            }
            // Runs at once if the channel has closed meanwhile.
            channel.closeFuture.whenComplete { _ in self.remove(id, key) }
            return ConnectionTicket(connections: self, id: id)
        }
    }

    private func remove(_ id: Admission.ID, _ key: ObjectIdentifier) {
        state.withLock { state in
            state.admission.close(id)
            state.channels[id] = nil
            state.ids[key] = nil
            state.leaving.remove(id)
        }
    }

    /// Counts a proxy's connection under its client's address.
    /// - Returns: `nil` if it may stay.
    func identify(_ id: Admission.ID, as client: NetworkAddress?) -> NetRefusal? {
        guard let group = limits.group(of: client) else { return nil }
        let refusal = state.withLock { $0.admission.identify(id, as: group) }
        if let refusal { onRefusal(refusal) }
        return refusal
    }

    func authenticate(_ id: Admission.ID) { state.withLock { $0.admission.authenticate(id) } }
    func isAuthenticated(_ id: Admission.ID) -> Bool { state.withLock { $0.admission.isAuthenticated(id) } }
    func touch(_ id: Admission.ID) { state.withLock { $0.admission.touch(id) } }
    func refused(_ reason: NetRefusal) { onRefusal(reason) }

    // MARK: Graceful shutdown

    var isStopping: Bool { state.withLock(\.isStopping) }

    /// The work that was cut off.
    var cutOff: ShutdownCutOff { state.withLock(\.cutOff) }

    func stop() { state.withLock { $0.isStopping = true } }

    /// Notes that the shutdown closes a WebSocket.
    fileprivate func leave(_ id: Admission.ID, isAnswered: Bool) {
        state.withLock { state in
            state.leaving.insert(id)
            if !isAnswered { state.cutOff.sockets += 1 }
        }
    }

    /// Closes all open connections at the deadline of a shutdown, and counts those with work.
    func expire() {
        state.withLock { state in
            // A second call finds those that the first one is closing.
            state.cutOff.requests = max(state.cutOff.requests, state.channels.keys.count { !state.leaving.contains($0) })
        }
        closeAll()
    }

    /// Closes all open connections, without a close frame.
    func closeAll() {
        for channel in state.withLock({ Array($0.channels.values) }) { channel.close(promise: nil) }
    }

    /// Waits until every connection that is open now has ended. Only `closeAll` bounds the wait.
    func drained(on eventLoop: any EventLoop) async {
        let ends = state.withLock { $0.channels.values.map(\.closeFuture) }
        // A connection that ended with an error has ended.
        _ = try? await EventLoopFuture.andAllComplete(ends, on: eventLoop).get()
    }
}

/// An admitted connection.
package struct ConnectionTicket: Sendable {
    /// The ticket of the connection whose request is handled.
    @TaskLocal static var current: ConnectionTicket?

    let connections: OpenConnections
    let id: Admission.ID

    /// Exempts the connection from the limits of unauthenticated ones.
    package func authenticate() { connections.authenticate(id) }

    /// Notes that a graceful shutdown closes the WebSocket.
    ///
    /// - Parameter isAnswered: `false` if messages have no answer.
    func leave(isAnswered: Bool) { connections.leave(id, isAnswered: isAnswered) }

    var isProven: Bool { connections.isAuthenticated(id) }
}

/// Closes refused connections before they are registered and have a pipeline. The first handler of the server's own channel.
final class AcceptGate: ChannelInboundHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel

    private let connections: OpenConnections

    init(_ connections: OpenConnections) { self.connections = connections }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = unwrapInboundIn(data)
        if connections.admit(channel) == nil { return channel.close(promise: nil) }
        context.fireChannelRead(data)
    }
}
