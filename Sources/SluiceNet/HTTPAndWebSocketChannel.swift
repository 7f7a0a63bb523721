import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOSSL
import SluiceCore

/// What a connection's first request made of it.
enum NegotiatedConnection: Sendable {
    /// Handled by its pipeline alone; no task belongs to it.
    case webSocket
    case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>, refusal: SluiceError?)
}

/// HTTP and WebSocket on one port: the first request of a connection decides which it becomes.
struct HTTPAndWebSocketChannel: ServerChildChannel, HTTPChannelHandler {
    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let negotiated: EventLoopFuture<NegotiatedConnection>
    }

    var responder: HTTPChannelHandler.Responder
    let configuration: NetServer.Configuration
    let endpoint: WebSocketEndpoint?
    let tls: NIOSSLContext?
    let connections: OpenConnections

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            connections.add(channel)
            let pipeline = channel.pipeline.syncOperations
            if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls)) }
            try pipeline.addHandler(FirstRequestGuard(patience: configuration.firstRequestPatience))
            let decision = WebSocketUpgrade.Decision()
            let upgraders = endpoint.map { [WebSocketUpgrade(endpoint: $0, decision: decision)] } ?? []
            var http = NIOUpgradableHTTPServerPipelineConfiguration(
                upgradeConfiguration: NIOTypedHTTPServerUpgradeConfiguration(
                    upgraders: upgraders,
                    notUpgradingCompletionHandler: { becomeHTTP($0, refusal: decision.refusal, logger: logger) }))
            http.enablePipelining = false
            http.enableErrorHandling = false
            http.enableResponseHeaderValidation = false
            return Value(channel: channel, negotiated: try pipeline.configureUpgradableHTTPServerPipeline(configuration: http))
        }
    }

    private func becomeHTTP(_ channel: any Channel, refusal: SluiceError?, logger: Logger) -> EventLoopFuture<NegotiatedConnection> {
        channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            pipeline.removeFirstRequestGuard()
            try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: tls != nil))
            try pipeline.addHandler(HTTPConnectionStateHandler(idleTimeout: configuration.idleTimeout, logger: logger))
            return .http(
                try NIOAsyncChannel(wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true)),
                refusal: refusal)
        }
    }

    func handle(value: Value, logger: Logger) async {
        do {
            guard case .http(let channel, let refusal) = try await value.negotiated.get() else { return }
            var answering = self
            answering.responder = refusing(with: refusal)
            await answering.handleHTTP(asyncChannel: channel, logger: logger)
        } catch {
            logger.debug("connection not negotiated", metadata: ["error": "\(error)"])
            value.channel.close(promise: nil)
        }
    }

    /// The responder, except that plain requests to the WebSocket endpoint are answered with what was wrong with them.
    private func refusing(with refusal: SluiceError?) -> HTTPChannelHandler.Responder {
        guard let endpoint else { return responder }
        return { [responder] request, writer, channel in
            guard endpoint.matches(request.uri.path) else {
                try await responder(request, writer, channel)
                return
            }
            let response = refusal.map { ErrorResponse($0).response } ?? Self.upgradeRequired(request)
            try await writer.write(response: response.head, body: response.body)
        }
    }

    private static func upgradeRequired(_ request: Request) -> Response {
        let error = SluiceError(
            .badRequest, "\(request.uri.path) takes WebSocket connections only, and only as a connection's first request.",
            fix:
                "Send Upgrade: websocket with Sec-WebSocket-Version: 13, a Sec-WebSocket-Key and Sec-WebSocket-Protocol: \(WebSocketEndpoint.subprotocol)."
        )
        var response = ErrorResponse(error, status: .upgradeRequired).response
        response.headers[.upgrade] = "websocket"
        response.headers[.connection] = "upgrade"
        return response
    }
}
