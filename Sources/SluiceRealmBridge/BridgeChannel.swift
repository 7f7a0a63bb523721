import DequeModule
import SluiceCore
import SluicePipeline
import SluicePorts
import SluiceRealm
import SluiceWire
import Synchronization

/// The channel of a file's session in this process: messages wait until the views of the file take them.
///
/// The bytes that wait are the session's back-pressure. The fan-out ends a session with more than `Limits.outboxBytes`.
final class BridgeChannel: SessionChannel {
    private struct State {
        var messages: Deque<[UInt8]> = []
        var bytes = 0
        var isClosed = false
        var error: SluiceError?
        /// The rejected writes, by changeset.
        var rejected: [UInt64: [RealmRejectedUpdate]] = [:]
    }

    private let state = Mutex(State())
    /// Called after each message and at the close.
    private let onWake: @Sendable () -> Void
    /// Counts 1 once a message has come.
    private let begun: AsyncEvent
    private let taken: AsyncEvent
    /// Told of the first message that waits, and of the last one that is taken.
    private let pace: LocalPace
    /// Counts up to the last changeset that is acknowledged.
    let acknowledged: AsyncEvent
    /// Counts up to the last changeset whose asymmetric objects are durable.
    let ingested: AsyncEvent
    /// Counts up to the last subscription set that is live or refused.
    let answered: AsyncEvent

    init(environment: any Environment, pace: LocalPace, onWake: @escaping @Sendable () -> Void) {
        (self.onWake, self.pace) = (onWake, pace)
        (begun, taken) = (AsyncEvent(environment: environment), AsyncEvent(environment: environment))
        (acknowledged, answered) = (AsyncEvent(environment: environment), AsyncEvent(environment: environment))
        ingested = AsyncEvent(environment: environment)
    }

    var isLocal: Bool { true }
    var bufferedBytes: Int { state.withLock { $0.bytes } }
    var isClosed: Bool { state.withLock { $0.isClosed } }
    /// The error that closed the channel; nil for none.
    var error: SluiceError? { state.withLock { $0.error } }

    func send(_ frames: [Frame]) {
        var (acknowledged, ingested, answered) = (UInt64(0), UInt64(0), UInt64(0))
        let isFirst = state.withLock { state in
            guard !state.isClosed else { return false }
            let wasEmpty = state.messages.isEmpty
            for message in frames.compactMap({ MessageFrames.message(of: $0) }) {
                switch BridgeMessage.answer(message) {
                case .uploadAck(let number, _): acknowledged = max(acknowledged, number)
                case .ingestAck(let number): ingested = max(ingested, number)
                case .compensation(_, let writes):
                    for write in writes { state.rejected[write.changeset, default: []].append(RealmRejectedUpdate(write)) }
                case .bootstrapEnd(let end): answered = max(answered, end.version)
                case .queryError(let version, _): answered = max(answered, version)
                default: break
                }
                state.messages.append(message)
                state.bytes += message.count
            }
            return wasEmpty && !state.messages.isEmpty
        }
        if isFirst { pace.sessionBegan() }
        if acknowledged > 0 { self.acknowledged.reach(acknowledged) }
        if ingested > 0 { self.ingested.reach(ingested) }
        if answered > 0 { self.answered.reach(answered) }
        begun.reach(1)
        wake()
    }

    /// Lets the consumer look for events.
    func wake() { onWake() }

    /// Waits until the first message has come, the channel is closed, or the task is cancelled.
    func untilBegun() async { await begun.wait(until: 1) }

    /// Removes and returns the oldest message; nil if none waits.
    func take() -> [UInt8]? {
        let (message, isLast) = state.withLock { state in
            let message = state.messages.popFirst()
            state.bytes -= message?.count ?? 0
            return (message, message != nil && state.messages.isEmpty)
        }
        if message != nil { taken.fire() }
        if isLast { pace.sessionEnded() }
        return message
    }

    /// Removes and returns the rejected writes of the changesets up to a number.
    func takeRejected(upTo number: UInt64) -> [RealmRejectedUpdate] {
        state.withLock { state in
            let rejected = state.rejected.filter { $0.key <= number }.sorted { $0.key < $1.key }.flatMap(\.value)
            state.rejected = state.rejected.filter { $0.key > number }
            return rejected
        }
    }

    func drained(below bytes: Int) async {
        // Without a deadline: the connection closes the views of a client that reads nothing, and with them this channel.
        while bufferedBytes >= bytes, !isClosed, !Task.isCancelled {
            await taken.wait(after: taken.count, milliseconds: 100)
        }
    }

    func close(_ error: SluiceError?) {
        let hadMessages = state.withLock { state in
            guard !state.isClosed else { return false }
            let hadMessages = !state.messages.isEmpty
            (state.isClosed, state.error) = (true, error)
            (state.messages, state.bytes) = ([], 0)
            return hadMessages
        }
        if hadMessages { pace.sessionEnded() }
        acknowledged.reach(.max)
        ingested.reach(.max)
        answered.reach(.max)
        begun.reach(1)
        taken.fire()
        wake()
    }
}

extension RealmRejectedUpdate {
    /// A key that no changeset can name is left out. No client wrote it.
    init(_ write: RejectedWriteReport) {
        let key = try? OutgoingOperation.Object(write.object).key
        self.init(reason: write.error.message, table: write.object.type, key: key ?? [])
    }
}

/// The authenticator of a file's session. The connection has authenticated the user, and ends when its token expires.
struct BridgeAuthenticator: Authenticator {
    let user: String
    let users: any Authenticator

    func authenticate(token: String) async throws -> Authenticated {
        let user = Authenticated(user: UserContext(id: user), expires: .max)
        return Authenticated(user: try await current(user), expires: .max)
    }

    func current(_ user: Authenticated) async throws -> UserContext { try await users.current(user) }
}
