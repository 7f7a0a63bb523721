package import NIOCore

/// Whoever a WebSocket connection talks to: a session of the gateway.
///
/// All calls come on the connection's event loop, in the order `opened`, then `message` and `writabilityChanged`, then
/// `closed` once. After the first message nothing is read until the owner calls `ServerSocket.authenticated`. They must not block. An owner whose connection ends before it is open gets `closed` alone.
package protocol SocketOwner: AnyObject, Sendable {
    /// The connection is ready to send.
    func opened(_ socket: ServerSocket)
    /// One whole binary message; its fragments are joined and its mask is off.
    func message(_ bytes: ByteBuffer)
    /// Whether the kernel and the connection's own buffer take more (`WebSocketLimits.outboxWatermark`).
    func writabilityChanged(_ isWritable: Bool)
    /// A message is larger than the limit. What is returned is sent as the last message before close 1009.
    func oversize() -> [UInt8]?
    /// The peer has not authenticated and is refused. What is returned is sent as the last message before the close.
    func refused(_ refusal: OpeningRefusal) -> [UInt8]?
    /// The server is stopping. What is returned is sent as the last message before close 1001.
    func shuttingDown() -> [UInt8]?
    /// The connection has ended; nothing follows.
    func closed(_ reason: SocketCloseReason)
}

extension SocketOwner {
    package func writabilityChanged(_ isWritable: Bool) {}
    package func oversize() -> [UInt8]? { nil }
    package func refused(_ refusal: OpeningRefusal) -> [UInt8]? { nil }
    package func shuttingDown() -> [UInt8]? { nil }
}

/// A reason to refuse a peer that has not authenticated.
package enum OpeningRefusal: Hashable, Sendable {
    /// Its first message was not complete in time.
    case late
    /// Its first message is over `WebSocketLimits.openingBytes`.
    case tooLarge
}

/// Why a connection ended.
package enum SocketCloseReason: Hashable, Sendable {
    /// The peer said goodbye, with this code if it gave one.
    case peer(code: UInt16?)
    /// The connection broke or ended without goodbye; the text says how.
    case lost(String)
    /// Nothing came for `WebSocketLimits.silence`, not even an answer to a ping.
    case silent
    /// A message was larger than the limit.
    case oversize
    /// The first message was not complete in time.
    case late
    /// The peer broke the WebSocket protocol; the text says how.
    case malformed(String)
    /// `ServerSocket.close` with this code.
    case local(code: UInt16)
    /// The server stopped.
    case shutdown
}

/// WebSocket close codes that the gateway sends (RFC 6455, 7.4.1).
package enum SocketCloseCode: UInt16, Sendable {
    case normal = 1000
    case goingAway = 1001
    case protocolError = 1002
    case unacceptableData = 1003
    case policyViolation = 1008
    case messageTooBig = 1009
    case internalError = 1011
    case tryAgainLater = 1013
}
