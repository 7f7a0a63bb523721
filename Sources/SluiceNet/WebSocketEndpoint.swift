package import NIOCore
package import SluiceCore
import SluiceValues

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
    /// The subprotocol that the endpoint chose. Empty before the choice.
    package internal(set) var subprotocol = ""

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

    /// Returns the first value of a query parameter, percent-decoded. Nil if it is missing or damaged.
    package func parameter(_ name: String) -> String? {
        for pair in query.utf8.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            if Self.decoded(parts[0]) == name { return parts.count > 1 ? Self.decoded(parts[1]) : "" }
        }
        return nil
    }

    /// Returns nil for half an escape, and for bytes that are not UTF-8.
    private static func decoded(_ text: some Collection<UInt8>) -> String? {
        var bytes: [UInt8] = []
        var rest = text[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst(), let low = rest.popFirst(), let high = Hex.nibble(high), let low = Hex.nibble(low) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

package enum UpgradeDecision: Sendable {
    case accept(any SocketOwner)
    /// Answered with the error as JSON, under the HTTP status of its code (`ErrorCode.httpStatus`).
    case refuse(SluiceError)
    /// Answered with this response, for a client that acts on the status.
    case refuseWith(ErrorResponse)
    /// Answered with the result, which must not be `later` again. Until then nothing more is read from the connection.
    /// `NetServer.Configuration.firstRequestPatience` bounds the wait.
    case later(@Sendable () async -> UpgradeDecision)
}

/// The endpoint of WebSocket connections.
package struct WebSocketEndpoint: Sendable {
    package static let subprotocol = "sluice.v1"

    /// Returns `true` if a path (without query) is this endpoint's.
    package var matches: @Sendable (String) -> Bool
    package var subprotocols: SubprotocolChoice
    /// Decides on a valid upgrade request with a chosen subprotocol. Called on an event loop; it must not block.
    package var accept: @Sendable (UpgradeRequest) -> UpgradeDecision
    package var limits: WebSocketLimits
    /// Returns the response for an upgrade that a limit of the server refuses, for clients that act on the status.
    package var refusal: @Sendable (ErrorResponse) -> ErrorResponse = { $0 }

    package init(
        limits: WebSocketLimits = WebSocketLimits(), subprotocols: SubprotocolChoice = .only(WebSocketEndpoint.subprotocol),
        matches: @escaping @Sendable (String) -> Bool,
        accept: @escaping @Sendable (UpgradeRequest) -> UpgradeDecision
    ) {
        self.limits = limits
        self.subprotocols = subprotocols
        self.matches = matches
        self.accept = accept
    }
}
