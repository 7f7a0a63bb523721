import NIOCore
import NIOPosix

/// Passes on all that clients send, and of the gateway's bytes only the first ones until it is opened.
///
/// A session that only stops to read is no slow client: the kernel's buffers have grown to tens of megabytes by then.
package final class HeldRelay: Sendable {
    package let url: String
    private let opened: EventLoopPromise<Void>

    private init(_ port: Int, _ opened: EventLoopPromise<Void>) {
        url = "http://127.0.0.1:\(port)"
        self.opened = opened
    }

    /// Runs a body with a relay to a gateway.
    ///
    /// - Parameters:
    ///   - target: the gateway's URL, which ends with the port.
    ///   - bytes: of the gateway's bytes on each connection, how many pass before the relay holds; up to one read more do.
    package static func with(_ target: String, passing bytes: Int, _ body: (HeldRelay) async throws -> Void) async throws {
        let port = Int(target.split(separator: ":").last ?? "") ?? 0
        let group = MultiThreadedEventLoopGroup.singleton
        let opened = group.next().makePromise(of: Void.self)
        defer { opened.succeed() }
        let server = try await ServerBootstrap(group: group)
            .childChannelOption(.autoRead, value: false)
            .childChannelInitializer { near in
                ClientBootstrap(group: near.eventLoop)
                    .channelOption(.autoRead, value: false)
                    // A size that is set before the connection never grows.
                    .channelOption(.socketOption(.so_rcvbuf), value: 64 << 10)
                    .connect(host: "127.0.0.1", port: port)
                    .flatMapThrowing { far in
                        try near.pipeline.syncOperations.addHandler(OneWay(to: far, freely: .max, opened.futureResult))
                        try far.pipeline.syncOperations.addHandler(OneWay(to: near, freely: bytes, opened.futureResult))
                    }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        do {
            try await body(HeldRelay(server.localAddress?.port ?? 0, opened))
        } catch {
            try await server.close()
            throw error
        }
        try await server.close()
    }

    /// Passes on what it held, and everything from now on.
    package func open() { opened.succeed() }

    /// Reads again when the other side has taken what was read.
    private final class OneWay: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let other: any Channel
        private let opened: EventLoopFuture<Void>
        private var freely: Int

        init(to other: any Channel, freely: Int, _ opened: EventLoopFuture<Void>) {
            self.other = other
            self.freely = freely
            self.opened = opened
        }

        func handlerAdded(context: ChannelHandlerContext) { if context.channel.isActive { context.read() } }
        func channelActive(context: ChannelHandlerContext) { context.read() }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = unwrapInboundIn(data)
            freely -= min(freely, bytes.readableBytes)
            other.write(bytes, promise: nil)
        }

        func channelReadComplete(context: ChannelHandlerContext) {
            let channel = context.channel
            let written = other.writeAndFlush(ByteBuffer())
            (freely > 0 ? written : written.and(opened.hop(to: channel.eventLoop)).map { _ in }).whenSuccess { channel.read() }
        }

        func channelInactive(context: ChannelHandlerContext) { other.close(promise: nil) }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
