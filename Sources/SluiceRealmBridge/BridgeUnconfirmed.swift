import SluiceCore
import SluiceRealm

/// The changes by entries that the client has not confirmed.
///
/// A connection drops the entries that come while it waits for a view. When the view begins, it tells which entries the client has, and
/// `revert` takes the others back. `ClientStreamBounds` limits the entries that a client leaves unconfirmed, and so this record: the client
/// is reset beyond.
struct BridgeUnconfirmed {
    private enum Change {
        /// An entry gave the object or took it. Its barrier replaced others.
        case sent(ObjectKey, wasHeld: Bool, replaced: [RealmBarriers.Barrier])
        /// An entry gave objects that the client did not hold, and that had no barrier.
        case entered([ObjectKey])
        /// An entry that the client never gets took the object, which it may hold.
        case missed(ObjectKey)
        /// The client made the object or deleted it by a changeset of its own. That never comes back.
        case made(ObjectKey, isHeld: Bool)
        /// The same, and an entry that the changeset did not know has voided it. It stands if the client does not have that entry.
        case voided(ObjectKey, isHeld: Bool, base: UInt64)
        /// A later erasure by the client removed the barriers of the object.
        case passed(ObjectKey, removed: RealmBarriers.List?)
        /// An entry declared a schema.
        case declared(before: UInt64)
    }

    /// The objects of changes that stand although they were taken for void. The check of the client's objects does not know them yet.
    private(set) var standing: Set<ObjectKey> = []
    /// In the order of their versions.
    private var changes: [(version: UInt64, change: Change)] = []

    /// The objects of `entered`.
    private var enteredCount = 0

    /// The number of changed objects and declarations.
    var count: Int { changes.count + enteredCount }

    /// The objects that the client has made.
    var made: Set<ObjectKey> {
        var made: Set<ObjectKey> = []
        for (_, change) in changes { if case .made(let object, true) = change { made.insert(object) } }
        return made
    }

    /// Makes room for objects that enter.
    mutating func reserve(_ count: Int) { changes.reserveCapacity(changes.count + count) }

    mutating func send(_ object: ObjectKey, wasHeld: Bool, replaced: [RealmBarriers.Barrier], at version: UInt64) {
        changes.append((version, .sent(object, wasHeld: wasHeld, replaced: replaced)))
    }

    mutating func enter(_ objects: [ObjectKey], at version: UInt64) {
        changes.append((version, .entered(objects)))
        enteredCount += objects.count
    }

    mutating func miss(_ object: ObjectKey, at version: UInt64) { changes.append((version, .missed(object))) }

    mutating func declare(before schema: UInt64, at version: UInt64) { changes.append((version, .declared(before: schema))) }

    mutating func make(_ object: ObjectKey, isHeld: Bool) { note(.made(object, isHeld: isHeld)) }

    mutating func void(_ object: ObjectKey, isHeld: Bool, base: UInt64) { note(.voided(object, isHeld: isHeld, base: base)) }

    mutating func pass(_ object: ObjectKey, removed: RealmBarriers.List?) { note(.passed(object, removed: removed)) }

    private mutating func note(_ change: Change) { changes.append((changes.last?.version ?? 0, change)) }

    /// Records that the client has all entries up to a version.
    mutating func confirm(upTo version: UInt64) {
        let count = changes.prefix { $0.version <= version }.count
        if enteredCount > 0 {
            for case (_, .entered(let objects)) in changes[..<count] { enteredCount -= objects.count }
        }
        if count == changes.count {
            changes.removeAll(keepingCapacity: count <= 64)
        } else {
            changes.removeFirst(count)
        }
    }

    /// Takes the entries behind a version back: from the objects that the client holds, from its barriers, and from the schema that it has.
    mutating func revert(after received: UInt64, _ memory: inout RealmFileMemory, _ schema: inout UInt64) {
        let first = (changes.lastIndex { $0.version <= received } ?? -1) + 1
        for (version, change) in changes[first...].reversed() {
            switch change {
            case .declared(let before): schema = before
            case .missed(let object): Self.set(object, true, &memory.view)
            case .passed(let object, let removed): memory.setBarriers(object, removed)
            case .sent(let object, let wasHeld, let replaced):
                Self.set(object, wasHeld, &memory.view)
                memory.removeBarrier(object, version, replaced: replaced)
            case .entered(let objects):
                for object in objects {
                    memory.view.remove(object)
                    memory.removeBarrier(object, version, replaced: [])
                }
            case .made, .voided: break
            }
        }
        // What the client has done itself stands, in its order.
        for (_, change) in changes[first...] { redo(change, in: &memory) }
        (changes, enteredCount) = ([], 0)
    }

    /// Adds what the client has done itself, of a later state that the client does not reach.
    mutating func redo(_ later: BridgeUnconfirmed, in memory: inout RealmFileMemory) {
        for (_, change) in later.changes {
            switch change {
            case .made, .voided: note(change)
            case .passed(let object, _): pass(object, removed: memory.barriers[object])
            case .sent, .entered, .missed, .declared: continue
            }
            redo(change, in: &memory)
        }
        standing.formUnion(later.standing)
    }

    /// Removes and returns `standing`.
    mutating func takeStanding() -> Set<ObjectKey> {
        defer { standing = [] }
        return standing
    }

    private mutating func redo(_ change: Change, in memory: inout RealmFileMemory) {
        switch change {
        case .made(let object, let isHeld): Self.set(object, isHeld, &memory.view)
        case .voided(let object, let isHeld, let base):
            guard !memory.isBarred(object, after: base) else { return }
            Self.set(object, isHeld, &memory.view)
            if isHeld { standing.insert(object) }
        case .passed(let object, _): memory.removeBarriers(object)
        case .sent, .entered, .missed, .declared: break
        }
    }

    private static func set(_ object: ObjectKey, _ isHeld: Bool, _ view: inout Set<ObjectKey>) {
        if isHeld { view.insert(object) } else { view.remove(object) }
    }
}
