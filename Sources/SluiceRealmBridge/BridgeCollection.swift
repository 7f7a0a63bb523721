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
///
/// A view of many objects costs little more than their bytes, so its rows are only kept in their order. What asks for the row of one object
/// builds the map first.
struct BridgeCollection {
    /// The version of the hidden subscription set.
    let version: UInt64
    private let bounds: BridgeBounds
    /// The estimated number of rows; 0 if unknown.
    private let expected: Int
    /// In the order in which they came. A row without content has been replaced or removed.
    private var rows: [(object: ObjectKey, row: Row?)] = []
    /// The places of objects in `rows`; nil until they are needed. Before, an object may have several rows, of which the last one counts.
    private var places: [ObjectKey: Int]?
    /// The objects that the client has as they are, also of earlier slices.
    private(set) var kept: Set<ObjectKey> = []
    private var removed: Set<ObjectKey> = []
    /// Rows of an attempt before, which the session does not repeat if it keeps them.
    private var aside: [ObjectKey: Row] = [:]
    /// The bytes of rows.
    private var bytes = 0
    /// The number of rows in slices.
    private var sentCount = 0
    /// The objects of slices since the bootstrap began again. Nil if it has not: then they are those that entered with the view's version.
    private var sent: Set<ObjectKey>?
    /// `true` if the bootstrap has more objects than a view may have. Its rows are dropped.
    private(set) var isTooLarge = false
    /// `true` if the rows are dropped, because the client cannot take the view in slices.
    private(set) var isDropped = false
    /// The objects of dropped rows and removals.
    private(set) var dropped: Set<ObjectKey> = []

    /// - Parameter expected: The estimated number of rows; 0 if unknown.
    init(version: UInt64, _ bounds: BridgeBounds, expected: UInt64 = 0) {
        (self.version, self.bounds) = (version, bounds)
        self.expected = min(Int(clamping: expected), bounds.viewObjects)
        // About as many as an entry has.
        rows.reserveCapacity(min(self.expected, 65_536))
    }

    /// `true` if the rows no longer fit one entry.
    var isFull: Bool { bytes > bounds.entryBytes }
    /// The objects of rows and removals that were not sent.
    var named: Set<ObjectKey> { removed.union(rows.lazy.filter { $0.row != nil }.map(\.object)) }
    /// The number of objects that the client has with the slices so far.
    var namedCount: Int { sentCount + kept.count }
    /// `true` if rows were sent in slices. They have the version of the client's changesets before them, so none may merge with a row.
    private var hasSlices: Bool { sentCount > 0 || sent != nil }

    mutating func add(_ message: BridgeRows, of type: ObjectType) {
        guard !isTooLarge, let index = type.primaryKey else { return }
        let left = message.removed.map { ObjectKey(type: type.name, key: $0) }
        if isDropped {
            for row in message.rows { if let key = row[index] { dropped.insert(ObjectKey(type: type.name, key: key)) } }
            dropped.formUnion(left)
        } else {
            bytes += message.bytes + 64 * (message.rows.count + left.count)
            for row in message.rows { if let key = row[index] { add(ObjectKey(type: type.name, key: key), row) } }
            add(left, kept: message.kept.map { ObjectKey(type: type.name, key: $0) })
        }
        guard isBeyondBound else { return }
        // Objects with several rows count once.
        find()
        guard isBeyondBound else { return }
        drop()
        (isTooLarge, dropped) = (true, [])
    }

    private var isBeyondBound: Bool { rows.count + kept.count + sentCount + dropped.count > bounds.viewObjects }

    private mutating func add(_ object: ObjectKey, _ row: Row) {
        if !removed.isEmpty { removed.remove(object) }
        if let place = places?.updateValue(rows.count, forKey: object) { rows[place].row = nil }
        rows.append((object, row))
    }

    private mutating func add(_ left: [ObjectKey], kept unchanged: [ObjectKey]) {
        if !left.isEmpty { find() }
        for object in left {
            if let place = places?.removeValue(forKey: object) { rows[place].row = nil }
            kept.remove(object)
            removed.insert(object)
        }
        for object in unchanged {
            if let row = aside.removeValue(forKey: object) { add(object, row) } else { kept.insert(object) }
        }
    }

    /// Finds the place of each object's last row, and removes the other rows.
    private mutating func find() {
        guard places == nil else { return }
        var places: [ObjectKey: Int] = [:]
        places.reserveCapacity(rows.count)
        for (place, entered) in rows.enumerated() {
            if let earlier = places.updateValue(place, forKey: entered.object) { rows[earlier].row = nil }
        }
        if places.count < rows.count {
            rows.removeAll { $0.row == nil }
            for (place, entered) in rows.enumerated() { places[entered.object] = place }
        }
        self.places = places
    }

