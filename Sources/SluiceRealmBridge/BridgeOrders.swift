import DequeModule
import SluiceCore
import SluicePorts
import SluiceRealm
import Synchronization

/// The orders of a connection to its views, in their order. The connection gives them without waiting.
final class BridgeOrders: Sendable {
    enum Order: Sendable {
        /// A message for the session.
        case message([UInt8])
        /// The next upload of the connection.
        case upload
        /// Changesets that took effect in an earlier session.
        case repeated([RealmUploadEntry])
        case build(BridgeStream.Request)
        case subscribe(BridgeStream.Subscription)
        case mark
        case reconsider(user: String?)
    }

    private struct State {
        var orders: Deque<Order> = []
        var superseded: [UInt64: UInt64] = [:]
    }

    private let state = Mutex(State())
    /// The lock guards the changes of both. They are read for each message.
    private let newest = Atomic<UInt64>(0)
    private let hasEnded = Atomic<Bool>(false)
    private let worker = OnDemand()

    /// - Parameter work: Performs the orders that wait, until `take` returns nil.
    func start(_ work: @escaping @Sendable () async -> Void) { worker.start(work) }

    /// Waits until the last orders were performed.
    func ended() async { await worker.ended() }

    var isClosed: Bool { hasEnded.load(ordering: .acquiring) }
    /// The number of the newest view that the connection wants.
    var wanted: UInt64 { newest.load(ordering: .acquiring) }
    /// The query versions that the connection gave up, with the last request of each. Versions only grow.
    var superseded: [UInt64: UInt64] { state.withLock { $0.superseded } }

    /// Adds a request. It replaces one that waits, unless an upload waits for that one's view.
    func build(_ view: RealmViewRequest) {
        state.withLock { state in
            let number = wanted + 1
            newest.store(number, ordering: .releasing)
            // Kept beyond this request: a view that the consumer has, and the connection gave up, is settled only by the next event.
            state.superseded = state.superseded.filter { $0.key &+ 64 > view.query.version }
            if case .build? = state.orders.last { state.orders.removeLast() }
            state.orders.append(.build(BridgeStream.Request(number: number, view: view)))
        }
        worker.ask()
    }

    func supersede(_ queryVersion: UInt64) { state.withLock { $0.superseded[queryVersion] = wanted } }

    /// Adds an order. Equal ones are joined. The connection bounds the bytes of the uploads that wait.
    func put(_ order: Order) {
        state.withLock { state in
            guard !isClosed else { return }
            switch order {
            case .mark: state.orders.removeAll { if case .mark = $0 { true } else { false } }
            case .reconsider(let user):
                // An order for all users includes each.
                state.orders.removeAll { if case .reconsider(let other) = $0 { user == nil || other == user } else { false } }
            case .message, .upload, .repeated, .build, .subscribe: break
            }
            state.orders.append(order)
        }
        worker.ask()
    }

    /// Removes and returns the next order.
    func take() -> Order? { state.withLock { $0.orders.popFirst() } }

    /// - Returns: `false` if the orders were closed before.
    func close() -> Bool {
        worker.close()
        return state.withLock { state in
            state.orders = []
            return !hasEnded.exchange(true, ordering: .acquiringAndReleasing)
        }
    }
}
