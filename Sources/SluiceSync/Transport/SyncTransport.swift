package import SluiceCore

/// What opens a connection.
package struct SyncRequest: Hashable, Sendable {
    /// `ws://` or `wss://` with host, port and path.
    package var url: String
    package var headers: [String: String]
    /// For the TCP connection, and for the answer to the upgrade; nil: as the transport has it.
    package var milliseconds: UInt64?

    package init(url: String, headers: [String: String] = [:], milliseconds: UInt64? = nil) {
        self.url = url
        self.headers = headers
        self.milliseconds = milliseconds
    }
}

/// How the engine reaches a gateway: the port that `WebSocketTransport` and the tests' network implement.
package protocol SyncTransport: Sendable {
    /// - Throws: `connectionFailed`, `tlsHandshakeFailed` or `timeout`.
    func connect(_ request: SyncRequest) async throws(SluiceError) -> any SyncConnection
}

package enum SyncInbound: Hashable, Sendable {
    case message([UInt8])
    /// A sign of life without content.
    case pong
}

/// An open connection.
package protocol SyncConnection: Sendable {
    /// Sends one message; returns when the connection can take the next one.
    func send(_ message: [UInt8]) async throws(SluiceError)
    func ping()
    /// The next message, in order; nil when the gateway closed. Nothing more is read from the network than a bounded
    /// number of messages ahead of this call. One caller.
    func next() async throws(SluiceError) -> SyncInbound?
    /// Closes at once; `next` and `send` end. May be called at any time and more than once.
    func close()
}
