import SluiceCore
import SluiceReplica

extension RealmCore {
    /// The Realm that goes on showing what this one shows now.
    func freeze() -> RealmCore {
        if isFrozen { return self }
        scheduler.verify()
        if transaction != nil { throwRealmException("Cannot freeze a Realm in a write transaction.") }
        do throws(SluiceError) {
            // One that moves on by use shows the newest state.
            attempt(()) { _ in }
            return try state.lend { RealmCore(frozen: self, $0) }
        } catch {
            file.report(error)
            throwRealmException("The Realm cannot be frozen, its file cannot be read: \(error)")
        }
    }

    /// The live Realm on the same file for where the caller is.
    func thaw(_ isolation: (any Actor)?) -> RealmCore {
        guard isFrozen else { return self }
        do {
            let live = try file.core(configuration, scheduler: .of(isolation))
            // Nothing that is seen frozen is missing in the live Realm.
            if live.transaction == nil, live.state.version < state.version { live.refresh() }
            return live
        } catch {
            throwRealmException("The Realm cannot be thawed, its file cannot be opened: \(error)")
        }
    }

    /// Runs what fills a cache that hangs on this Realm: one at a time for a frozen Realm, which any thread may read.
    func exclusively<R>(_ body: () -> R) -> R { isFrozen ? state.locked(body) : body() }

    /// Lets the state go; what was got from the Realm before is invalidated.
    func invalidate() {
        scheduler.verify()
        if isFrozen { return }
        if transaction != nil { cancel() }
        settleLoops()
        state.letGo()
        clock.epoch += 1
        clock.generation += 1
    }
}
