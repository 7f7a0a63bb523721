package import NIOCore

/// The owner of a WebSocket connection: a session of the gateway.
///
/// All calls are made on the connection's event loop and must not block. Order: `opened`, then `message` and `writabilityChanged`, then
/// `closed` once. If the connection ends before it opens, the owner receives only `closed`.
///
/// After the first message, nothing is read until the owner calls `ServerSocket.authenticated`.
package protocol SocketOwner: AnyObject, Sendable {
    /// The connection can send.
    func opened(_ socket: ServerSocket)
    /// One whole binary message, unmasked and with its fragments joined.
    func message(_ bytes: ByteBuffer)
    /// The connection's buffer has crossed a bound of `WebSocketLimits.outboxWatermark`. `true` if it accepts more.
    func writabilityChanged(_ isWritable: Bool)
    /// A message exceeds the limit. The connection sends the returned message, then closes with 1009.
    func oversize() -> [UInt8]?
    /// The peer has not authenticated and is refused. The connection sends the returned message, then closes.
    func refused(_ refusal: OpeningRefusal) -> [UInt8]?
    /// The server is stopping. The owner must call `done` once all messages received have their answers, on any thread. No further message
    /// arrives. By default it is called at once.
    func settle(_ done: @escaping @Sendable () -> Void)
    /// The server is stopping. The connection sends the returned message, then closes with `shutdownCode`.
    func shuttingDown() -> [UInt8]?
    /// The close code when the server is stopping, 1001 by default.
    var shutdownCode: SocketCloseCode { get }
    /// The connection has ended. No call follows.
    func closed(_ reason: SocketCloseReason)
}

extension SocketOwner {
    package func writabilityChanged(_ isWritable: Bool) {}
    package func oversize() -> [UInt8]? { nil }
    package func refused(_ refusal: OpeningRefusal) -> [UInt8]? { nil }
    package func settle(_ done: @escaping @Sendable () -> Void) { done() }
    package func shuttingDown() -> [UInt8]? { nil }
    package var shutdownCode: SocketCloseCode { .goingAway }
}

/// A reason to refuse a peer that has not authenticated.
package enum OpeningRefusal: Hashable, Sendable {
    /// The first message was not complete in time.
    case late
    /// The first message exceeds `WebSocketLimits.openingBytes`.
    case tooLarge
}

/// The reason for a connection's end.
package enum SocketCloseReason: Hashable, Sendable {
    /// The peer sent a close frame, with this code if it had one.
    case peer(code: UInt16?)
    /// The connection failed or ended without a close frame. The text names the cause.
    case lost(String)
    /// No data arrived for at least `WebSocketLimits.silence`, not even an answer to a ping.
    case silent
    /// A message exceeded the limit.
    case oversize
    /// The first message was not complete in time.
    case late
    /// The peer violated the WebSocket protocol. The text names the violation.
    case malformed(String)
    /// `ServerSocket.close` was called with this code.
    case local(code: UInt16)
    /// The server stopped.
    case shutdown
}

/// The WebSocket close codes that the gateway sends (RFC 6455, 7.4.1), and those of Realm's protocol, from 4001.
package enum SocketCloseCode: UInt16, Sendable {
    case normal = 1000
    case goingAway = 1001
    case protocolError = 1002
    case unacceptableData = 1003
    case policyViolation = 1008
    case messageTooBig = 1009
    case internalError = 1011
    case tryAgainLater = 1013
    /// The client's token has expired. The client refreshes it and reconnects.
    case unauthorized = 4001
    /// The client logs its user out.
    case forbidden = 4002
    /// The client asks for the server's location again and reconnects.
    case moved = 4003
}
