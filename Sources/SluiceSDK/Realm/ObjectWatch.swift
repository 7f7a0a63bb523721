import Dispatch
import SluiceCore
import SluiceReplica

/// An observed object: its values as they were told last.
final class ObjectWatch {
    /// What an object shows, for comparing: by slot, and what lies behind the paths that go on through links.
    struct Shown: Sendable {
        var values: [Value]
        var behind: [Value]
    }

    private let object: ObjectBase
    private let filter: KeyPathFilter?
    private let block: (Change) -> Void
    private weak var token: NotificationToken?
    private var shown: Shown
    /// Slots that this Realm has set since.
    private var written: Set<Int> = []
    private var writtenInTransaction: Set<Int> = []

    enum Change {
        case change(ObjectBase, [PropertyChange])
        case deleted
    }

    var isValid: Bool { token?.isValid ?? false }
    /// The object that has a row of its own: this, or the one that an embedded object is in.
    private let root: _Place.Address.Root?

    init(_ object: ObjectBase, _ filter: KeyPathFilter?, _ shown: Shown, _ token: NotificationToken, _ block: @escaping (Change) -> Void) {
        self.object = object
        self.filter = filter
        self.shown = shown
        self.token = token
        self.block = block
        root = object.root
    }

    /// The classes that matter: the object's own, and those on the way of key paths.
    func types(_ core: RealmCore) -> Set<Int> {
        let behind = filter?.paths.flatMap { $0.dropFirst().map { core.type(named: $0.schema.name) } } ?? []
        return Set([root?.type] + behind).filter { $0 != nil }.reduce(into: []) { set, type in if let type { set.insert(type) } }
    }

    // MARK: What this Realm writes

    func wrote(_ type: Int, _ key: Value, _ slot: Int) {
        if object._row?.type == type, object._row?.key == key { writtenInTransaction.insert(slot) }
    }

    func transactionEnded(isStored: Bool) {
        if isStored { written.formUnion(writtenInTransaction) }
        writtenInTransaction = []
    }

    // MARK: Comparing

    static func show(_ object: ObjectBase, _ filter: KeyPathFilter?) -> Shown? {
        guard !object.isGone, let row = object._row else { return nil }
        let values = (0..<row.schema.storedCount).map { row.current($0) ?? .null }
        let paths = filter?.paths.filter { $0.count > 1 } ?? []
        return Shown(values: values, behind: paths.map { Reach(core: row.core).what(object, $0[...]) })
    }

    func update(tells: Bool) {
        guard let now = ObjectWatch.show(object, filter) else {
            token?.invalidate()
            return block(.deleted)
        }
        defer {
            shown = now
            written = []
            if !tells { writtenInTransaction = [] }
        }
        guard tells else { return }
        let changes = changes(to: now)
        if !changes.isEmpty { block(.change(object, changes)) }
    }

    private func changes(to now: Shown) -> [PropertyChange] {
        guard let row = object._row else { return [] }
        let direct = filter.map { Set($0.paths.filter { $0.count == 1 }.map { $0[0].slot }) }
        let longer = filter?.paths.filter { $0.count > 1 } ?? []
        let reached = Set(zip(longer, zip(shown.behind, now.behind)).filter { $1.0 != $1.1 }.map { $0.0[0].slot })
        return row.schema.properties.indices.compactMap { slot in
            let isDirect = slot < row.schema.storedCount && direct?.contains(slot) ?? true
            let hasChanged = isDirect && (shown.values[slot] != now.values[slot] || written.contains(slot))
            guard hasChanged || reached.contains(slot) else { return nil }
            let property = row.schema.properties[slot]
            if property.kind.collection != .none { return PropertyChange(name: property.name, oldValue: nil, newValue: nil) }
            func untyped(_ value: Value) -> Any? { property.wrapper.untyped(_StoredValue(value), of: object, slot: slot) }
            return PropertyChange(
                name: property.name, oldValue: written.contains(slot) ? nil : untyped(shown.values[slot]),
                newValue: untyped(now.values[slot]))
        }
    }

