package import NIOCore
package import SluiceCore

/// Bounds of one WebSocket connection.
package struct WebSocketLimits: Sendable {
    /// The maximum message of an authenticated peer, in bytes. Beyond it: `SocketOwner.oversize`, close 1009.
    package var messageBytes: Int
    /// The maximum message and frame before authentication, in bytes. Beyond it: `SocketOwner.refused`, close 1009.
    package var openingBytes: Int
    /// The limit from accepting the connection to the peer's first whole message. Beyond it: `SocketOwner.refused`, close 1008.
    package var openingPatience: TimeAmount
    /// The interval between pings.
    package var pingInterval: TimeAmount
    /// The silence after which the server drops a peer that it reads from. Counted in unanswered pings, so up to one interval more.
    package var silence: TimeAmount
    /// The time that a peer has to answer a close frame. Then the server drops it.
    package var closeGrace: TimeAmount
    /// The bytes waiting to be written at which `isWritable` becomes `true` again (lower bound) and `false` (upper bound).
    package var outboxWatermark: ClosedRange<Int>

    package init(
        messageBytes: Int = Limits.messageBytes, openingBytes: Int = Limits.openingBytes,
        openingPatience: TimeAmount = .seconds(Limits.openingSeconds), pingInterval: TimeAmount = .seconds(30),
        silence: TimeAmount = .seconds(90),
        closeGrace: TimeAmount = .seconds(2), outboxWatermark: ClosedRange<Int> = (256 << 10)...(1 << 20)
    ) {
        self.messageBytes = messageBytes
        self.openingBytes = min(openingBytes, messageBytes)
        self.openingPatience = openingPatience
        self.pingInterval = pingInterval
        self.silence = silence
        self.closeGrace = closeGrace
        self.outboxWatermark = outboxWatermark
    }

    /// The number of pings that may stay unanswered.
    var patience: Int { max(1, Int(silence.nanoseconds / max(1, pingInterval.nanoseconds))) }
}

/// A request for a WebSocket connection.
package struct UpgradeRequest: Sendable {
    /// Percent-encoded, without the query.
    package var path: String
    /// The text after the question mark, percent-encoded. Empty if there is none.
    package var query: String
    /// The client's address, resolved behind trusted proxies. `nil` on a Unix socket.
    package var client: NetworkAddress?
    /// In the order received, with names as written.
    package var headers: [(name: String, value: String)]

    package init(target: String, headers: [(name: String, value: String)] = [], client: NetworkAddress? = nil) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(parts[0])
        query = parts.count > 1 ? String(parts[1]) : ""
        self.headers = headers
        self.client = client
    }

    /// Returns the first value of a header. Ignores the case of its name.
    package func header(_ name: String) -> String? {
        let wanted = name.lowercased()
        return headers.first { $0.name.lowercased() == wanted }?.value
    }

    /// Returns the members of a comma-separated header, over all its lines.
    package func list(_ name: String) -> [String] {
        let wanted = name.lowercased()
        return headers.lazy.filter { $0.name.lowercased() == wanted }
            .flatMap { $0.value.split(separator: ",") }
            .map { String($0.drop { $0 == " " }.prefix { $0 != " " }) }
    }
}

package enum UpgradeDecision: Sendable {
    case accept(any SocketOwner)
    /// Answered with the error as JSON, under the HTTP status of its code (`ErrorCode.httpStatus`).
    case refuse(SluiceError)
}

/// The endpoint of WebSocket connections.
package struct WebSocketEndpoint: Sendable {
    package static let subprotocol = "sluice.v1"

    /// Returns `true` if a path (without query) is this endpoint's.
    package var matches: @Sendable (String) -> Bool
    /// Decides on a valid upgrade request for `sluice.v1`. Called on an event loop; it must not block.
    package var accept: @Sendable (UpgradeRequest) -> UpgradeDecision
    package var limits: WebSocketLimits

    package init(
        limits: WebSocketLimits = WebSocketLimits(), matches: @escaping @Sendable (String) -> Bool,
        accept: @escaping @Sendable (UpgradeRequest) -> UpgradeDecision
    ) {
        self.limits = limits
        self.matches = matches
        self.accept = accept
    }

    /// Decides on any upgrade request for one of this endpoint's paths.
    func decide(_ request: UpgradeRequest) -> UpgradeDecision {
        guard request.list("Sec-WebSocket-Protocol").contains(Self.subprotocol) else {
            let offered = request.list("Sec-WebSocket-Protocol").joined(separator: ", ")
            return .refuse(
                SluiceError(
                    .wrongProtocolVersion,
                    "The subprotocols offered (\(offered.isEmpty ? "none" : offered)) do not include \(Self.subprotocol).",
                    fix: "Send the header Sec-WebSocket-Protocol: \(Self.subprotocol)."))
        }
        return accept(request)
    }
}
