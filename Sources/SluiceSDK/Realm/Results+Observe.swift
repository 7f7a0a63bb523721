public import Dispatch
import SluiceCore
import SluiceReplica
import Synchronization

/// Keeps a notification coming; it ends with `invalidate()` or when the token goes away.
public final class NotificationToken: Sendable {
    private struct State {
        var isValid = true
        var ending: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    init() {}
    deinit { invalidate() }

    /// Ends the notification. One that is under way on another thread may still arrive.
    public func invalidate() {
        let ending = state.withLock { state in
            defer { state = State(isValid: false) }
            return state.ending
        }
        ending?()
    }

    var isValid: Bool { state.withLock { $0.isValid } }

    /// Calls the body when the notification ends, or now when it has.
    func whenEnded(_ body: @escaping @Sendable () -> Void) {
        let hasEnded = state.withLock { state in
            if state.isValid { state.ending = body }
            return !state.isValid
        }
        if hasEnded { body() }
    }
}

/// How a collection has changed.
public enum RealmCollectionChange<CollectionType> {
    /// The collection as it is when the observation begins.
    case initial(CollectionType)
    /// Indices of `deletions` are those of the old state, of `insertions` and `modifications` of the new one. An object that
    /// changed places is deleted and inserted.
    case update(CollectionType, deletions: [Int], insertions: [Int], modifications: [Int])
    /// Never sent; for source compatibility.
    case error(any Error)
}

extension Results {
    /// Calls the block with the collection as it is, then after every change of it.
    /// - Parameter queue: where to call; nil: where the Realm lives. On another queue the collection is one of a Realm of that queue.
    /// - Returns: the token that keeps the notifications coming.
    public func observe(on queue: DispatchQueue? = nil, _ block: @escaping (RealmCollectionChange<Results>) -> Void) -> NotificationToken {
        storage.core.requireObservable()
        let token = NotificationToken()
        let block = Confined(block)
        let weakToken = WeakConfined(token)
        if queue == nil && storage.core.scheduler.canDeliver {
            let results = Confined(self)
            storage.core.scheduler.enqueue { results.content.beginObserving(weakToken, block.content) }
            return token
        }
        let queue = queue ?? DispatchQueue(label: "sluice.notifications")
        let configuration = storage.core.configuration
        let file = storage.core.file
        let find = Confined(storage.finder())
        queue.async {
            do {
                let core = try file.core(configuration, scheduler: .of(queue))
                find.content?(core).map { Results(storage: $0).beginObserving(weakToken, block.content) }
            } catch {
                block.content(.error(error))
            }
        }
        return token
    }

    /// Where the Realm lives: delivers the initial state and registers for the rest.
    private func beginObserving(_ token: WeakConfined<NotificationToken>, _ block: @escaping (RealmCollectionChange<Results>) -> Void) {
        guard let strong = token.content, strong.isValid else { return }
        let core = storage.core
        core.refresh()
        let initial: LiveQuery? = core.attempt(nil) { store throws(SluiceError) in try LiveQuery(storage.query, on: store) }
        guard var live = initial else { return }
        block(.initial(self))
        // The observation keeps its Realm alive; both go when the token ends.
        let scheduler = core.scheduler
        let weakCore = WeakConfined(core)
        strong.whenEnded { scheduler.enqueue { weakCore.content?.forgetEnded() } }
        let results = self
        core.observe(
            RealmCore.Observation(token: token, types: storage.query.readTypes) { delivery throws(SluiceError) in
                guard let diff = try live.update(delivery.change, on: delivery.store), delivery.tells else { return }
                block(
                    .update(results, deletions: diff.deletions, insertions: diff.insertions, modifications: diff.modifications))
            })
    }
}
