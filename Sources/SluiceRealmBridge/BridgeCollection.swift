import SluiceCore
import SluiceRealm

/// The bounds of a file's views.
package struct BridgeBounds: Hashable, Sendable {
    /// The bytes of one entry of a bootstrap. A client commits an entry at once, and stores at most 16 MB of it.
    package var entryBytes: Int
    /// The objects of one view. Each needs about 300 bytes in memory, and its key in the stored state until the client confirms the view.
    package var viewObjects: Int
    /// The objects of unfinished bootstraps whose keys are stored. Beyond: the client is reset if the connection ends before the repetition
    /// of a view does.
    package var partObjects: Int

    package init(entryBytes: Int = 15 << 20, viewObjects: Int = 1_000_000, partObjects: Int = BridgeReplica.mostObjects) {
        (self.entryBytes, self.viewObjects, self.partObjects) = (entryBytes, viewObjects, partObjects)
    }
}

/// The rows of a bootstrap that were not sent: all of a small one, and those since the last slice of a large one.
struct BridgeCollection {
    /// The version of the hidden subscription set.
    let version: UInt64
    private let bounds: BridgeBounds
    private var rows: [ObjectKey: Row] = [:]
    private(set) var kept: Set<ObjectKey> = []
    private var removed: Set<ObjectKey> = []
    /// Rows of an attempt before, which the session does not repeat if it keeps them.
    private var aside: [ObjectKey: Row] = [:]
    /// The bytes of rows.
    private var bytes = 0
    /// The objects that the bootstrap has named in slices, and still has.
    private(set) var sent: Set<ObjectKey> = []
    /// `true` if the bootstrap has more objects than a view may have. Its rows are dropped.
    private(set) var isTooLarge = false
    /// `true` if the rows are dropped, because the client cannot take the view in slices.
    private(set) var isDropped = false
    /// The objects of dropped rows and removals.
    private(set) var dropped: Set<ObjectKey> = []

    /// - Parameter expected: The estimated number of rows; 0 if unknown.
    init(version: UInt64, _ bounds: BridgeBounds, expected: UInt64 = 0) {
        (self.version, self.bounds) = (version, bounds)
        // About as many as an entry has.
        rows.reserveCapacity(Int(min(expected, 65_536)))
    }

    /// `true` if the rows no longer fit one entry.
    var isFull: Bool { bytes > bounds.entryBytes }
    /// The objects of rows that were not sent.
    var waiting: Dictionary<ObjectKey, Row>.Keys { rows.keys }
    /// The objects of rows and removals that were not sent.
    var named: Set<ObjectKey> { removed.union(rows.keys) }

    mutating func add(_ message: BridgeRows, of type: ObjectType) {
        guard !isTooLarge, let index = type.primaryKey else { return }
        let entered = message.rows.compactMap { row in row[index].map { (object: ObjectKey(type: type.name, key: $0), row: row) } }
        let left = message.removed.map { ObjectKey(type: type.name, key: $0) }
        if isDropped {
            dropped.formUnion(entered.map(\.object) + left)
        } else {
            bytes += message.bytes + 64 * (entered.count + left.count)
            add(entered, left, kept: message.kept.map { ObjectKey(type: type.name, key: $0) })
        }
        guard rows.count + kept.count + sent.count + dropped.count > bounds.viewObjects else { return }
        drop()
        (isTooLarge, dropped) = (true, [])
    }

    private mutating func add(_ entered: [(object: ObjectKey, row: Row)], _ left: [ObjectKey], kept unchanged: [ObjectKey]) {
        for (object, row) in entered {
            rows[object] = row
            if !removed.isEmpty { removed.remove(object) }
        }
        for object in left {
            rows[object] = nil
            kept.remove(object)
            removed.insert(object)
        }
        for object in unchanged {
            if let row = aside.removeValue(forKey: object) { rows[object] = row } else { kept.insert(object) }
        }
    }

    /// Begins again: the session repeats its rows, or keeps them.
    mutating func restart() {
        aside.merge(rows) { $1 }
        (rows, kept, removed, sent) = ([:], [], [], [])
    }

