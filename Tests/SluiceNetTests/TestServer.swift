import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle
import SluiceCore
import SluiceNet
import SluiceValues
import Synchronization

/// A server for one test, with a socket endpoint at /sync whose owners are recorded, and others.
struct TestServer: Sendable {
    let port: Int
    let server: NetServer
    let owners: AsyncStream<Recorder>
    let stop: @Sendable () async -> Void

    /// The owner of the next connection that is opened.
    func nextOwner() async throws -> Recorder {
        var iterator = owners.makeAsyncIterator()
        guard let owner = await iterator.next() else { throw RawClient.Ended() }
        return owner
    }
}

func withServer<Result: Sendable>(
    _ configuration: NetServer.Configuration = .init(), limits: WebSocketLimits = .init(), authenticates: Bool = true,
    others: (@escaping @Sendable (Recorder) -> Void) -> [WebSocketEndpoint] = { _ in [] },
    _ body: @Sendable (TestServer) async throws -> Result
) async throws -> Result {
    let (owners, continuation) = AsyncStream<Recorder>.makeStream(bufferingPolicy: .bufferingOldest(10_000))
    let endpoint = WebSocketEndpoint(limits: limits, matches: { $0 == "/sync" || $0 == "/closed" }) { request in
        if request.path == "/closed" { return .refuse(SluiceError(.permissionDenied, "Nobody may enter \(request.path).")) }
        let owner = Recorder(request: request, authenticates: authenticates)
        continuation.yield(owner)
        return .accept(owner)
    }
    let server = NetServer(
        configuration: configuration, router: routes(configuration), webSockets: [endpoint] + others { continuation.yield($0) },
        logger: quiet)
    let group = ServiceGroup(configuration: .init(services: [server], logger: quiet))
    return try await withThrowingTaskGroup(of: Void.self) { tasks in
        tasks.addTask { try await group.run() }
        let test = TestServer(port: try await server.port, server: server, owners: owners) { await group.triggerGracefulShutdown() }
        let result = try await body(test)
        await group.triggerGracefulShutdown()
        try await tasks.waitForAll()
        return result
    }
}

let quiet: Logger = {
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    return logger
}()

private func routes(_ configuration: NetServer.Configuration) -> Router<ClientContext> {
    let router = Router(context: ClientContext.self)
    router.add(middleware: ClientAddressMiddleware(proxies: configuration.trustedProxies))
    router.add(middleware: ErrorMiddleware())
    if let limiter = configuration.requests { router.add(middleware: RequestLimitMiddleware(limiter: limiter)) }
    router.get("address") { _, context in JSONResponse(["address": .string(context.clientAddress?.description ?? "")]) }
    router.get("origin") { _, context in
        let origin = context.forwardedOrigin
        let scheme = origin.isSecure.map { $0 ? "https" : "http" } ?? "-"
        return JSONResponse(["origin": .string("\(scheme)://\(origin.authority?.description ?? "-")")])
    }
    router.get("hello") { _, _ in JSONResponse(["greeting": "hello"]) }
    router.get("fail") { _, _ -> Response in throw SluiceError(.invalidPassword, "The password of 'a@b' is wrong.") }
    router.get("secret") { _, _ -> Response in throw RawClient.Ended() }
    router.post("later") { request, context in
        // Longer than the grace of a body. This is the time that the test is about.
        try await Task.sleep(for: .milliseconds(1_500))
        var count = 0
        for try await piece in request.body { count += piece.readableBytes }
        return JSONResponse(["bytes": .int(Int64(count))])
    }
    router.post("echo") { request, _ in JSONResponse(try await request.json(upTo: 64)) }
    return router
}

/// A socket's owner that notes what happens to it.
final class Recorder: SocketOwner {
    enum Event: Equatable, Sendable {
        case opened
        case message([UInt8])
        case writable(Bool)
        case settling
        case closed(SocketCloseReason)
    }

    let request: UpgradeRequest
    private let authenticates: Bool
    private let stream: AsyncStream<Event>
    private let events: AsyncStream<Event>.Continuation
    private let held = Mutex<ServerSocket?>(nil)
    /// The messages that begin with a question mark and have no answer, and what the server waits for meanwhile.
    private let questions = Mutex<(count: Int, done: (@Sendable () -> Void)?)>((0, nil))

    init(request: UpgradeRequest, authenticates: Bool) {
        self.request = request
        self.authenticates = authenticates
        (stream, events) = AsyncStream<Event>.makeStream(bufferingPolicy: .bufferingOldest(100_000))
    }

    /// Nil before `opened`.
    var socket: ServerSocket? { held.withLock(\.self) }

    /// The next thing that happens.
    func next() async -> Event? {
        var iterator = stream.makeAsyncIterator()
        return await iterator.next()
    }

    /// The socket, once it is open.
    func open() async throws -> ServerSocket {
        while let event = await next() {
            if event == .opened, let socket { return socket }
        }
        throw RawClient.Ended()
    }

    /// Waits for the end; why it came.
    func end() async -> SocketCloseReason? {
        while let event = await next() {
            if case .closed(let reason) = event { return reason }
        }
        return nil
    }

    func opened(_ socket: ServerSocket) {
        held.withLock { $0 = socket }
        if authenticates { socket.authenticated() }
        events.yield(.opened)
    }

    func message(_ bytes: ByteBuffer) {
        let message = Array(bytes.readableBytesView)
        if message.first == UInt8(ascii: "?") { questions.withLock { $0.count += 1 } }
        events.yield(.message(message))
        if message.first == UInt8(ascii: "!") { socket?.send(SharedFrame.encode(binary: message)) }
    }

    func writabilityChanged(_ isWritable: Bool) { events.yield(.writable(isWritable)) }
    func oversize() -> [UInt8]? { Array("too big".utf8) }
    func refused(_ refusal: OpeningRefusal) -> [UInt8]? { Array("\(refusal)".utf8) }
    /// Answers all questions.
    func answer(_ text: String) {
        socket?.send(SharedFrame.encode(binary: Array(text.utf8)))
        let done = questions.withLock { questions in
            defer { questions = (0, nil) }
            return questions.done
        }
        done?()
    }

    func settle(_ done: @escaping @Sendable () -> Void) {
        let isAnswered = questions.withLock { questions in
            if questions.count > 0 { questions.done = done }
            return questions.count == 0
        }
        if isAnswered { done() }
        events.yield(.settling)
    }

    func shuttingDown() -> [UInt8]? { Array("stopping".utf8) }

    func closed(_ reason: SocketCloseReason) {
        events.yield(.closed(reason))
        events.finish()
    }
}
