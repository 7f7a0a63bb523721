import Dispatch
import SluiceCore
import SluiceReplica

/// An observed object: its values as they were told last.
final class ObjectWatch {
    /// What an object shows, for comparing: by slot, and what lies behind the paths that go on through links.
    struct Shown: Sendable {
        var values: [Value]
        var behind: [Value]
        /// The objects that its links lead to, with the slots of the links.
        var links: [FollowedElements.Visit: Set<Int>]
    }

    private let object: ObjectBase
    private let filter: KeyPathFilter?
    private let block: (Change) -> Void
    private weak var token: NotificationToken?
    private var shown: Shown
    /// By slot, the objects that the links in `shown` lead to: one that is deleted is the old value, with what it was last.
    private var targets: [Int: ObjectBase]
    /// Slots that this Realm has set since, or whose target it has deleted.
    private var written: Set<Int> = []
    private var writtenInTransaction: Set<Int> = []
    /// Objects that a collection of links leads to and that are known not to be on the device.
    private var missing: Set<FollowedElements.Visit> = []

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
        targets = ObjectWatch.targets(of: shown, object, filter)
        self.token = token
        self.block = block
        root = object.root
    }

    /// The classes that matter: the object's own, those that it links to, and those on the way of key paths.
    func types(_ core: RealmCore) -> Set<Int> {
        let linked = object.model.properties.compactMap { ($0.kind.target as? Object.Type).map { core.type(of: $0) } }
        return Set(linked).union(behind(core)).union([root?.type].compactMap(\.self))
    }

    private func behind(_ core: RealmCore) -> [Int] {
        filter?.paths.flatMap { $0.dropFirst().compactMap { core.type(named: $0.schema.name) } } ?? []
    }

    /// Whether a change may have changed what is told.
    func isConcerned(by change: ReplicaChange, _ core: RealmCore) -> Bool {
        if let root, change.types[root.type]?.contains(root.key) == true { return true }
        return behind(core).contains { change.types[$0] != nil }
            || shown.links.keys.contains { change.types[$0.type]?.contains($0.key) == true }
    }

    // MARK: What this Realm writes

    func wrote(_ type: Int, _ key: Value, _ slot: Int) {
        if object._row?.type == type, object._row?.key == key { writtenInTransaction.insert(slot) }
    }

    /// An object that a link leads to is no old value for the Realm that deletes it.
    func deleted(_ type: Int, _ key: Value) {
        guard let slots = shown.links[.init(type: type, key: key)] else { return }
        for slot in slots where object.model.properties[slot].kind.collection == .none { writtenInTransaction.insert(slot) }
    }

    func transactionEnded(isStored: Bool) {
        if isStored { written.formUnion(writtenInTransaction) }
        writtenInTransaction = []
    }

    // MARK: Comparing

    static func show(_ object: ObjectBase, _ filter: KeyPathFilter?) -> Shown? {
        guard !object.isGone, let row = object._row else { return nil }
        var values = (0..<row.schema.storedCount).map { row.current($0) ?? .null }
        var links: [FollowedElements.Visit: Set<Int>] = [:]
        for slot in values.indices {
            guard let target = row.schema.properties[slot].kind.target as? Object.Type else { continue }
            let type = row.core.type(of: target)
            for key in values[slot].linked { links[.init(type: type, key: key), default: []].insert(slot) }
            // A link to what is not on the device is seen as none.
            let isOne = row.schema.properties[slot].kind.collection == .none
            if isOne, values[slot] != .null, !row.core.contains(type, values[slot]) { values[slot] = .null }
        }
        let paths = filter?.paths.filter { $0.count > 1 } ?? []
        return Shown(values: values, behind: paths.map { Reach(core: row.core).what(object, $0[...]) }, links: links)
    }

    /// The objects that links lead to, of the properties that an observer may be told of.
    private static func targets(of shown: Shown, _ object: ObjectBase, _ filter: KeyPathFilter?) -> [Int: ObjectBase] {
        guard !object.isGone, let row = object._row else { return [:] }
        var targets: [Int: ObjectBase] = [:]
        for slot in Set(shown.links.values.joined()) where row.schema.properties[slot].kind.collection == .none {
            if filter?.paths.contains(where: { $0[0].slot == slot }) ?? true, shown.values[slot] != .null {
                let target = row.schema.properties[slot].wrapper.untyped(_StoredValue(shown.values[slot]), of: object, slot: slot)
                targets[slot] = target as? ObjectBase
            }
        }
        return targets
    }

    /// The collections that have become longer or shorter because an object that they lead to came or went.
    private func changedCollections(_ change: ReplicaChange, _ now: Shown, _ core: RealmCore) -> Set<Int> {
        var slots: Set<Int> = []
        for (link, places) in now.links where change.types[link.type]?.contains(link.key) == true {
            let isThere = core.contains(link.type, link.key)
            if isThere ? missing.remove(link) != nil : missing.insert(link).inserted { slots.formUnion(places) }
        }
        return slots.filter { object.model.properties[$0].kind.collection != .none }
    }

    /// - Parameter change: nil: whatever has happened since `shown`.
    func update(_ change: ReplicaChange?, tells: Bool) {
        guard let now = ObjectWatch.show(object, filter) else {
            token?.invalidate()
            return block(.deleted)
        }
        defer {
            shown = now
            targets = ObjectWatch.targets(of: now, object, filter)
            written = []
            if !tells { writtenInTransaction = [] }
        }
        let came = change.flatMap { change in (object._row?.core).map { changedCollections(change, now, $0) } } ?? []
        guard tells else { return }
        let changes = changes(to: now, came)
        if !changes.isEmpty { block(.change(object, changes)) }
    }

    private func changes(to now: Shown, _ came: Set<Int>) -> [PropertyChange] {
        guard let row = object._row else { return [] }
        let direct = filter.map { Set($0.paths.filter { $0.count == 1 }.map { $0[0].slot }) }
        let longer = filter?.paths.filter { $0.count > 1 } ?? []
        let reached = Set(zip(longer, zip(shown.behind, now.behind)).filter { $1.0 != $1.1 }.map { $0.0[0].slot })
        return row.schema.properties.indices.compactMap { slot in
            let isDirect = slot < row.schema.storedCount && direct?.contains(slot) ?? true
            let hasChanged = isDirect && (shown.values[slot] != now.values[slot] || written.contains(slot) || came.contains(slot))
            guard hasChanged || reached.contains(slot) else { return nil }
            let property = row.schema.properties[slot]
            if property.kind.collection != .none { return PropertyChange(name: property.name, oldValue: nil, newValue: nil) }
            func untyped(_ value: Value) -> Any? { property.wrapper.untyped(_StoredValue(value), of: object, slot: slot) }
            return PropertyChange(
                name: property.name, oldValue: written.contains(slot) ? nil : targets[slot] ?? untyped(shown.values[slot]),
                newValue: untyped(now.values[slot]))
        }
    }

    // MARK: Beginning

    static func start(
        _ object: ObjectBase, keyPaths: [String]?, on queue: DispatchQueue?, _ tell: @escaping (Change) -> Void
    ) -> NotificationToken {
        let start = Start(object, keyPaths)
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
            core.observe(
                .init(token: WeakConfined(token), types: watch.types(core)) { [unowned core] delivery throws(SluiceError) in
                    if watch.isConcerned(by: delivery.change, core) { watch.update(delivery.change, tells: delivery.tells) }
                })
            watch.update(nil, tells: true)
        }

        func begin(in scheduler: Scheduler, _ block: @escaping (Change) -> Void) {
            guard token.isValid, let core = try? file.core(configuration, scheduler: scheduler) else { return }
            guard let object = core.find(locator) as? ObjectBase else { return block(.deleted) }
            core.refreshToObserve()
            begin(in: core, on: object, block)
        }

        /// - Parameter make: what is told of a change; nil: nothing.
        func run<A: Actor, Told>(
            on actor: A, _ make: @escaping @Sendable (Change) -> Told?, _ block: @Sendable @escaping (isolated A, Told) -> Void
        ) async -> NotificationToken {
            await begin(on: actor, make, block)
            return token
        }

        private func begin<A: Actor, Told>(
            on actor: isolated A, _ make: @escaping @Sendable (Change) -> Told?, _ block: @Sendable @escaping (isolated A, Told) -> Void
        ) {
            begin(in: .of(actor)) { change in
                guard let change = make(change) else { return }
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

extension Value {
    /// The keys that a link, or a collection of links, leads to.
    fileprivate var linked: [Value] {
        switch self {
        case .null: []
        case .list(let keys): keys.filter { $0 != .null }
        case .dictionary(let entries): entries.values.filter { $0 != .null }
        default: [self]
        }
    }
}