    /// Drops the rows, and keeps the keys of their objects. The end of the bootstrap decides on what follows.
    mutating func drop() {
        dropped.formUnion(removed.union(rows.keys))
        (rows, kept, removed, aside, bytes, isDropped) = ([:], [], [], [:], 0, true)
    }

    /// The way in which the rows reach the client.
    enum Form {
        /// Everything that the client may hold is erased, and every row enters.
        case full
        /// The difference to the content. Unnamed objects leave.
        case difference
        /// The changes since the content's position. Unnamed objects stay.
        case changes
        /// The same, to a content that may lack objects that the client holds.
        case restoration
        /// Every row enters. Unnamed objects stay.
        case slice
    }

    /// Returns the instructions of each object, in an order that is the same for equal rows, and updates the content.
    /// - Parameter leftovers: The objects of unfinished bootstraps. The client may hold them after a full one.
    func instructions(
        _ form: Form, _ content: inout BridgeContent, _ place: BridgeContent.Place, leftovers: Set<ObjectKey> = []
    ) throws(SluiceError) -> [BridgeGroup] {
        let leaving = BridgeOrder.sorted(leaving(form, content, leftovers)) { $0 }
        // Otherwise most objects do not enter, and the room for them would copy the maps of a large view.
        if form == .full || form == .slice { content.reserve(rows.count) }
        var groups = leaving.map { content.leave($0, place, isKnown: form != .restoration) }
        groups.reserveCapacity(groups.count + rows.count)
        for (object, row) in BridgeOrder.sorted(rows, \.key) {
            switch form {
            case .restoration: groups += try content.restore(object, row, place)
            // Slices have the versions of the client's changesets before them, so none may merge with a row.
            case .difference where sent.isEmpty, .changes where sent.isEmpty:
                groups.append(try content.replace(object, row, nil, place))
            case .full, .slice, .difference, .changes: groups.append(try content.enter(object, row, place))
            }
        }
        return groups
    }

    /// Removes the rows, and returns the instructions of each object. Every row enters, and no unnamed object leaves.
    /// - Throws: `internalError` if the session keeps an object that the client lacks.
    mutating func slice(_ content: inout BridgeContent, _ place: BridgeContent.Place) throws(SluiceError) -> [BridgeGroup] {
        let groups = try instructions(.slice, &content, place)
        try check(kept, content)
        sent.subtract(removed)
        sent.reserveCapacity(sent.count + rows.count)
        sent.formUnion(rows.keys)
        sent.formUnion(kept)
        // The next slice has about as many rows.
        rows.removeAll(keepingCapacity: true)
        (kept, removed, bytes) = ([], [], 0)
        return groups
    }

    /// - Throws: `internalError` if one of the objects is not at the client.
    func check(_ kept: Set<ObjectKey>, _ content: BridgeContent) throws(SluiceError) {
        guard let missing = kept.first(where: { !content.memory.view.contains($0) }) else { return }
        throw SluiceError(.internalError, "A bootstrap keeps an object of class \(missing.type) that its client lacks.")
    }

    /// Returns the objects that the bootstrap does not name. Those in `removed` have left since.
    private func unnamed(_ objects: some Sequence<ObjectKey>) -> [ObjectKey] {
        objects.filter { rows.index(forKey: $0) == nil && !sent.contains($0) && !kept.contains($0) }
    }

    private func leaving(_ form: Form, _ content: BridgeContent, _ leftovers: Set<ObjectKey>) -> Set<ObjectKey> {
        switch form {
        // The client may hold the objects of its view, and those whose erasure it has not confirmed.
        case .full:
            let view = content.memory.view
            let erased = content.memory.barriers.keys.lazy.filter { !view.contains($0) }
            return removed.union(unnamed(view)).union(unnamed(erased)).union(unnamed(leftovers))
        case .difference: return removed.union(unnamed(content.memory.view))
        // The client may hold an object that the content lacks, if its position is older than the stream.
        case .changes, .restoration, .slice: return removed
        }
    }
}
