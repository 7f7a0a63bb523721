import SluiceCore
import SluiceReplica

extension RealmCore {
    /// One call of `observe`.
    final class Observation {
        /// The argument of a notification.
        struct Delivery {
            /// The changes since the last delivery that the observer receives.
            let change: ReplicaChange
            /// The snapshot to compare with. The Realm shows the same one.
            let store: RowStore
            /// `false` if the observer must not be notified. Later deliveries still compare with the snapshot after the change.
            let tells: Bool
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

    /// Advances to the snapshot that a new observation starts with. Until `observe`, changes are kept separate by commit.
    func refreshToObserve() {
        inbox.hold()
        reading.refresh()
    }

    /// Starts an observation at the current snapshot.
    func observe(_ observation: Observation) {
        observation.start = reading.snapshot.version
        inbox.separate(at: reading.snapshot.version)
        observations.append(observation)
    }

    func forgetEnded() {
        observations.removeAll { !$0.isValid }
        realmObservers.removeAll { $0.token.content?.isValid != true }
        objectWatches.removeAll { !$0.isValid }
    }

    /// Advances for a caller that has waited for data. Observers are notified by their next scheduled delivery.
    /// - Parameter wanted: The least version that the caller needs.
    func moveOn(atLeast wanted: UInt64 = 0) { if reading.refresh(atLeast: wanted) { hasUntold = true } }

    /// The same for a caller that has waited for a subscription set.
    func moveOn(toCompleteSet set: UInt64) { moveOn(atLeast: reading.snapshot.version(ofCompleteSet: set)) }

    /// Advances for a caller that read the file directly and may be on another scheduler. Only a Realm that advances by itself does.
    /// - Parameters:
    ///   - isolation: The caller's actor, if known.
    ///   - set: The complete subscription set that the caller has read, if any.
    func showNewest(_ isolation: (any Actor)? = nil, completeSet set: UInt64? = nil) {
        guard reading.autorefresh, reading.floats || scheduler.canDeliver, scheduler.isHere(isolation), !isWriting else { return }
        // Noted before the Realm advances, so that it is not behind the set at a later commit.
        if let set { _ = reading.snapshot.version(ofCompleteSet: set) }
        // An unreadable file is reported by the next read of its objects.
        moveOn(atLeast: (try? replica.committedVersion()) ?? 0)
    }

    /// `true` if a Realm of an actor other than the main one does not show the objects of a complete subscription set yet.
    ///
    /// Such a Realm advances in a turn of its actor. Code without `isolation` cannot advance it: Swift's only check for an actor traps.
    /// Safe to use on any thread.
    func isBehind(completeSet set: UInt64) -> Bool {
        guard case .actor = scheduler, reading.autorefresh, !reading.floats else { return false }
        return reading.snapshot.isOlder(than: reading.snapshot.version(ofCompleteSet: set))
    }

    /// Advances and notifies the observers. Runs on the scheduler.
    func deliver() {
        if isWriting {
            // The writing Realm keeps its transaction's view, so the delivery is queued behind it.
            let later = WeakConfined(self)
            return scheduler.enqueue { later.content?.deliver() }
        }
        if !reading.autorefresh, (try? reading.snapshot.isStale()) == true {
            // `autorefresh` is off: keep the changes for the app's own `refresh`.
            inbox.postpone()
            return tellRealmObservers(.refreshRequired)
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
        if hasMoved || hasUntold {
            hasUntold = false
            tellRealmObservers(.didChange)
        }
        guard case .entries(let entries) = taking, !entries.isEmpty else { return hasMoved }
        forgetEnded()
        // The array is copied by the loop: a block may add or end observations.
        for observation in observations where observation.isValid {
            // Changes up to `start` were part of the initial state.
            let change = observation.id.flatMap { id in
                entries.filter { !$0.silenced.contains(id) && $0.change.version > observation.start }.merged
            }
            guard let change, observation.types.contains(where: { change.types[$0] != nil }) else { continue }
            reading.attempt(()) { store throws(SluiceError) in try observation.deliver(.init(change: change, store: store, tells: true)) }
        }
        return hasMoved
    }

    /// Applies the open transaction to the state of some observers without notifying them.
    func silence(_ tokens: [NotificationToken], in transaction: WriteTransaction) {
        let silenced = Set(tokens.map { ObjectIdentifier($0) })
        let change = transaction.change
        for observation in observations where observation.id.map({ silenced.contains($0) }) == true {
            reading.attempt(()) { store throws(SluiceError) in try observation.deliver(.init(change: change, store: store, tells: false)) }
        }
        inbox.silence(silenced)
        silencedTokens = silenced
    }

    func endSilence() {
        if silencedTokens.isEmpty { return }
        inbox.silence([])
        silencedTokens = []
    }

    // MARK: The Realm itself

    struct RealmObserver {
        let token: WeakConfined<NotificationToken>
        let block: (Realm.Notification, Realm) -> Void
    }

    /// Notifies the observers of the Realm itself, except those silenced for the current commit.
    func tellRealmObservers(_ notification: Realm.Notification) {
        for observer in realmObservers where observer.token.content?.isValid == true {
            if let id = observer.token.content.map({ ObjectIdentifier($0) }), silencedTokens.contains(id) { continue }
            observer.block(notification, Realm(core: self))
        }
    }

    /// Traps if the Realm cannot be observed: it is frozen, read-only, in a write transaction, or used on the wrong scheduler.
    func requireObservable() {
        if isFrozen { throwRealmException(RealmMisuse.frozenNotifications) }
        if file.isReadOnly { throwRealmException(RealmMisuse.readOnlyNotifications) }
        scheduler.verify()
        if isWriting { throwRealmException("Cannot register notification blocks from within write transactions.") }
    }
}

extension [ChangeInbox.Entry] {
    fileprivate var merged: ReplicaChange? {
        guard var all = first?.change else { return nil }
        for entry in dropFirst() { all.merge(entry.change) }
        return all
    }
}
