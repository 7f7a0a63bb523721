import DequeModule
import SluiceCore
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
        var wanted: UInt64 = 0
        var isClosed = false
        /// Performs the orders that wait; nil before the start and after the close.
        var work: (@Sendable () async -> Void)?
        /// The task that performs orders; nil while none waits, as an idle client should have no task.
        var worker: Task<Void, Never>?

        mutating func begin() {
            guard worker == nil, !orders.isEmpty, let work else { return }
            worker = Task { await work() }  // Unstructured because: orders outlive the calls that give them; `ended` awaits it.
        }
    }

    private let state = Mutex(State())

    /// - Parameter work: Performs the orders that wait, until `take` returns nil.
    func start(_ work: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.work = work
            state.begin()
        }
    }

    /// Waits until the last orders were performed.
    func ended() async { await state.withLock { $0.worker }?.value }

    var isClosed: Bool { state.withLock { $0.isClosed } }
    /// The number of the newest view that the connection wants.
    var wanted: UInt64 { state.withLock { $0.wanted } }
    /// The query versions that the connection gave up, with the last request of each. Versions only grow.
    var superseded: [UInt64: UInt64] { state.withLock { $0.superseded } }

    /// Adds a request. It replaces one that waits, unless an upload waits for that one's view.
    func build(_ view: RealmViewRequest) {
        state.withLock { state in
            state.wanted += 1
            // Kept beyond this request: a view that the consumer has, and the connection gave up, is settled only by the next event.
            state.superseded = state.superseded.filter { $0.key &+ 64 > view.query.version }
            if case .build? = state.orders.last { state.orders.removeLast() }
            state.orders.append(.build(BridgeStream.Request(number: state.wanted, view: view)))
            state.begin()
        }
    }

    func supersede(_ queryVersion: UInt64) { state.withLock { $0.superseded[queryVersion] = $0.wanted } }

    /// Adds an order. Equal ones are joined. The connection bounds the bytes of the uploads that wait.
    func put(_ order: Order) {
        state.withLock { state in
            guard !state.isClosed else { return }
            switch order {
            case .mark: state.orders.removeAll { if case .mark = $0 { true } else { false } }
            case .reconsider(let user):
                // An order for all users includes each.
                state.orders.removeAll { if case .reconsider(let other) = $0 { user == nil || other == user } else { false } }
            case .message, .upload, .repeated, .build, .subscribe: break
            }
            state.orders.append(order)
            state.begin()
        }
    }

    /// Removes and returns the next order. Behind nil, a later order begins the work again.
    func take() -> Order? {
        state.withLock { state in
            let order = state.orders.popFirst()
            if order == nil { state.worker = nil }
            return order
        }
    }

    /// - Returns: `false` if the orders were closed before.
    func close() -> Bool {
        state.withLock { state in
            defer { (state.isClosed, state.orders, state.work) = (true, [], nil) }
            return !state.isClosed
        }
    }
}
