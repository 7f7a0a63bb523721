import HTTPTypes
import NIOCore
import NIOHTTP1
import SluiceCore
import SluiceValues

/// Refuses malformed requests of an HTTP connection with 400, and closes the connection.
///
/// The refusal follows the responses to the requests before it. Nothing behind a malformed request is read: its bytes may belong to no
/// request (`RequestHeadRules`). Runs on the channel's event loop.
final class RequestGuard: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The requests whose heads were passed on and whose responses have not ended.
    private var unanswered = 0
    /// `true` from a request's head until its end.
    private var isInRequest = false
    /// The refusal that waits for the responses before it.
    private var refusal: ErrorResponse?
    private var isOver = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isOver || refusal != nil { return }
        switch unwrapInboundIn(data) {
        case .head(let head):
            if let refusal = RequestHeadRules.refusal(of: head) { return refuse(refusal, context) }
            unanswered += 1
            isInRequest = true
        case .body: break
        case .end: isInRequest = false
        }
        context.fireChannelRead(data)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The rest belongs to no request.
        if error is ByteToMessageDecoderError.PayloadTooLargeError { return context.close(promise: nil) }
        // A broken body has a request whose handler waits for the rest, so only the end of the connection ends it.
        guard error is HTTPParserError, !isInRequest else { return context.fireErrorCaught(error) }
        refuse(ErrorResponse(SluiceError(.badRequest, "The request is not HTTP/1.1.", cause: ErrorCause(error))), context)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if isOver {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        // An informational head, such as 100, has no end.
        if case .end = unwrapOutboundIn(data) { unanswered -= 1 }
        context.write(data, promise: promise)
        if unanswered == 0, let refusal = refusal.take() { answer(refusal, context) }
    }

    private func refuse(_ response: ErrorResponse, _ context: ChannelHandlerContext) {
        if isOver || refusal != nil { return }
        if unanswered == 0 { answer(response, context) } else { refusal = response }
    }

    private func answer(_ response: ErrorResponse, _ context: ChannelHandlerContext) {
        isOver = true
        // The client, or the idle timeout, closes the rest.
        response.writeLast(context)
    }
}

extension ErrorResponse {
    /// Writes the last response of a connection for the encoder of HTTP/1.1, and closes the output.
    ///
    /// The input stays open: a close with unread input resets the connection, and the client might not see the response.
    func writeLast(_ context: ChannelHandlerContext) {
        let body = ByteBuffer(bytes: json.utf8)
        var headers: HTTPHeaders = [
            "Content-Type": "application/json", "Content-Length": String(body.readableBytes), "Connection": "close",
        ]
        if let retryAfter { headers.add(name: "Retry-After", value: String(retryAfter)) }
        let head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: status.code), headers: headers)
        context.write(NIOAny(HTTPServerResponsePart.head(head)), promise: nil)
        context.write(NIOAny(HTTPServerResponsePart.body(.byteBuffer(body))), promise: nil)
        context.writeAndFlush(NIOAny(HTTPServerResponsePart.end(nil)), promise: nil)
        context.close(mode: .output, promise: nil)
    }
}
