package import SluiceCore

/// A request to open a connection.
package struct SyncRequest: Hashable, Sendable {
    /// `ws://` or `wss://` with host, port and path.
    package var url: String
    package var headers: [String: String]
    /// The limit for the TCP connection, the TLS handshake and the answer to the upgrade together. `nil` uses the transport's default.
    package var milliseconds: UInt64?

    package init(url: String, headers: [String: String] = [:], milliseconds: UInt64? = nil) {
        self.url = url
        self.headers = headers
        self.milliseconds = milliseconds
    }
}

/// The engine's port to the network, implemented by `WebSocketTransport` and by the tests' simulated network.
package protocol SyncTransport: Sendable {
    /// Opens a connection.
    /// - Throws: `connectionFailed`, `tlsHandshakeFailed` or `timeout`.
    func connect(_ request: SyncRequest) async throws(SluiceError) -> any SyncConnection
}

package enum SyncInbound: Hashable, Sendable {
    case message([UInt8])
    /// A pong: traffic without content.
    case pong
}

/// An open connection.
package protocol SyncConnection: Sendable {
    /// Sends one message. Returns when the connection can accept the next one.
    func send(_ message: [UInt8]) async throws(SluiceError)
    func ping()
    /// Returns the next message, in order, or `nil` once the gateway has closed. One caller. The connection reads only a bounded number
    /// of messages ahead of this call.
    func next() async throws(SluiceError) -> SyncInbound?
    /// Closes at once; `next` and `send` end. Safe to call at any time and more than once.
    func close()
}
