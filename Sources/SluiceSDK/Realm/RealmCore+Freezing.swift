import SluiceCore
import SluiceReplica

extension RealmCore {
    /// Returns a Realm that keeps showing the current snapshot. If the file cannot be read, the result shows no data.
    func freeze() -> RealmCore {
        if isFrozen { return self }
        scheduler.verify()
        if isWriting { throwRealmException("Cannot freeze a Realm in a write transaction.") }
        // A floating Realm advances before it is frozen.
        reading.attempt(()) { _ in }
        return reading.snapshot.lend { RealmCore(frozen: self, $0) }
    }

    /// Returns the live Realm of the same file for the caller's scheduler.
    func thaw(_ isolation: (any Actor)?) -> RealmCore {
        guard isFrozen else { return self }
        do {
            let live = try file.core(configuration, scheduler: .of(isolation))
            live.reading.attempt((), moving: false) { _ in }
            // Advance the live Realm if it is older, so that it contains all objects of the frozen one.
            if !live.isWriting, live.reading.snapshot.version < reading.snapshot.version { live.reading.refresh() }
            return live
        } catch {
            throwRealmException("The Realm cannot be thawed: \(error)")
        }
    }

    /// Releases the snapshot and invalidates all objects and results obtained before.
    func invalidate() {
        scheduler.verify()
        if isFrozen { return }
        if isWriting { cancel() }
        reading.invalidate()
    }
}
