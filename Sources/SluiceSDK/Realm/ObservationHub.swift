import SluiceCore
import SluiceReplica

/// The observers of a Realm, and the delivery of changes to them. Confined to the Realm's scheduler.
///
/// Commits arrive in the inbox on the committing thread. A delivery on the scheduler advances the Realm and empties the inbox.
/// Observers of the Realm itself run before those of objects and collections.
final class ObservationHub {
    /// One call of `observe`.
    final class Observation {
        /// The argument of a notification.
        struct Delivery {
            /// The changes since the last delivery that the observer receives.
            let change: ReplicaChange
            /// The snapshot to compare with. The Realm shows the same one.
            let store: RowStore
            /// `false` if the observer must not be notified. Later deliveries still compare with the snapshot after the change.
            let isNotified: Bool
        }

        /// Weak because: the app ends the observation by releasing the token.
        private let token: WeakConfined<NotificationToken>
        /// The classes whose changes concern the observation.
        let types: Set<Int>
        let deliver: (Delivery) throws(SluiceError) -> Void
        /// The version of the snapshot that the observation started with.
        fileprivate(set) var start: UInt64 = 0

        init(token: WeakConfined<NotificationToken>, types: Set<Int>, deliver: @escaping (Delivery) throws(SluiceError) -> Void) {
            self.token = token
            self.types = types
            self.deliver = deliver
        }

        var id: ObjectIdentifier? { token.content.map { ObjectIdentifier($0) } }
        var isValid: Bool { token.content?.isValid ?? false }
    }

    /// An observer of the Realm itself.
    private struct RealmObserver {
        let token: WeakConfined<NotificationToken>
        let block: (Realm.Notification) -> Void
    }

    private let reading: ReadState
    private let inbox = ChangeInbox()
    /// Schedules `deliver` on the Realm's scheduler.
    private var schedule: @Sendable () -> Void = {}
    /// The number under which the replica knows `inbox`; 0 for a frozen Realm, which observes nothing.
    private var commitObserver: UInt64 = 0
    private var observations: [Observation] = []
    private var realmObservers: [RealmObserver] = []
    private var objectWatches: [ObjectWatch] = []
    /// `true` if the Realm has advanced through `refreshBeforeNotifying` and its own observers have not been notified.
    private var owesDidChange = false
    /// The observers that are not notified of the current commit.
    private var silencedTokens: Set<ObjectIdentifier> = []

    init(_ reading: ReadState) { self.reading = reading }

    deinit { reading.replica.removeObserver(commitObserver) }

    /// Starts to receive the commits of the file. The snapshot must be pinned before, so that only later commits are reported.
    /// - Parameter schedule: Schedules `deliver` on the Realm's scheduler, unless the Realm has been released.
    func start(_ schedule: @escaping @Sendable () -> Void) {
        self.schedule = schedule
        let inbox = inbox
        commitObserver = reading.replica.observeChanges { change in
            if inbox.put(change) { schedule() }
        }
        // A commit between the pin and the registration has reported nothing here.
        if (try? reading.snapshot.isStale()) == true { schedule() }
    }

    // MARK: Observers

    /// Traps if the Realm cannot be observed: it is frozen, read-only, in a write transaction, or used on the wrong scheduler.
    func requireObservable() {
        if reading.isFrozen { throwRealmException(RealmMisuse.frozenNotifications) }
        if reading.file.isReadOnly { throwRealmException(RealmMisuse.readOnlyNotifications) }
        reading.scheduler.verify()
        if reading.isWriting { throwRealmException("Cannot register notification blocks from within write transactions.") }
    }

    /// Advances to the snapshot that a new observation starts with. Until `observe`, changes are kept separate by commit.
    func refreshToObserve() {
        // Before the refresh: a commit in between must not be merged with one that the first state contains.
        inbox.hold()
        reading.refresh()
    }

    /// Starts an observation at the current snapshot.
    func observe(_ observation: Observation) {
        observation.start = reading.snapshot.version
        inbox.separate(at: reading.snapshot.version)
        observations.append(observation)
    }

    /// Starts an observation of the Realm itself. It retains neither the token nor the Realm.
    func observeRealm(_ token: NotificationToken, _ block: @escaping (Realm.Notification) -> Void) {
        realmObservers.append(RealmObserver(token: WeakConfined(token), block: block))
    }

    /// Reports the writes of this Realm to the watch of an object.
    func add(_ watch: ObjectWatch) { objectWatches.append(watch) }

    /// Releases the observers whose tokens have ended.
    func removeEnded() {
        observations.removeAll { !$0.isValid }
        realmObservers.removeAll { $0.token.content?.isValid != true }
        objectWatches.removeAll { !$0.isValid }
    }

    // MARK: Advancing without a delivery

    /// Advances for a caller that has waited for data. Observers are notified by their next scheduled delivery.
    /// - Parameter wanted: The least version that the caller needs.
    func refreshBeforeNotifying(atLeast wanted: UInt64 = 0) { if reading.refresh(atLeast: wanted) { owesDidChange = true } }

    /// The same for a caller that has waited for a subscription set.
    func refreshBeforeNotifying(toCompleteSet set: UInt64) {
        refreshBeforeNotifying(atLeast: reading.snapshot.version(ofCompleteSet: set))
    }

