import Synchronization

/// The open Realms of one file by scheduler. Opening a Realm again on the same scheduler returns the same core.
final class CoreCache: Sendable {
    private let cores = Mutex<[Scheduler.Identity: WeakConfined<RealmCore>]>([:])

    func find(_ identity: Scheduler.Identity, _ schemas: [ModelSchema]) -> RealmCore? {
        // The strong reference is taken under the lock: the core may be released by its last handle at any time.
        let core = cores.withLock { Confined($0[identity]?.content) }.content
        // A Realm with other classes cannot be reused.
        guard let core, core.classes.schemas.elementsEqual(schemas, by: ===) else { return nil }
        return core
    }

    func put(_ core: RealmCore, _ identity: Scheduler.Identity) {
        let weak = WeakConfined(core)
        cores.withLock { cores in
            // Remove released cores here, so that the cache is bounded by the number of live Realms.
            cores = cores.filter { $0.value.content != nil }
            cores[identity] = weak
        }
    }
}

extension OpenFile {
    /// Returns the core of this file for a scheduler, and creates it if there is none.
    /// - Parameter floats: `true` if each read advances the Realm first.
    func core(_ configuration: Realm.Configuration, scheduler: Scheduler, floats: Bool = false) throws -> RealmCore {
        let schemas = ModelSchema.closure(of: configuration.classes)
        let identity = scheduler.identity
        if let identity, let core = cores.find(identity, schemas) {
            core.reading.floats = core.reading.floats || floats
            return core
        }
        let core = try RealmCore(configuration: configuration, file: self, scheduler: scheduler, floats: floats)
        if let identity { cores.put(core, identity) }
        return core
    }
}
