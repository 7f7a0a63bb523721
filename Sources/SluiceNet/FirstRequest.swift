import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOWebSocket
import SluiceCore
import SluiceValues

/// The protocol that a connection's first request selected.
enum NegotiatedConnection: Sendable {
    /// Handled by its pipeline alone, without a task.
    case webSocket
    case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
}

/// Reads a connection's first request and completes the pipeline for HTTP or for WebSocket. Then it removes itself.
///
/// NIO's own upgrade handler drops the request if the upgrade is rejected, so no response would be possible.
final class FirstRequest: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        case waiting
        /// The head was read, and the decision on it is due. `isWhole` is `true` once the request's end was read.
        case deciding(isWhole: Bool)
        /// The head was read and accepted. The request's end is due.
        case accepted(HTTPHeaders, WebSocketLimits)
        /// The HTTP handlers are being removed. Data that arrives meanwhile is kept in order.
        case switching([NIOAny])
        /// Negotiated, or answered with a refusal.
        case done
    }

    private let endpoints: [WebSocketEndpoint]
    private let configuration: NetServer.Configuration
    private let ticket: ConnectionTicket
    private let accepted = NIODeadline.now()
    private let decoder: ByteToMessageHandler<HTTPRequestDecoder>
    private let encoder: HTTPResponseEncoder
    private let becomeHTTP: (any Channel) throws -> NegotiatedConnection
    private let negotiated: EventLoopPromise<NegotiatedConnection>
    private var state = State.waiting
    /// The owner of an accepted connection, until the socket's handler takes it over. It must receive `closed` in any case.
    private var owner: (any SocketOwner)?
    private var deadline: Scheduled<Void>?

    init(
        endpoints: [WebSocketEndpoint], configuration: NetServer.Configuration, ticket: ConnectionTicket,
        decoder: ByteToMessageHandler<HTTPRequestDecoder>,
        encoder: HTTPResponseEncoder, negotiated: EventLoopPromise<NegotiatedConnection>,
        becomeHTTP: @escaping (any Channel) throws -> NegotiatedConnection
    ) {
        self.endpoints = endpoints
        self.configuration = configuration
        self.ticket = ticket
        self.decoder = decoder
        self.encoder = encoder
        self.negotiated = negotiated
        self.becomeHTTP = becomeHTTP
    }

    // MARK: Events

    func handlerAdded(context: ChannelHandlerContext) {
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: configuration.firstRequestPatience) { [weak self] in
            // After a refusal, the deadline only closes a connection that had time to read the response.
            if let self, !isDone { ticket.connections.refused(.openingTimeout) }
            context.close(promise: nil)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        deadline?.cancel()
        // A decision that comes later is dropped.
        state = .done
        // Has no effect if the negotiation has succeeded.
        negotiated.fail(ChannelError.alreadyClosed)
        owner.take()?.closed(.lost("the connection ended before it was open"))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch state {
        case .waiting:
            if case .head(let head) = unwrapInboundIn(data) { decide(head, context) }
        case .deciding:
            guard case .end = unwrapInboundIn(data) else { return refuseBody(context) }
            state = .deciding(isWhole: true)
        case .accepted(let headers, let limits):
            guard case .end = unwrapInboundIn(data) else { return refuseBody(context) }
            upgrade(headers, limits, context)
        case .switching(var kept):
            kept.append(data)
            state = .switching(kept)
        case .done:
            context.fireChannelRead(data)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent, ChannelEvent.inputClosed: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch state {
        case .done where !(error is ByteToMessageDecoderError.PayloadTooLargeError): context.fireErrorCaught(error)
        case .waiting where error is HTTPParserError:
            refuse(ErrorResponse(SluiceError(.badRequest, "The request is not HTTP/1.1.", cause: ErrorCause(error))), context)
        default: context.close(promise: nil)
        }
    }

    // MARK: Steps

    private var isDone: Bool { if case .done = state { true } else { false } }

    private func decide(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        if let refusal = RequestHeadRules.refusal(of: head) { return refuse(refusal, context) }
        let peer = NetworkAddress(context.channel.remoteAddress)
        var request = UpgradeRequest(
            target: head.uri, headers: head.headers.map { ($0.name, $0.value) },
            client: peer.map { configuration.trustedProxies.client(peer: $0, head.headers) })
        let wanted = request.list("Upgrade").map { $0.lowercased() }
        guard wanted.contains("websocket"), let endpoint = endpoints.first(where: { $0.matches(request.path) }) else {
            return passOn(head, hasUpgrade: !wanted.isEmpty, context)
        }
        do throws(ErrorResponse) {
            var headers = try handshake(head, context)
            // Counted here, as the middleware that counts plain requests never sees an upgrade.
            if let refusal = tooMany(request.client) { throw endpoint.refusal(refusal) }
            request.subprotocol = try endpoint.subprotocols.name(for: request)
            headers.replaceOrAdd(name: "Sec-WebSocket-Protocol", value: request.subprotocol)
            switch endpoint.accept(request) {
            case .later(let decision): wait(for: decision, headers, endpoint.limits, context)
            case let decision: try follow(decision, headers, endpoint.limits)
            }
        } catch {
            refuse(error, context)
        }
    }

    private func follow(_ decision: UpgradeDecision, _ headers: HTTPHeaders, _ limits: WebSocketLimits) throws(ErrorResponse) {
        switch decision {
        case .accept(let accepted):
            owner = accepted
            state = .accepted(headers, limits)
        case .refuse(let error): throw ErrorResponse(error)
        case .refuseWith(let response): throw response
        case .later: throw ErrorResponse(SluiceError(.internalError, "The decision on an upgrade was put off twice."))
        }
    }

    /// Reads nothing until the decision: the peer is not authenticated, and bytes behind its request would have no bound.
    private func wait(
        for decision: @escaping @Sendable () async -> UpgradeDecision, _ headers: HTTPHeaders, _ limits: WebSocketLimits,
        _ context: ChannelHandlerContext
    ) {
        state = .deciding(isWhole: false)
        read(false, context)
        let promise = context.eventLoop.makePromise(of: UpgradeDecision.self)
        // Unstructured because: the event loop cannot wait. The connection waits no longer than to its deadline.
        promise.completeWithTask { await decision() }
        promise.futureResult.assumeIsolated().whenSuccess { self.decided($0, headers, limits, context) }
    }

    private func decided(
        _ decision: UpgradeDecision, _ headers: HTTPHeaders, _ limits: WebSocketLimits, _ context: ChannelHandlerContext
    ) {
        guard case .deciding(let isWhole) = state else {
            if case .accept(let accepted) = decision { accepted.closed(.lost("the connection ended before it was open")) }
            return
        }
        // First: the socket's handler may stop reading again.
        read(true, context)
        do throws(ErrorResponse) {
            try follow(decision, headers, limits)
            if isWhole { upgrade(headers, limits, context) }
        } catch {
            refuse(error, context)
        }
    }

    private func read(_ isOn: Bool, _ context: ChannelHandlerContext) {
        // Fails on a closed channel alone.
        try? context.channel.syncOptions?.setOption(.autoRead, value: isOn)
    }

    private func refuseBody(_ context: ChannelHandlerContext) {
        refuse(ErrorResponse(SluiceError(.badRequest, "An upgrade request may not have a body.")), context)
        read(true, context)
    }

    /// Counts an upgrade under its client's address, and with it the connection of a proxy.
    private func tooMany(_ client: NetworkAddress?) -> ErrorResponse? {
        if let refusal = configuration.requests?.refusal(of: client) {
            ticket.connections.refused(.requests)
            return refusal
        }
        guard ticket.connections.identify(ticket.id, as: client) != nil else { return nil }
        return ErrorResponse(SluiceError(.tooManyConnections, "The client's address has too many connections open."))
    }

    /// Returns the response headers that complete the handshake (RFC 6455, 4.2.2), without the subprotocol.
    private func handshake(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) throws(ErrorResponse) -> HTTPHeaders {
        let upgrader = NIOWebSocketServerUpgrader(
            shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture([:]) },
            upgradePipelineHandler: { channel, _ in channel.eventLoop.makeSucceededVoidFuture() })
        // The future is complete when it is returned, as both closures return completed futures.
        var answer: Result<HTTPHeaders, any Error>?
        upgrader.buildUpgradeResponse(channel: context.channel, upgradeRequest: head, initialResponseHeaders: [:])
            .assumeIsolated().whenComplete { answer = $0 }
        guard case .success(let headers) = answer else {
            throw ErrorResponse(
                SluiceError(
                    .badRequest, "The upgrade request is not a WebSocket handshake of version 13.",
                    fix: "Send one Sec-WebSocket-Key and Sec-WebSocket-Version: 13."))
        }
        return headers
    }

    private func passOn(_ head: HTTPRequestHead, hasUpgrade: Bool, _ context: ChannelHandlerContext) {
        state = .done
        do {
            negotiated.succeed(try becomeHTTP(context.channel))
        } catch {
            negotiated.fail(error)
            context.close(promise: nil)
            return
        }
        var head = head
        // The decoder reads nothing after a request that asks for any upgrade, so this request is the connection's last.
        if hasUpgrade { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        context.fireChannelRead(wrapInboundOut(.head(head)))
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    private func refuse(_ response: ErrorResponse, _ context: ChannelHandlerContext) {
        state = .done
        // The client, or the deadline, closes the rest.
        response.writeLast(context)
    }

    private func upgrade(_ headers: HTTPHeaders, _ limits: WebSocketLimits, _ context: ChannelHandlerContext) {
        state = .switching([])
        let head = HTTPResponseHead(version: .http1_1, status: .switchingProtocols, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        let pipeline = context.pipeline.syncOperations
        // Removing the decoder forwards its leftover bytes, which `switching` keeps in order.
        pipeline.removeHandler(decoder).assumeIsolated()
            .flatMap { pipeline.removeHandler(self.encoder) }
            .whenComplete { self.becomeWebSocket(limits, $0, context) }
    }

    private func becomeWebSocket(
        _ limits: WebSocketLimits, _ removed: Result<Void, any Error>, _ context: ChannelHandlerContext
    ) {
        guard case .switching(let kept) = state, case .success = removed, let accepted = owner.take() else {
            return context.close(promise: nil)
        }
        state = .done
        do {
            let pipeline = context.pipeline.syncOperations
            try context.channel.syncOptions?.setOption(
                .writeBufferWaterMark, value: .init(low: limits.outboxWatermark.lowerBound, high: limits.outboxWatermark.upperBound))
            try pipeline.addHandler(
                SocketHandler(owner: accepted, limits: limits, ticket: ticket, deadline: self.accepted + limits.openingPatience))
        } catch {
            accepted.closed(.lost("\(error)"))
            return context.close(promise: nil)
        }
        negotiated.succeed(.webSocket)
        // Bytes behind the request are the first WebSocket frames. The new handler is in place before they are replayed.
        for data in kept { context.fireChannelRead(data) }
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }
}
