import SluiceCore
import SluiceReplica

extension RealmCore {
    /// The Realm that goes on showing what this one shows now; one that shows nothing when the file cannot be read.
    func freeze() -> RealmCore {
        if isFrozen { return self }
        scheduler.verify()
        if isWriting { throwRealmException("Cannot freeze a Realm in a write transaction.") }
        // One that moves on by use shows the newest state.
        attempt(()) { _ in }
        return state.lend { RealmCore(frozen: self, $0) }
    }

    /// The live Realm on the same file for where the caller is.
    func thaw(_ isolation: (any Actor)?) -> RealmCore {
        guard isFrozen else { return self }
        do {
            let live = try file.core(configuration, scheduler: .of(isolation))
            live.attempt((), moving: false) { _ in }
            // Nothing that is seen frozen is missing in the live Realm.
            if !live.isWriting, live.state.version < state.version { live.refresh() }
            return live
        } catch {
            throwRealmException("The Realm cannot be thawed: \(error)")
        }
    }

    /// Runs what fills a cache that hangs on this Realm: one at a time for a frozen Realm, which any thread may read.
    func exclusively<R>(_ body: () -> R) -> R { isFrozen ? state.locked(body) : body() }

    /// Lets the state go; what was got from the Realm before is invalidated.
    func invalidate() {
        scheduler.verify()
        if isFrozen { return }
        if isWriting { cancel() }
        settleLoops()
        state.letGo()
        clock.epoch += 1
        clock.generation += 1
    }
}