    // MARK: Beginning

    static func start<T: ObjectBase>(
        _ object: ObjectBase, keyPaths: [String]?, on queue: DispatchQueue?, _ block: @escaping (ObjectChange<T>) -> Void
    ) -> NotificationToken {
        let start = Start(object, keyPaths)
        let tell = { (change: Change) in if let change = ObjectChange<T>(change) { block(change) } }
        if queue == nil, let core = object.managingCore, core.scheduler.canDeliver {
            start.begin(in: core, on: object, tell)
            return start.token
        }
        let queue = queue ?? DispatchQueue(label: "sluice.notifications")
        let confined = Confined(tell)
        // A queue that has to wait for its turn finds the object as it was shown here; what came between is told.
        queue.async { start.begin(in: .of(queue), confined.content) }
        return start.token
    }

    /// What is needed to begin to observe an object at another place.
    // Sendable because: the locator is for any thread, and the filter holds constants.
    struct Start: @unchecked Sendable {
        let token = NotificationToken()
        private let locator: _Locator
        private let filter: KeyPathFilter?
        private let shown: Shown
        private let file: OpenFile
        private let configuration: Realm.Configuration

        init(_ object: ObjectBase, _ keyPaths: [String]?) {
            guard let core = object.managingCore else {
                throwRealmException("Only objects which are managed by a Realm support change notifications")
            }
            core.requireObservable()
            filter = KeyPathFilter.of(keyPaths, object.model)
            guard let locator = object._locator(), let shown = ObjectWatch.show(object, filter) else {
                throwRealmException(RealmMisuse.invalidated)
            }
            self.locator = locator
            self.shown = shown
            (file, configuration) = (core.file, core.configuration)
        }

        func begin(in core: RealmCore, on object: ObjectBase, _ block: @escaping (Change) -> Void) {
            // Its object keeps the Realm alive as long as the observation lasts.
            let watch = ObjectWatch(object, filter, shown, token, block)
            core.objectWatches.append(watch)
            let (scheduler, weak) = (core.scheduler, WeakConfined(core))
            token.whenEnded { scheduler.enqueue { weak.content?.forgetEnded() } }
            let own = watch.root
            core.observe(
                .init(token: WeakConfined(token), types: watch.types(core)) { delivery throws(SluiceError) in
                    let isConcerned = delivery.change.types.contains { type, change in
                        type == own?.type ? change.contains(own?.key ?? .null) : true
                    }
                    if isConcerned { watch.update(tells: delivery.tells) }
                })
            watch.update(tells: true)
        }

        func begin(in scheduler: Scheduler, _ block: @escaping (Change) -> Void) {
            guard token.isValid, let core = try? file.core(configuration, scheduler: scheduler) else { return }
            guard let object = core.find(locator) as? ObjectBase else { return block(.deleted) }
            core.refresh()
            begin(in: core, on: object, block)
        }

        func run<A: Actor, T: ObjectBase>(
            on actor: A, _ block: @Sendable @escaping (isolated A, ObjectChange<T>) -> Void
        ) async -> NotificationToken {
            await begin(on: actor, block)
            return token
        }

        private func begin<A: Actor, T: ObjectBase>(
            on actor: isolated A, _ block: @Sendable @escaping (isolated A, ObjectChange<T>) -> Void
        ) {
            begin(in: .of(actor)) { change in
                guard let change = ObjectChange<T>(change) else { return }
                let confined = Confined(change)
                actor.assumeIsolated { block($0, confined.content) }
            }
        }
    }
}

extension ObjectChange where T: ObjectBase {
    init?(_ change: ObjectWatch.Change) {
        switch change {
        case .deleted: self = .deleted
        case .change(let object, let properties):
            guard let object = object as? T else { return nil }
            self = .change(object, properties)
        }
    }
}

extension ObjectBase {
    /// The row that the object is in.
    var root: _Place.Address.Root? {
        guard let row = _row else { return nil }
        return row.place.map { $0.address?.root } ?? _Place.Address.Root(type: row.type, key: row.key)
    }
}