    private mutating func removeRows() {
        // The next slice has about as many rows.
        rows.removeAll(keepingCapacity: true)
        (places, removed, bytes) = (nil, [], 0)
    }

    /// Begins again: the session repeats its rows, or keeps them.
    mutating func restart() {
        for case (let object, let row?) in rows { aside[object] = row }
        if hasSlices { sent = [] }
        let bytes = self.bytes
        removeRows()
        // Rows aside need memory as well.
        (kept, sentCount, self.bytes) = ([], 0, bytes)
    }

    /// Drops the rows, and keeps the keys of their objects. The end of the bootstrap decides on what follows.
    mutating func drop() {
        dropped.formUnion(named)
        removeRows()
        (kept, aside, isDropped) = ([], [:], true)
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

    /// Writes the instructions of each object, and updates the content.
    ///
    /// Equal changes of a view are in the same order. The rows of a whole view are in the order of the session.
    /// - Parameters:
    ///   - before: What the client held before the view; nil for the content.
    ///   - leftovers: The objects of unfinished bootstraps. The client may hold them after a full one.
    mutating func write(
        _ form: Form, _ content: inout BridgeContent, before: RealmFileMemory? = nil, _ place: BridgeContent.Place,
        leftovers: Set<ObjectKey> = [], to pieces: inout BridgePieces
    ) throws(SluiceError) {
        for object in BridgeOrder.sorted(leaving(form, content, before ?? content.memory, place, leftovers), { $0 }) {
            try pieces.append(content.leave(object, place, isKnown: form != .restoration))
        }
        switch form {
        case .difference where !hasSlices, .changes where !hasSlices, .restoration:
            find()
            for (object, row) in BridgeOrder.sorted(rows, \.object) {
                guard let row else { continue }
                if form == .restoration {
                    for group in try content.restore(object, row, place) { try pieces.append(group) }
                } else {
                    try pieces.append(try content.replace(object, row, nil, place))
                }
            }
        case .full, .slice, .difference, .changes:
            // Otherwise most objects do not enter, and the room for them would copy the maps of a large view.
            content.reserve(max(rows.count, expected - sentCount))
            for (object, row) in rows { if let row { try pieces.append(try content.enter(object, row, place)) } }
        }
    }

    /// Writes and removes the rows. Every row enters, and no unnamed object leaves.
    mutating func slice(_ content: inout BridgeContent, _ place: BridgeContent.Place, to pieces: inout BridgePieces) throws(SluiceError) {
        try write(.slice, &content, place, to: &pieces)
        if sent != nil {
            sent?.subtract(removed)
            sent?.formUnion(rows.lazy.filter { $0.row != nil }.map(\.object))
        }
        sentCount += rows.count
        removeRows()
    }

    /// - Throws: `internalError` if the session keeps an object that the client lacks.
    func check(_ content: BridgeContent) throws(SluiceError) {
        guard let missing = kept.first(where: { !content.memory.view.contains($0) }) else { return }
        throw SluiceError(.internalError, "A bootstrap keeps an object of class \(missing.type) that its client lacks.")
    }

    /// Returns the objects that a full bootstrap or a difference erases.
    /// - Parameter before: What the client held before the view. It holds the objects of slices as well, which the bootstrap has.
    private mutating func leaving(
        _ form: Form, _ content: BridgeContent, _ before: RealmFileMemory, _ place: BridgeContent.Place, _ leftovers: Set<ObjectKey>
    ) -> Set<ObjectKey> {
        // The client may hold an object that the content lacks, if its position is older than the stream.
        guard form == .full || form == .difference else { return removed }
        let memory = content.memory
        // A bootstrap that has begun again may lack objects of its slices.
        let held = sent == nil ? before.view.union(content.made) : memory.view
        if !held.isEmpty || form == .full { find() }
        var leaving = removed
        for object in held where memory.view.contains(object) && !isNamed(object, memory, place) { leaving.insert(object) }
        guard form == .full else { return leaving }
        // The client may hold the objects of its view, and those whose erasure it has not confirmed.
        for object in memory.barriers.keys where !memory.view.contains(object) && places?[object] == nil { leaving.insert(object) }
        for object in leftovers where !memory.view.contains(object) && places?[object] == nil { leaving.insert(object) }
        return leaving
    }

    /// Returns `true` if the bootstrap has an object of the view. Those in `removed` have left since.
    private func isNamed(_ object: ObjectKey, _ memory: RealmFileMemory, _ place: BridgeContent.Place) -> Bool {
        if places?[object] != nil || kept.contains(object) { return true }
        if let sent { return sent.contains(object) }
        return sentCount > 0 && memory.barriers[object]?.last.version == place.version
    }
}
