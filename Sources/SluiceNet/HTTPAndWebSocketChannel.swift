import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOSSL
import SluiceCore

/// HTTP and WebSocket on one port: the first request of a connection decides which it becomes.
struct HTTPAndWebSocketChannel: ServerChildChannel, HTTPChannelHandler {
    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let negotiated: EventLoopFuture<NegotiatedConnection>
        let ticket: ConnectionTicket
    }

    /// The sizes of reads. They follow what arrives. An idle connection keeps the buffers of its last reads, so they begin small.
    private static let reads = AdaptiveRecvByteBufferAllocator(minimum: 64, initial: 1_024, maximum: 65_536)

    /// The most bytes that wait for the decoder. It keeps a head, the frames behind an upgrade, and all that follows a request with an
    /// `Upgrade` field or the method CONNECT. More of it ends the connection.
    private static let undecodedBytes = 256 << 10

    var responder: HTTPChannelHandler.Responder
    let configuration: NetServer.Configuration
    let endpoints: [WebSocketEndpoint]
    let tls: ServerTLS?
    let connections: OpenConnections

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            guard let ticket = connections.admit(channel) else { throw ChannelError.ioOnClosedChannel }
            try channel.syncOptions?.setOption(.recvAllocator, value: Self.reads)
            let pipeline = channel.pipeline.syncOperations
            if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls.context)) }
            let encoder = HTTPResponseEncoder()
            let decoder = ByteToMessageHandler(
                HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes), maximumBufferSize: Self.undecodedBytes)
            let negotiated = channel.eventLoop.makePromise(of: NegotiatedConnection.self)
            let first = FirstRequest(
                endpoints: endpoints, configuration: configuration, ticket: ticket, decoder: decoder, encoder: encoder,
                negotiated: negotiated,
                becomeHTTP: { try becomeHTTP($0, ticket, logger: logger) })
            try pipeline.addHandlers([encoder, decoder, first])
            return Value(channel: channel, negotiated: negotiated.futureResult, ticket: ticket)
        }
    }

    private func becomeHTTP(_ channel: any Channel, _ ticket: ConnectionTicket, logger: Logger) throws -> NegotiatedConnection {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(RequestGuard())
        try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: tls != nil))
        try pipeline.addHandler(RequestWatch(bounds: configuration.bodies, ticket: ticket))
        try pipeline.addHandler(HTTPConnectionStateHandler(idleTimeout: configuration.idleTimeout, logger: logger))
        return .http(
            try NIOAsyncChannel(wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true)))
    }

    func handle(value: Value, logger: Logger) async {
        do {
            guard case .http(let channel) = try await value.negotiated.get() else { return }
            var answering = self
            answering.responder = guarded
            let handler = answering
            await ConnectionTicket.$current.withValue(value.ticket) { await handler.handleHTTP(asyncChannel: channel, logger: logger) }
        } catch {
            logger.debug("connection not negotiated", metadata: ["error": "\(error)"])
            value.channel.close(promise: nil)
        }
    }

    /// The responder, except that plain requests to a WebSocket endpoint are answered with what was wrong with them.
    private var guarded: HTTPChannelHandler.Responder {
        guard !endpoints.isEmpty else { return responder }
        return { [responder, endpoints] request, writer, channel in
            guard let endpoint = endpoints.first(where: { $0.matches(request.uri.path) }) else {
                try await responder(request, writer, channel)
                return
            }
            let response = Self.upgradeRequired(request, endpoint.subprotocols.advised)
            try await writer.write(response: response.head, body: response.body)
        }
    }

    private static func upgradeRequired(_ request: Request, _ subprotocol: String) -> Response {
        let error = SluiceError(
            .badRequest, "\(request.uri.path) takes WebSocket connections only, and only as a connection's first request.",
            fix:
                "Send Upgrade: websocket with Sec-WebSocket-Version: 13, a Sec-WebSocket-Key and Sec-WebSocket-Protocol: \(subprotocol)."
        )
        var response = ErrorResponse(error, status: .upgradeRequired).response
        response.headers[.upgrade] = "websocket"
        response.headers[.connection] = "upgrade"
        return response
    }
}
