import Dispatch
import SluiceCore
import SluiceReplica

/// The observation of one object: its values as last reported. Confined to the Realm's scheduler.
final class ObjectWatch {
    /// The observed values, for comparison: by slot, and the values behind key paths through links.
    struct Shown: Sendable {
        /// The values of the object's own properties by slot.
        var values: [Value]
        /// The values behind key paths of more than one step, in the order of the paths.
        var behind: [Value]
        /// The objects that its links lead to, with the slots of the links.
        var links: [FollowedElements.Visit: Set<Int>]
    }

    private let object: ObjectBase
    private let filter: KeyPathFilter?
    private let block: (Change) -> Void
    private weak var token: NotificationToken?
    private var shown: Shown
    /// The target objects of the links in `shown`, by slot. A deleted target becomes the old value, with its last state.
    private var targets: [Int: ObjectBase]
    /// The slots that this Realm has set, or whose target it has deleted, since the last report.
    private var written: Set<Int> = []
    /// The same for the open transaction. A rollback discards them.
    private var writtenInTransaction: Set<Int> = []
    /// The targets of link collections that are known to be absent from the device.
    private var missing: Set<FollowedElements.Visit> = []

    enum Change {
        case change(ObjectBase, [PropertyChange])
        case deleted
    }

    var isValid: Bool { token?.isValid ?? false }
    /// The object with a row of its own: this object, or the owner of an embedded object.
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

    /// The classes whose changes matter: the object's own class, the linked classes, and the classes on key paths.
    func types(_ core: RealmCore) -> Set<Int> {
        let linked = object.model.properties.compactMap { ($0.kind.target as? Object.Type).map { core.classes.type(of: $0) } }
        return Set(linked).union(behind(core)).union([root?.type].compactMap(\.self))
    }

    private func behind(_ core: RealmCore) -> [Int] {
        filter?.paths.flatMap { $0.dropFirst().compactMap { core.classes.type(named: $0.schema.name) } } ?? []
    }

    /// `true` if a change may affect the reported values.
    func isConcerned(by change: ReplicaChange, _ core: RealmCore) -> Bool {
        if let root, change.types[root.type]?.contains(root.key) == true { return true }
        return behind(core).contains { change.types[$0] != nil }
            || shown.links.keys.contains { change.types[$0.type]?.contains($0.key) == true }
    }

    // MARK: What this Realm writes

    func wrote(_ type: Int, _ key: Value, _ slot: Int) {
        if object._row?.type == type, object._row?.key == key { writtenInTransaction.insert(slot) }
    }

    /// Marks links to an object that this Realm deletes. Such a target is not reported as an old value.
    func deleted(_ type: Int, _ key: Value) {
        guard let slots = shown.links[.init(type: type, key: key)] else { return }
        // Collections never report old values, so only single links count.
        for slot in slots where object.model.properties[slot].kind.collection == .none { writtenInTransaction.insert(slot) }
    }

    /// Keeps the slots of a transaction about to be committed for the next report; discards those of a rollback.
    func transactionEnded(isStored: Bool) {
        if isStored {
            written.formUnion(writtenInTransaction)
            // Another Realm may delete a target before the next report. Its last state then includes this transaction.
            for target in targets.values { _ = target.isGone }
        }
        writtenInTransaction = []
    }

    // MARK: Comparing

    /// The current values of an object; nil if it has been deleted.
    static func show(_ object: ObjectBase, _ filter: KeyPathFilter?) -> Shown? {
        guard !object.isGone, let row = object._row else { return nil }
        var values = (0..<row.schema.storedCount).map { row.current($0) ?? .null }
        var links: [FollowedElements.Visit: Set<Int>] = [:]
        for slot in values.indices {
            guard let target = row.schema.properties[slot].kind.target as? Object.Type else { continue }
            let type = row.core.classes.type(of: target)
            // All links are recorded, also those to absent objects: one that arrives changes the collection.
            for key in values[slot].linked { links[.init(type: type, key: key), default: []].insert(slot) }
            // A link to an object that is absent from the device reads as nil.
            let isOne = row.schema.properties[slot].kind.collection == .none
            if isOne, values[slot] != .null, !row.core.reading.contains(type, values[slot]) { values[slot] = .null }
        }
        let paths = filter?.paths.filter { $0.count > 1 } ?? []
        return Shown(values: values, behind: paths.map { KeyPathResolver(core: row.core).value(object, $0[...]) }, links: links)
    }

    /// The targets of the links that the observer may receive as old values.
    private static func targets(of shown: Shown, _ object: ObjectBase, _ filter: KeyPathFilter?) -> [Int: ObjectBase] {
        guard !object.isGone, let row = object._row else { return [:] }
        var targets: [Int: ObjectBase] = [:]
        // Created now: after its deletion a target can no longer be found.
        for slot in Set(shown.links.values.joined()) where row.schema.properties[slot].kind.collection == .none {
            if filter?.paths.contains(where: { $0[0].slot == slot }) ?? true, shown.values[slot] != .null {
                let target = row.schema.properties[slot].wrapper.untyped(_StoredValue(shown.values[slot]), of: object, slot: slot)
                targets[slot] = target as? ObjectBase
            }
        }
        return targets
    }

    /// The link collections whose length changed because a target was added to or deleted from the device.
    private func changedCollections(_ change: ReplicaChange, _ now: Shown, _ core: RealmCore) -> Set<Int> {
        var slots: Set<Int> = []
        for (link, places) in now.links where change.types[link.type]?.contains(link.key) == true {
            // Only the targets that the change names are looked up: O(change), not O(collection).
            let isThere = core.reading.contains(link.type, link.key)
            // The record is toggled: only a change of presence counts.
            if isThere ? missing.remove(link) != nil : missing.insert(link).inserted { slots.formUnion(places) }
        }
        return slots.filter { object.model.properties[$0].kind.collection != .none }
    }

