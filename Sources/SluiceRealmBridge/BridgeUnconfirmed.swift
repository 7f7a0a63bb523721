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
        case sent(ObjectKey, wasHeld: Bool, replaced: [RealmFileMemory.Barrier])
        /// The client made the object or deleted it by a changeset of its own. That never comes back.
        case made(ObjectKey, isHeld: Bool)
        /// A later erasure by the client removed the barriers of the object. They never come back.
        case passed(ObjectKey)
        /// An entry declared a schema.
        case declared(before: UInt64)
    }

    /// In the order of their versions.
    private var changes: [(version: UInt64, change: Change)] = []

    var count: Int { changes.count }

    /// Makes room for objects that enter.
    mutating func reserve(_ count: Int) { changes.reserveCapacity(changes.count + count) }

    mutating func send(_ object: ObjectKey, wasHeld: Bool, replaced: [RealmFileMemory.Barrier], at version: UInt64) {
        changes.append((version, .sent(object, wasHeld: wasHeld, replaced: replaced)))
    }

    mutating func declare(before schema: UInt64, at version: UInt64) { changes.append((version, .declared(before: schema))) }

    mutating func make(_ object: ObjectKey, isHeld: Bool) { note(.made(object, isHeld: isHeld)) }

    mutating func pass(_ object: ObjectKey) { note(.passed(object)) }

    private mutating func note(_ change: Change) { changes.append((changes.last?.version ?? 0, change)) }

    /// Records that the client has all entries up to a version.
    mutating func confirm(upTo version: UInt64) {
        let count = changes.prefix { $0.version <= version }.count
        if count == changes.count {
            changes.removeAll(keepingCapacity: count <= 64)
        } else {
            changes.removeFirst(count)
        }
    }

    /// Takes the entries behind a version back: from the objects that the client holds, from its barriers, and from the schema that it has.
    mutating func revert(after received: UInt64, _ memory: inout RealmFileMemory, _ schema: inout UInt64) {
        var (made, passed): (Set<ObjectKey>, Set<ObjectKey>) = ([], [])
        // From the last one on, so that the oldest note of an object decides.
        while let (version, change) = changes.last, version > received {
            changes.removeLast()
            switch change {
            case .declared(let before): schema = before
            case .made(let object, let isHeld): if made.insert(object).inserted { Self.set(object, isHeld, &memory.view) }
            case .passed(let object): passed.insert(object)
            case .sent(let object, let wasHeld, let replaced):
                if !made.contains(object) { Self.set(object, wasHeld, &memory.view) }
                if !passed.contains(object) { memory.removeBarrier(object, version, replaced: replaced) }
            }
        }
        changes = []
    }

    /// Adds what the client has made and deleted by itself.
    func addMade(to memory: inout RealmFileMemory) {
        for (_, change) in changes {
            switch change {
            case .made(let object, let isHeld): Self.set(object, isHeld, &memory.view)
            case .passed(let object): memory.removeBarriers(object)
            case .sent, .declared: break
            }
        }
    }

    private static func set(_ object: ObjectKey, _ isHeld: Bool, _ view: inout Set<ObjectKey>) {
        if isHeld { view.insert(object) } else { view.remove(object) }
    }
}
