import SluiceCore
import SluiceSync
import SluiceTools
import SluiceWire
import Synchronization
import Testing

struct WatchSessionTests {
    private static let refusal = SluiceError(.unknownType, "The app has no class 'BoardNotes'.")

    private static func failure(of gateway: HastyGateway) async -> SluiceError? {
        do {
            try await WatchSession(type: "BoardNotes", query: "TRUEPREDICATE", transport: gateway)
                .run(url: "http://gateway.test", app: "airport", token: "token")
            return nil
        } catch {
            return error as? SluiceError
        }
    }

    @Test func `a gateway that refuses the session before it reads the subscription is quoted`() async throws {
        let message = PBServerMessage(.error(PBSessionError(Self.refusal, action: .applicationBug, fatal: true)))
        let gateway = HastyGateway(answers: [try WireProtocol.encode(message)])
        let failure = await Self.failure(of: gateway)
        #expect(failure?.code == .unknownType)
        #expect(failure?.message == Self.refusal.message)
        #expect(gateway.isClosed)
    }

    @Test func `a gateway that ends without a word leaves the reason of the message that was not sent`() async {
        let gateway = HastyGateway(answers: [])
        #expect(await Self.failure(of: gateway)?.code == .connectionFailed)
        #expect(gateway.isClosed)
    }
}

/// A connection that takes one message, and whose peer has then answered and closed.
private final class HastyGateway: SyncTransport, SyncConnection {
    private struct State {
        var taken = 0
        var answers: [[UInt8]]
        var isClosed = false
    }

    private let state: Mutex<State>

    init(answers: [[UInt8]]) { state = Mutex(State(answers: answers)) }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    func connect(_ request: SyncRequest) -> any SyncConnection { self }

    func send(_ message: [UInt8]) throws(SluiceError) {
        let taken = state.withLock { state in
            state.taken += 1
            return state.taken
        }
        guard taken == 1 else { throw SluiceError(.connectionFailed, "A message could not be sent.") }
    }

    func ping() {}

    func next() -> SyncInbound? {
        state.withLock { $0.answers.isEmpty ? nil : .message($0.answers.removeFirst()) }
    }

    func close() { state.withLock { $0.isClosed = true } }
}
