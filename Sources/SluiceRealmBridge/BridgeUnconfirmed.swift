import SluiceCore

/// The changes by entries since the last confirmation, at a client that may not have taken them all.
///
/// A connection drops the entries that come while it waits for a view. When the view begins, it tells which entries the client has, and
/// `revert` takes the others back. `ClientStreamBounds` limits the entries that a connection keeps meanwhile, and so this record: the
/// client is reset beyond.
struct BridgeUnconfirmed {
    private enum Change {
        /// An entry gave the object or took it.
        case sent(ObjectKey, wasHeld: Bool)
        /// The client made the object or deleted it by a changeset of its own. That never comes back.
        case made(ObjectKey, isHeld: Bool)
        /// An entry declared a schema.
        case declared(before: UInt64)
    }

    /// In the order of their versions.
    private var changes: [(version: UInt64, change: Change)] = []

    /// Makes room for objects that enter.
    mutating func reserve(_ count: Int) { changes.reserveCapacity(changes.count + count) }

    mutating func send(_ object: ObjectKey, wasHeld: Bool, at version: UInt64) {
        changes.append((version, .sent(object, wasHeld: wasHeld)))
    }

    mutating func declare(before schema: UInt64, at version: UInt64) { changes.append((version, .declared(before: schema))) }

    mutating func make(_ object: ObjectKey, isHeld: Bool) { changes.append((changes.last?.version ?? 0, .made(object, isHeld: isHeld))) }

    /// Records that the client has all entries so far.
    mutating func confirm() { changes.removeAll(keepingCapacity: changes.count <= 64) }

    /// Takes the entries behind a version back: from the objects that the client holds, and from the schema that it has.
    mutating func revert(after received: UInt64, _ view: inout Set<ObjectKey>, _ schema: inout UInt64) {
        var made: Set<ObjectKey> = []
        // From the last one on, so that the oldest note of an object decides.
        while let (version, change) = changes.last, version > received {
            changes.removeLast()
            switch change {
            case .declared(let before): schema = before
            case .made(let object, let isHeld): if made.insert(object).inserted { Self.set(object, isHeld, &view) }
            case .sent(let object, let wasHeld): if !made.contains(object) { Self.set(object, wasHeld, &view) }
            }
        }
        changes = []
    }

    /// Adds what the client has made and deleted by itself.
    func addMade(to view: inout Set<ObjectKey>) {
        for (_, change) in changes { if case .made(let object, let isHeld) = change { Self.set(object, isHeld, &view) } }
    }

    private static func set(_ object: ObjectKey, _ isHeld: Bool, _ view: inout Set<ObjectKey>) {
        if isHeld { view.insert(object) } else { view.remove(object) }
    }
}
