import Synchronization

/// The Realms on one file by where they live: those that are opened at one place are one.
final class CoreCache: Sendable {
    private let cores = Mutex<[Scheduler.Place: WeakConfined<RealmCore>]>([:])

    func find(_ place: Scheduler.Place, _ schemas: [ModelSchema]) -> RealmCore? {
        let core = cores.withLock { Confined($0[place]?.content) }.content
        // One with other classes cannot stand in.
        guard let core, core.schemas.elementsEqual(schemas, by: ===) else { return nil }
        return core
    }

    func put(_ core: RealmCore, _ place: Scheduler.Place) {
        let weak = WeakConfined(core)
        cores.withLock { cores in
            cores = cores.filter { $0.value.content != nil }
            cores[place] = weak
        }
    }
}

extension OpenFile {
    /// The Realm on this file for a place, made when there is none yet.
    /// - Parameter floats: whether it moves on by use.
    func core(_ configuration: Realm.Configuration, scheduler: Scheduler, floats: Bool = false) throws -> RealmCore {
        let schemas = ModelSchema.closure(of: configuration.classes)
        let place = scheduler.place
        if let place, let core = cores.find(place, schemas) {
            core.floats = core.floats || floats
            return core
        }
        let core = try RealmCore(configuration: configuration, file: self, scheduler: scheduler, floats: floats)
        if let place { cores.put(core, place) }
        return core
    }
}