    /// Advances for a caller that read the file directly and may be on another scheduler. Only a Realm that advances by itself does.
    /// - Parameters:
    ///   - isolation: The caller's actor, if known.
    ///   - set: The complete subscription set that the caller has read, if any.
    func showNewest(_ isolation: (any Actor)? = nil, completeSet set: UInt64? = nil) {
        let scheduler = reading.scheduler
        guard reading.autorefresh, reading.floats || scheduler.canDeliver, scheduler.isHere(isolation), !reading.isWriting else { return }
        // Noted before the Realm advances, so that it is not behind the set at a later commit.
        if let set { _ = reading.snapshot.version(ofCompleteSet: set) }
        // An unreadable file is reported by the next read of its objects.
        refreshBeforeNotifying(atLeast: (try? reading.replica.committedVersion()) ?? 0)
    }

    /// `true` if a Realm of an actor other than the main one does not show the objects of a complete subscription set yet.
    ///
    /// Such a Realm advances in a turn of its actor. Code without `isolation` cannot advance it: Swift's only check for an actor traps.
    /// Safe to use on any thread.
    func isBehind(completeSet set: UInt64) -> Bool {
        guard case .actor = reading.scheduler, reading.autorefresh, !reading.floats else { return false }
        return reading.snapshot.isOlder(than: reading.snapshot.version(ofCompleteSet: set))
    }

    // MARK: Delivery

    /// `true` if a delivery would reach an observer.
    var hasObservers: Bool { !observations.isEmpty || !realmObservers.isEmpty }

    /// `true` if commits have arrived since the last delivery.
    var hasPendingChanges: Bool { !inbox.isEmpty }

    /// Advances and notifies the observers. Runs on the scheduler.
    func deliver() {
        // The writing Realm keeps its transaction's view, so the delivery is queued behind it.
        if reading.isWriting { return schedule() }
        if !reading.autorefresh, (try? reading.snapshot.isStale()) == true {
            // `autorefresh` is off: keep the changes for the app's own `refresh`.
            inbox.postpone()
            return notifyRealmObservers(.refreshRequired)
        }
        deliverNow()
    }

    /// Advances and notifies the observers of the changes since their last notification.
    /// - Returns: `true` if the Realm advanced.
    @discardableResult
    func deliverNow() -> Bool {
        // A bounded number of turns: a writer that never pauses must not keep this loop running.
        var (hasMoved, turns) = (reading.refresh(), 4)
        var taking = inbox.take(at: reading.snapshot.version, isLast: false)
        while case .behind = taking {
            hasMoved = reading.refresh() || hasMoved
            turns -= 1
            taking = inbox.take(at: reading.snapshot.version, isLast: turns == 0)
        }
        // Realm observers run before those of objects and collections.
        if hasMoved || owesDidChange {
            owesDidChange = false
            notifyRealmObservers(.didChange)
        }
        // `later`: the change of the newest commit is on its way and schedules a delivery.
        guard case .entries(let entries) = taking, !entries.isEmpty else { return hasMoved }
        removeEnded()
        // The array is copied by the loop: a block may add or end observations.
        for observation in observations where observation.isValid {
            // Changes up to `start` were part of the initial state.
            let change = observation.id.flatMap { id in
                entries.filter { !$0.silenced.contains(id) && $0.change.version > observation.start }.merged
            }
            guard let change, observation.types.contains(where: { change.types[$0] != nil }) else { continue }
            deliver(change, to: observation, isNotified: true)
        }
        return hasMoved
    }

    private func deliver(_ change: ReplicaChange, to observation: Observation, isNotified: Bool) {
        reading.attempt(()) { store throws(SluiceError) in
            try observation.deliver(.init(change: change, store: store, isNotified: isNotified))
        }
    }

    /// Notifies the observers of the Realm itself, except those silenced for the current commit.
    func notifyRealmObservers(_ notification: Realm.Notification) {
        for observer in realmObservers where observer.token.content?.isValid == true {
            if let id = observer.token.content.map({ ObjectIdentifier($0) }), silencedTokens.contains(id) { continue }
            observer.block(notification)
        }
    }

    // MARK: The writes of this Realm

    /// Applies the open transaction to the state of some observers without notifying them.
    func silence(_ tokens: [NotificationToken], in transaction: WriteTransaction) {
        let silenced = Set(tokens.map { ObjectIdentifier($0) })
        // Compared inside the transaction: the next delivery of these observers then starts from its result.
        let change = transaction.change
        for observation in observations where observation.id.map({ silenced.contains($0) }) == true {
            deliver(change, to: observation, isNotified: false)
        }
        // Before the commit, which puts its change into the inbox.
        inbox.silence(silenced)
        silencedTokens = silenced
    }

    /// Ends `silence` after the commit.
    func endSilence() {
        if silencedTokens.isEmpty { return }
        inbox.silence([])
        silencedTokens = []
    }

    /// Records that this Realm has set a property.
    func wrote(_ type: Int, _ key: Value, _ slot: Int) {
        for watch in objectWatches { watch.wrote(type, key, slot) }
    }

    /// Records that this Realm has deleted objects.
    func deleted(_ type: Int, _ keys: [Value]) {
        for watch in objectWatches { for key in keys { watch.deleted(type, key) } }
    }

    /// Records that the open transaction is about to be committed, or has been rolled back.
    func transactionEnded(isStored: Bool) {
        for watch in objectWatches { watch.transactionEnded(isStored: isStored) }
    }
}

extension [ChangeInbox.Entry] {
    fileprivate var merged: ReplicaChange? {
        guard var all = first?.change else { return nil }
        for entry in dropFirst() { all.merge(entry.change) }
        return all
    }
}
