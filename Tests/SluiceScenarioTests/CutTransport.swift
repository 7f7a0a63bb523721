import SluiceCore
import SluiceSync
import SluiceWire

/// The way to a gateway for a device, on which somebody looks at what comes, keeps it waiting, and loses it with the connection.
struct CutTransport: SyncTransport {
    private let transport = WebSocketTransport()
    private let loses: @Sendable (PBServerMessage) async -> Bool

    /// - Parameter loses: whether the connection ends before the device gets the message.
    init(_ loses: @escaping @Sendable (PBServerMessage) async -> Bool) { self.loses = loses }

    func connect(_ request: SyncRequest) async throws(SluiceError) -> any SyncConnection {
        CutConnection(connection: try await transport.connect(request), loses: loses)
    }
}

private struct CutConnection: SyncConnection {
    let connection: any SyncConnection
    let loses: @Sendable (PBServerMessage) async -> Bool

    func send(_ message: [UInt8]) async throws(SluiceError) { try await connection.send(message) }
    func ping() { connection.ping() }
    func close() { connection.close() }

    func next() async throws(SluiceError) -> SyncInbound? {
        let inbound = try await connection.next()
        guard case .message(let bytes)? = inbound, await loses(try WireProtocol.decode(from: bytes)) else { return inbound }
        connection.close()
        return nil
    }
}