    /// Reports the difference between `shown` and the current values.
    /// - Parameters:
    ///   - change: The change to report. If nil, any difference since `shown` is reported.
    ///   - isNotified: `false` if the observer must not receive the change. Later reports still compare with the values after it.
    func update(_ change: ReplicaChange?, isNotified: Bool) {
        // A deleted object ends the observation before the block runs, so `deleted` is the last notification.
        guard let now = ObjectWatch.show(object, filter) else {
            token?.invalidate()
            return block(.deleted)
        }
        // On every exit: the next report compares with these values, even if this one is not delivered.
        defer {
            shown = now
            targets = ObjectWatch.targets(of: now, object, filter)
            written = []
            if !isNotified { writtenInTransaction = [] }
        }
        // Must run even if nothing is reported, since it updates `missing`.
        let came = change.flatMap { change in (object._row?.core).map { changedCollections(change, now, $0) } } ?? []
        guard isNotified else { return }
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
            // A slot that this Realm wrote counts as changed even if the value is equal, as in RealmSwift.
            let hasChanged = isDirect && (shown.values[slot] != now.values[slot] || written.contains(slot) || came.contains(slot))
            guard hasChanged || reached.contains(slot) else { return nil }
            let property = row.schema.properties[slot]
            if property.kind.collection != .none { return PropertyChange(name: property.name, oldValue: nil, newValue: nil) }
            func untyped(_ value: Value) -> Any? { property.wrapper.untyped(_StoredValue(value), of: object, slot: slot) }
            // The writing Realm receives no old values.
            return PropertyChange(
                name: property.name, oldValue: written.contains(slot) ? nil : targets[slot] ?? untyped(shown.values[slot]),
                newValue: untyped(now.values[slot]))
        }
    }

    // MARK: Beginning

    static func start(
        _ object: ObjectBase, keyPaths: [String]?, on queue: DispatchQueue?, _ block: @escaping (Change) -> Void
    ) -> NotificationToken {
        let start = Start(object, keyPaths)
        if queue == nil, let core = object.managingCore, core.scheduler.canDeliver {
            start.begin(in: core, on: object, block)
            return start.token
        }
        let queue = queue ?? DispatchQueue(label: "sluice.notifications")
        let confined = Confined(block)
        // If the queue is busy, the block later finds the object changed since this call and reports the difference.
        queue.async { start.begin(in: .of(queue), confined.content) }
        return start.token
    }

    /// The parameters that start an observation of an object on another scheduler.
    struct Start: @unchecked Sendable {  // Sendable because: the locator may be used on any thread, and the filter holds constants.
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
            core.observations.requireObservable()
            filter = KeyPathFilter.of(keyPaths, object.model)
            guard let locator = object._locator(), let shown = ObjectWatch.show(object, filter) else {
                throwRealmException(RealmMisuse.invalidated)
            }
            self.locator = locator
            self.shown = shown
            (file, configuration) = (core.file, core.configuration)
        }

        func begin(in core: RealmCore, on object: ObjectBase, _ block: @escaping (Change) -> Void) {
            // The watch retains its object and thereby the Realm, for as long as the observation lasts.
            let watch = ObjectWatch(object, filter, shown, token, block)
            core.observations.add(watch)
            core.removeObservers(whenEnded: token)
            core.observations.observe(
                .init(token: WeakConfined(token), types: watch.types(core)) { [unowned core] delivery throws(SluiceError) in
                    if watch.isConcerned(by: delivery.change, core) { watch.update(delivery.change, isNotified: delivery.isNotified) }
                })
            // Reports the changes between the call of `observe` and this start.
            // After the registration: a commit from here on is delivered, so none is lost in between.
            watch.update(nil, isNotified: true)
        }

        func begin(in scheduler: Scheduler, _ block: @escaping (Change) -> Void) {
            guard token.isValid, let core = file.coreToObserve(configuration, scheduler) else { return }
            guard let object = core.find(locator) as? ObjectBase else {
                // As in `update`, `deleted` ends the observation.
                token.invalidate()
                return block(.deleted)
            }
            core.observations.refreshToObserve()
            begin(in: core, on: object, block)
        }

        /// Starts the observation on an actor.
        /// - Parameter make: Converts a change for the block; nil if the change is not reported.
        func run<A: Actor, Reported>(
            on actor: A, _ make: @escaping @Sendable (Change) -> Reported?, _ block: @Sendable @escaping (isolated A, Reported) -> Void
        ) async -> NotificationToken {
            await begin(on: actor, make, block)
            return token
        }

        private func begin<A: Actor, Reported>(
            on actor: isolated A, _ make: @escaping @Sendable (Change) -> Reported?,
            _ block: @Sendable @escaping (isolated A, Reported) -> Void
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
    /// The row that contains the object.
    var root: _Place.Address.Root? {
        guard let row = _row else { return nil }
        return row.place.map { $0.address?.root } ?? _Place.Address.Root(type: row.type, key: row.key)
    }
}

extension Value {
    /// The keys of a link or of a collection of links.
    fileprivate var linked: [Value] {
        switch self {
        case .null: []
        case .list(let keys): keys.filter { $0 != .null }
        case .dictionary(let entries): entries.values.filter { $0 != .null }
        default: [self]
        }
    }
}
