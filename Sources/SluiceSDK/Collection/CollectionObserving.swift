import Dispatch
import SluiceCore
import SluiceReplica

/// A pending observation of a collection, on the collection's scheduler or on another one.
// Sendable because: the locator may be used on any thread, and the observation stays on the scheduler that creates it.
struct CollectionObserving<Collection: ThreadConfined, Change>: @unchecked Sendable {
    /// Starts to observe the collection. The returned function computes the change since its last call, or nil if there is none.
    typealias Begin =
        (Collection, RealmCore, RowStore) throws(SluiceError) -> (ObservationHub.Observation.Delivery) throws(SluiceError) -> Change?

    let token = NotificationToken()
    private let locator: _Locator
    private let core: RealmCore
    private let collection: Collection
    private let initial: (Collection) -> Change
    private let begin: Begin
    private let scheduler: Scheduler
    private let file: OpenFile
    private let configuration: Realm.Configuration

    /// Captures the collection. Traps if it is unmanaged, invalidated or cannot be observed.
    init(_ collection: Collection, initial: @escaping (Collection) -> Change, begin: @escaping Begin) {
        guard let core = collection.realm?.core else {
            throwRealmException("Only collections which are managed by a Realm support change notifications")
        }
        core.observations.requireObservable()
        guard let locator = collection._locator() else { throwRealmException(RealmMisuse.invalidated) }
        self.locator = locator
        self.core = core
        self.collection = collection
        self.initial = initial
        self.begin = begin
        scheduler = core.scheduler
        (file, configuration) = (core.file, core.configuration)
    }

    /// Calls the block on the queue, or on the Realm's scheduler if `queue` is nil.
    /// A Realm whose scheduler cannot deliver notifications uses a private serial queue.
    func start(on queue: DispatchQueue?, _ block: @escaping (Change) -> Void) -> NotificationToken {
        let block = Confined(block)
        // The app may release the token before the observation has begun.
        let weak = WeakConfined(token)
        let start = self.weakened
        if queue == nil, scheduler.canDeliver {
            // The observation uses the caller's Realm and collection.
            let here = Confined((core, collection))
            scheduler.enqueue { start.begin(here.content.0, here.content.1, weak, block.content) }
            return token
        }
        let queue = queue ?? DispatchQueue(label: "sluice.notifications")
        queue.async { start.begin(at: .of(queue), weak, block.content) }
        return token
    }

    /// Calls the block on an actor, with a collection of a Realm of that actor.
    func start<A: Actor>(on actor: A, _ block: @Sendable @escaping (isolated A, Change) -> Void) async -> NotificationToken {
        await weakened.begin(on: actor, WeakConfined(token), block)
        return token
    }

    /// The part that starts the observation. It does not retain the token, so releasing the token ends the observation.
    private var weakened: CollectionObservingStart<Collection, Change> {
        CollectionObservingStart(locator: locator, initial: initial, begin: begin, file: file, configuration: configuration)
    }
}

/// The part of a `CollectionObserving` that runs on the target scheduler.
// Sendable because: the locator may be used on any thread, and the rest are constants.
private struct CollectionObservingStart<Collection: ThreadConfined, Change>: @unchecked Sendable {
    let locator: _Locator
    let initial: (Collection) -> Change
    let begin: CollectionObserving<Collection, Change>.Begin
    let file: OpenFile
    let configuration: Realm.Configuration

    func begin(at scheduler: Scheduler, _ token: WeakConfined<NotificationToken>, _ block: @escaping (Change) -> Void) {
        guard token.content?.isValid == true, let core = file.coreToObserve(configuration, scheduler) else { return }
        // A collection that has been deleted in the interim sends no notification.
        guard let collection = core.find(locator) as? Collection else { return }
        begin(core, collection, token, block)
    }

    func begin<A: Actor>(
        on actor: isolated A, _ token: WeakConfined<NotificationToken>, _ block: @Sendable @escaping (isolated A, Change) -> Void
    ) {
        begin(at: .of(actor), token) { change in
            let confined = Confined(change)
            actor.assumeIsolated { block($0, confined.content) }
        }
    }

    /// Runs on the Realm's scheduler: delivers the initial state and registers for later changes.
    func begin(
        _ core: RealmCore, _ collection: Collection, _ token: WeakConfined<NotificationToken>, _ block: @escaping (Change) -> Void
    ) {
        guard let strong = token.content, strong.isValid else { return }
        // Advance before the first read, so that the watch and `initial` describe one snapshot.
        core.observations.refreshToObserve()
        let watch = core.reading.attempt(nil) { store throws(SluiceError) in try begin(collection, core, store) }
        // The file cannot be read, which `attempt` has reported. There is no state to compare with.
        guard let watch else { return }
        // The observation retains its Realm; both are released when the token ends.
        core.removeObservers(whenEnded: strong)
        core.observations.observe(
            ObservationHub.Observation(token: token, types: Set(core.replica.schema.types.indices)) { delivery throws(SluiceError) in
                guard let change = try watch(delivery), delivery.isNotified else { return }
                block(change)
            })
        // After the registration, so that a write within the block is reported.
        block(initial(collection))
    }
}
