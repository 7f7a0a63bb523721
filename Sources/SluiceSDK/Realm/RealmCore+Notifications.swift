import SluiceCore
import SluiceReplica

extension RealmCore {
    /// One `observe` call.
    final class Observation {
        /// What an observation is told.
        struct Delivery {
            /// Everything that changed since the last delivery, as far as the observer hears of it.
            let change: ReplicaChange
            /// The state to compare with; the Realm shows it too.
            let store: RowStore
            /// False: the observer is not to hear of the change, but what comes is compared with the state after it.
            let tells: Bool
        }

        /// Weak because: the token is the app's way to end the observation by letting it go.
        private let token: WeakConfined<NotificationToken>
        /// The classes whose changes concern it.
        let types: Set<Int>
        let deliver: (Delivery) throws(SluiceError) -> Void
        /// The version of the state that it began with.
        fileprivate(set) var start: UInt64 = 0

        init(token: WeakConfined<NotificationToken>, types: Set<Int>, deliver: @escaping (Delivery) throws(SluiceError) -> Void) {
            self.token = token
            self.types = types
            self.deliver = deliver
        }

        var id: ObjectIdentifier? { token.content.map { ObjectIdentifier($0) } }
        var isValid: Bool { token.content?.isValid ?? false }
    }

    /// Moves on to where an observation is to begin. News that come before it has begun are not mixed with those of what led there.
    func refreshToObserve() {
        inbox.hold()
        refresh()
    }

    /// Begins an observation at the state that the Realm shows.
    func observe(_ observation: Observation) {
        observation.start = state.version
        inbox.separate(at: state.version)
        observations.append(observation)
    }

    func forgetEnded() {
        observations.removeAll { !$0.isValid }
        realmObservers.removeAll { $0.token.content?.isValid != true }
        objectWatches.removeAll { !$0.isValid }
    }

    /// Moves on to the newest state for a caller who has waited for what is in it. Observers hear of it in their turn.
    /// - Parameter wanted: a version that the caller knows of.
    func moveOn(atLeast wanted: UInt64 = 0) { if refresh(atLeast: wanted) { hasUntold = true } }

    /// The same for a caller who may be elsewhere, and who has read from the file itself; only a Realm that moves on by itself does.
    /// - Parameter isolation: of the caller, where that is known.
    func showNewest(_ isolation: (any Actor)? = nil) {
        guard autorefresh, floats || scheduler.canDeliver, scheduler.isHere(isolation), !isWriting else { return }
        // A file that cannot be read is reported by the read of its objects.
        moveOn(atLeast: (try? replica.committedVersion()) ?? 0)
    }

    /// On the scheduler: moves on and tells the observers.
    func deliver() {
        if isWriting {
            let later = WeakConfined(self)
            return scheduler.enqueue { later.content?.deliver() }
        }
        if !autorefresh, (try? state.isStale()) == true {
            inbox.postpone()
            return tellRealmObservers(.refreshRequired)
        }
        deliverNow()
    }

    /// Moves on and tells the observers what has changed since they were told last.
    @discardableResult
    func deliverNow() -> Bool {
        var (hasMoved, turns) = (refresh(), 4)
        var taking = inbox.take(at: state.version, isLast: false)
        while case .behind = taking {
            hasMoved = refresh() || hasMoved
            turns -= 1
            taking = inbox.take(at: state.version, isLast: turns == 0)
        }
        if hasMoved || hasUntold {
            hasUntold = false
            tellRealmObservers(.didChange)
        }
        guard case .entries(let entries) = taking, !entries.isEmpty else { return hasMoved }
        forgetEnded()
        for observation in observations where observation.isValid {
            let change = observation.id.flatMap { id in
                entries.filter { !$0.silenced.contains(id) && $0.change.version > observation.start }.merged
            }
            guard let change, observation.types.contains(where: { change.types[$0] != nil }) else { continue }
            attempt(()) { store throws(SluiceError) in try observation.deliver(.init(change: change, store: store, tells: true)) }
        }
        return hasMoved
    }

    /// Makes some observers take the open transaction for known.
    func silence(_ tokens: [NotificationToken], in transaction: WriteTransaction) {
        let silenced = Set(tokens.map { ObjectIdentifier($0) })
        let change = transaction.change
        for observation in observations where observation.id.map({ silenced.contains($0) }) == true {
            attempt(()) { store throws(SluiceError) in try observation.deliver(.init(change: change, store: store, tells: false)) }
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

    func tellRealmObservers(_ notification: Realm.Notification) {
        for observer in realmObservers where observer.token.content?.isValid == true {
            if let id = observer.token.content.map({ ObjectIdentifier($0) }), silencedTokens.contains(id) { continue }
            observer.block(notification, Realm(core: self))
        }
    }

    /// What keeps an observation from being made here.
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
