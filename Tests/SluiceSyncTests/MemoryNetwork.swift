import SluiceCore
import SluiceSync
import SluiceWire
import Synchronization

/// The simulated gateway behind the transport port: engines talk to it in memory.
actor MemoryNetwork {
    private var gateway = SimulatedGateway(seed: 1)
    private var connections: [UInt64: MemoryConnection] = [:]
    private var next: UInt64 = 1
    private(set) var tokens: [String] = []

    func connect() throws(SluiceError) -> MemoryConnection {
        let id = next
        next += 1
        gateway.sessions[id] = SimulatedGateway.Session()
        let connection = MemoryConnection(id: id, network: self)
        connections[id] = connection
        return connection
    }

    func take(_ bytes: [UInt8], from id: UInt64) {
        if let message = try? WireProtocol.decode(PBClientMessage.self, from: bytes), case .hello(let hello)? = message.kind {
            tokens.append(hello.accessToken)
        }
        do { try gateway.handle(bytes, session: id) } catch { gateway.violations.append("\(error)") }
        flush()
    }

    private func flush() {
        for id in gateway.sessions.keys.sorted() {
            gateway.bootstrapUntilDone(id)
            for message in gateway.sessions[id]?.outgoing ?? [] {
                if let bytes = try? WireProtocol.encode(message) { connections[id]?.push(bytes) }
            }
            gateway.sessions[id]?.outgoing = []
            if gateway.sessions[id]?.isClosed == true { hangUp(id) }
        }
    }

    func hangUp(_ id: UInt64) {
        gateway.sessions[id] = nil
        connections.removeValue(forKey: id)?.finish()
    }

    /// Ends every session with an error, as a gateway does.
    func end(_ error: SluiceError, backoffMilliseconds: UInt32) {
        var message = PBServerMessage()
        message.error = PBSessionError(error, action: .transient, fatal: true, backoffMilliseconds: backoffMilliseconds)
        for connection in connections.values { if let bytes = try? WireProtocol.encode(message) { connection.push(bytes) } }
    }

    func hangUpAll() { for id in connections.keys { hangUp(id) } }

    func commit(_ key: Int64, _ item: Item?) {
        gateway.commit(key, item)
        flush()
    }

    func accept(token: String) { gateway.validToken = token }
    var items: [Int64: Item] { gateway.items }
    var effects: [String: Int] { gateway.effects }
    var readings: [Int64: Int] { gateway.readings }
    var violations: [String] { gateway.violations }
}

struct MemoryTransport: SyncTransport {
    let network: MemoryNetwork

    func connect(_ request: SyncRequest) async throws(SluiceError) -> any SyncConnection { try await network.connect() }
}

final class MemoryConnection: SyncConnection {
    private struct State {
        var messages: [[UInt8]] = []
        var waiter: CheckedContinuation<[UInt8]?, Never>?
        var isFinished = false
    }

    private let id: UInt64
    private let network: MemoryNetwork
    private let state = Mutex(State())

    init(id: UInt64, network: MemoryNetwork) {
        self.id = id
        self.network = network
    }

    func push(_ bytes: [UInt8]) {
        let waiter = state.withLock { state -> CheckedContinuation<[UInt8]?, Never>? in
            if state.waiter == nil { state.messages.append(bytes) }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: bytes)
    }

    func finish() {
        let waiter = state.withLock { state in
            state.isFinished = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: nil)
    }

    func send(_ message: [UInt8]) async throws(SluiceError) { await network.take(message, from: id) }
    func ping() {}
    func close() { finish() }

    func next() async throws(SluiceError) -> SyncInbound? {
        let bytes = await withCheckedContinuation { (continuation: CheckedContinuation<[UInt8]?, Never>) in
            let ready = state.withLock { state -> [UInt8]?? in
                if !state.messages.isEmpty { return .some(state.messages.removeFirst()) }
                if state.isFinished { return .some(nil) }
                state.waiter = continuation
                return nil
            }
            if let ready { continuation.resume(returning: ready) }
        }
        return bytes.map { .message($0) }
    }
}
