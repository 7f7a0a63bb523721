import Dispatch
import SluiceCore
import SluiceReplica

/// An observation of a collection that is about to begin, where the collection is or at another place.
// Sendable because: the locator is for any thread, and what is made at the other place stays there.
struct CollectionObserving<Collection: ThreadConfined, Change>: @unchecked Sendable {
    /// Begins to watch the collection: gives back what tells how it has changed since it was asked last; nil for not at all.
    typealias Begin =
        (Collection, RealmCore, RowStore) throws(SluiceError) -> (RealmCore.Observation.Delivery) throws(SluiceError) -> Change?

    let token = NotificationToken()
    private let locator: _Locator
    private let core: RealmCore
    private let collection: Collection
    private let initial: (Collection) -> Change
    private let begin: Begin
    private let scheduler: Scheduler
    private let file: OpenFile
    private let configuration: Realm.Configuration

    init(_ collection: Collection, initial: @escaping (Collection) -> Change, begin: @escaping Begin) {
        guard let core = collection.realm?.core else {
            throwRealmException("Only collections which are managed by a Realm support change notifications")
        }
        core.requireObservable()
        guard let locator = collection._locator() else { throwRealmException(RealmMisuse.invalidated) }
        self.locator = locator
        self.core = core
        self.collection = collection
        self.initial = initial
        self.begin = begin
        scheduler = core.scheduler
        (file, configuration) = (core.file, core.configuration)
    }

    /// Calls the block on a queue, or where the Realm lives.
    func start(on queue: DispatchQueue?, _ block: @escaping (Change) -> Void) -> NotificationToken {
        let block = Confined(block)
        let weak = WeakConfined(token)
        let start = self.weakened
        if queue == nil, scheduler.canDeliver {
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

    /// What begins the observation; it does not keep the token.
    private var weakened: CollectionObservingStart<Collection, Change> {
        CollectionObservingStart(locator: locator, initial: initial, begin: begin, file: file, configuration: configuration)
    }
}

/// See `CollectionObserving`.
// Sendable because: as there.
private struct CollectionObservingStart<Collection: ThreadConfined, Change>: @unchecked Sendable {
    let locator: _Locator
    let initial: (Collection) -> Change
    let begin: CollectionObserving<Collection, Change>.Begin
    let file: OpenFile
    let configuration: Realm.Configuration

    func begin(at scheduler: Scheduler, _ token: WeakConfined<NotificationToken>, _ block: @escaping (Change) -> Void) {
        guard token.content?.isValid == true, let core = try? file.core(configuration, scheduler: scheduler) else { return }
        // What has been deleted meanwhile has nobody to tell about it.
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

    /// Where the Realm lives: delivers the initial state and registers for the rest.
    func begin(
        _ core: RealmCore, _ collection: Collection, _ token: WeakConfined<NotificationToken>, _ block: @escaping (Change) -> Void
    ) {
        guard let strong = token.content, strong.isValid else { return }
        core.refreshToObserve()
        let watch = core.attempt(nil) { store throws(SluiceError) in try begin(collection, core, store) }
        guard let watch else { return }
        // The observation keeps its Realm alive; both go when the token ends.
        let (scheduler, weakCore) = (core.scheduler, WeakConfined(core))
        strong.whenEnded { scheduler.enqueue { weakCore.content?.forgetEnded() } }
        core.observe(
            RealmCore.Observation(token: token, types: Set(core.replica.schema.types.indices)) { delivery throws(SluiceError) in
                guard let change = try watch(delivery), delivery.tells else { return }
                block(change)
            })
        block(initial(collection))
    }
}
