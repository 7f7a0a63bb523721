import NIOCore
import NIOHTTP1
import NIOWebSocket
import SluiceCore
import Synchronization

/// The upgrade of one connection: the handshake is NIO's, the pipeline afterwards is ours (no frame encoder: frames are
/// encoded once for all receivers).
final class WebSocketUpgrade: NIOTypedHTTPServerProtocolUpgrader {
    typealias UpgradeResult = NegotiatedConnection

    let supportedProtocol = "websocket"
    let requiredUpgradeHeaders: [String] = []
    private let limits: WebSocketLimits
    private let decision: Decision
    private let handshake: NIOTypedWebSocketServerUpgrader<NegotiatedConnection>

    /// What was decided, on its way from the handshake to the pipeline or to the HTTP responder.
    final class Decision: Sendable {
        private let taken = Mutex<UpgradeDecision?>(nil)

        func set(_ decision: UpgradeDecision) { taken.withLock { $0 = decision } }

        /// The owner of an accepted connection, once.
        func takeOwner() -> (any SocketOwner)? {
            guard case .accept(let owner) = taken.withLock({ $0.take() }) else { return nil }
            return owner
        }

        var refusal: SluiceError? {
            guard case .refuse(let error) = taken.withLock(\.self) else { return nil }
            return error
        }
    }

    init(endpoint: WebSocketEndpoint, decision: Decision) {
        limits = endpoint.limits
        self.decision = decision
        handshake = NIOTypedWebSocketServerUpgrader(
            shouldUpgrade: { channel, head in
                channel.eventLoop.makeSucceededFuture(Self.headers(endpoint, head, channel, decision))
            },
            upgradePipelineHandler: { channel, _ in channel.eventLoop.makeSucceededFuture(.webSocket) })
    }

    func buildUpgradeResponse(
        channel: any Channel, upgradeRequest: HTTPRequestHead, initialResponseHeaders: HTTPHeaders
    ) -> EventLoopFuture<HTTPHeaders> {
        handshake.buildUpgradeResponse(
            channel: channel, upgradeRequest: upgradeRequest, initialResponseHeaders: initialResponseHeaders)
    }

    func upgrade(channel: any Channel, upgradeRequest: HTTPRequestHead) -> EventLoopFuture<NegotiatedConnection> {
        channel.eventLoop.makeCompletedFuture {
            guard let owner = decision.takeOwner() else { throw ChannelError.inappropriateOperationForState }
            let pipeline = channel.pipeline.syncOperations
            pipeline.removeFirstRequestGuard()
            try channel.syncOptions?.setOption(
                .writeBufferWaterMark,
                value: .init(low: limits.outboxWatermark.lowerBound, high: max(limits.outboxWatermark.upperBound, 2)))
            try pipeline.addHandler(ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: min(limits.messageBytes, Int(UInt32.max)))))
            try pipeline.addHandler(SocketHandler(owner: owner, limits: limits))
            return .webSocket
        }
    }

    /// The extra headers of the answer when the upgrade is taken, else nil.
    private static func headers(
        _ endpoint: WebSocketEndpoint, _ head: HTTPRequestHead, _ channel: any Channel, _ decision: Decision
    ) -> HTTPHeaders? {
        let request = UpgradeRequest(
            target: head.uri, headers: head.headers.map { ($0.name, $0.value) },
            remoteAddress: channel.remoteAddress.map(ServerSocket.text))
        guard endpoint.matches(request.path) else { return nil }
        let taken = endpoint.decide(request)
        decision.set(taken)
        guard case .accept = taken else { return nil }
        return ["Sec-WebSocket-Protocol": WebSocketEndpoint.subprotocol]
    }
}
