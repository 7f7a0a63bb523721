import SluiceCore
import SluiceReplica

extension RealmCore {
    /// Returns a Realm that keeps showing the current snapshot. If the file cannot be read, the result shows no data.
    func freeze() -> RealmCore {
        if isFrozen { return self }
        scheduler.verify()
        if isWriting { throwRealmException("Cannot freeze a Realm in a write transaction.") }
        // A floating Realm advances before it is frozen.
        attempt(()) { _ in }
        return state.lend { RealmCore(frozen: self, $0) }
    }

    /// Returns the live Realm of the same file for the caller's scheduler.
    func thaw(_ isolation: (any Actor)?) -> RealmCore {
        guard isFrozen else { return self }
        do {
            let live = try file.core(configuration, scheduler: .of(isolation))
            live.attempt((), moving: false) { _ in }
            // Advance the live Realm if it is older, so that it contains all objects of the frozen one.
            if !live.isWriting, live.state.version < state.version { live.refresh() }
            return live
        } catch {
            throwRealmException("The Realm cannot be thawed: \(error)")
        }
    }

    /// Runs code that fills a cache of this Realm. For a frozen Realm it holds a lock, since any thread may read it.
    func exclusively<R>(_ body: () -> R) -> R { isFrozen ? state.locked(body) : body() }

    /// Releases the snapshot and invalidates all objects and results obtained before.
    func invalidate() {
        scheduler.verify()
        if isFrozen { return }
        if isWriting { cancel() }
        settleLoops()
        // A new epoch invalidates results and objects; a new generation invalidates caches.
        state.letGo()
        clock.epoch += 1
        clock.generation += 1
    }
}
