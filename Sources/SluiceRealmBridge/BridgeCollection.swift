import SluiceCore
import SluiceRealm
import SluiceWire

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
/// builds the map first. If the client holds nothing, or may hold anything, every row enters: it is encoded when it comes, and only its
/// key is kept.
struct BridgeCollection {
    /// The usual bytes of a row, for the room that is made.
    private static let rowBytes = 256

    /// Rows that are encoded. An object may have several, of which the last one counts, and it may have been removed since.
    private struct Encoded {
        var pieces: BridgePieces
        /// The objects of rows that were not sent, in their order.
        var objects: [ObjectKey] = []
        /// The objects of attempts before, which the session does not repeat if it keeps them.
        var aside: Set<ObjectKey> = []
        /// The objects that were named since the bootstrap began again, and were not sent; nil if it has not.
        var again: Set<ObjectKey>?

        init(_ pieces: BridgePieces) { self.pieces = pieces }

        mutating func add(_ object: ObjectKey, _ row: RowView, _ writer: RealmObjectWriter) throws(SluiceError) {
            again?.insert(object)
            objects.append(object)
            try pieces.append(object, row, writer)
        }

        mutating func removeRows() {
            objects.removeAll(keepingCapacity: true)
            if again != nil { again = [] }
        }
    }

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

    /// Nil if the rows are kept in `rows`.
    private var encoded: Encoded?

    /// - Parameters:
    ///   - expected: The estimated number of rows; 0 if unknown.
    ///   - isEncoded: `true` if every row enters.
    init(version: UInt64, _ bounds: BridgeBounds, expected: UInt64 = 0, isEncoded: Bool = false) {
        (self.version, self.bounds) = (version, bounds)
        self.expected = min(Int(clamping: expected), bounds.viewObjects)
        guard !isEncoded else {
            encoded = Encoded(newPieces)
            return
        }
        // About as many as an entry has.
        rows.reserveCapacity(min(self.expected, 65_536))
    }

    /// `true` if the rows no longer fit one entry.
    var isFull: Bool { encoded?.pieces.isFull ?? (bytes > bounds.entryBytes) }
    /// The objects of rows and removals that were not sent.
    var named: Set<ObjectKey> {
        if let encoded { return removed.union(encoded.objects) }
        return removed.union(rows.lazy.filter { $0.row != nil }.map(\.object))
    }
    /// Returns `true` if one of the objects has a row that is encoded, and was not sent.
    func isEncoded(anyOf objects: Set<ObjectKey>) -> Bool {
        guard let encoded, !objects.isEmpty else { return false }
        return encoded.objects.contains { objects.contains($0) }
    }

    /// The number of objects that the client has with the slices so far.
    var namedCount: Int { sentCount + kept.count }
    /// `true` if rows were sent in slices. They have the version of the client's changesets before them, so none may merge with a row.
    private var hasSlices: Bool { sentCount > 0 || sent != nil }

    /// - Throws: `internalError` for a value that the protocol cannot express, or the error of a row that does not fit its class.
    mutating func add(_ message: BridgeRows, _ codec: RowCodec, _ writer: RealmObjectWriter) throws(SluiceError) {
        guard !isTooLarge, let index = codec.type.primaryKey else { return }
        let type = codec.type.name
        let left = message.removed.map { ObjectKey(type: type, key: $0) }
        bytes += message.bytes + 64 * (message.rows.count + left.count)
        try addRows(message, codec, key: index, writer)
        if isDropped {
            dropped.formUnion(left)
        } else {
            add(left, kept: message.kept.map { ObjectKey(type: type, key: $0) })
        }
        guard isBeyondBound else { return }
        // Objects with several rows count once.
        find()
        guard isBeyondBound else { return }
        drop()
        (isTooLarge, dropped) = (true, [])
    }

    /// - Parameter index: The index of the primary key.
    private mutating func addRows(
        _ message: BridgeRows, _ codec: RowCodec, key index: Int, _ writer: RealmObjectWriter
    ) throws(SluiceError) {
        let (type, count) = (codec.type.name, codec.type.properties.count)
        var (cells, buffer) = ([Cell](), RowBuffer())
        try message.message.withUnsafeBufferPointer { bytes throws(SluiceError) in
            let bytes = UnsafeRawBufferPointer(bytes)
            for place in message.rows {
                let content = UnsafeRawBufferPointer(rebasing: bytes[place])
                if try codec.scalars(content, into: &cells) {
                    try cells.withUnsafeBufferPointer { cells throws(SluiceError) in
                        guard let cells = cells.baseAddress, let arena = content.baseAddress else { return }
                        let row = RowView(cells: cells, count: count, arena: arena.assumingMemoryBound(to: UInt8.self))
                        if let key = row.value(index) { try add(ObjectKey(type: type, key: key), row, writer) }
                    }
                } else {
                    buffer.removeAll()
                    let row = try codec.decode(content, into: &buffer)
                    try buffer.withView(row) { row throws(SluiceError) in
                        if let key = row.value(index) { try add(ObjectKey(type: type, key: key), row, writer) }
                    }
                }
            }
        }
    }

    private var rowCount: Int { encoded?.objects.count ?? rows.count }
    private var isBeyondBound: Bool { rowCount + kept.count + sentCount + dropped.count > bounds.viewObjects }

    private mutating func add(_ object: ObjectKey, _ row: RowView, _ writer: RealmObjectWriter) throws(SluiceError) {
        if isDropped {
            dropped.insert(object)
        } else if encoded == nil {
            add(object, Row(row))
        } else {
            if !removed.isEmpty { removed.remove(object) }
            try encoded?.add(object, row, writer)
        }
    }

    private mutating func add(_ object: ObjectKey, _ row: Row) {
        if !removed.isEmpty { removed.remove(object) }
        // The slices of this attempt may have it by the next one.
        if !aside.isEmpty { aside[object] = nil }
        if let place = places?.updateValue(rows.count, forKey: object) { rows[place].row = nil }
        rows.append((object, row))
    }

    private mutating func add(_ left: [ObjectKey], kept unchanged: [ObjectKey]) {
        if !left.isEmpty, encoded == nil { find() }
        for object in left {
            if let place = places?.removeValue(forKey: object) { rows[place].row = nil }
            encoded?.again?.remove(object)
            kept.remove(object)
            removed.insert(object)
        }
        for object in unchanged {
            if let row = aside.removeValue(forKey: object) {
                add(object, row)
            } else if encoded?.aside.contains(object) ?? false {
                encoded?.again?.insert(object)
            } else {
                kept.insert(object)
            }
        }
    }

    /// Finds the place of each object's last row, and removes the other rows.
    private mutating func find() {
        if let objects = encoded?.objects {
            var seen: Set<ObjectKey> = []
            encoded?.objects = objects.filter { seen.insert($0).inserted }
        }
        guard places == nil, encoded == nil else { return }
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
        encoded?.removeRows()
    }

    /// Begins again: the session repeats its rows, or keeps them.
    mutating func restart() {
        guard encoded == nil else { return restartEncoded() }
        for case (let object, let row?) in rows { aside[object] = row }
        if hasSlices { sent = [] }
        let bytes = self.bytes
        removeRows()
        // Rows aside need memory as well.
        (kept, sentCount, self.bytes) = ([], 0, bytes)
    }

    /// The rows so far are encoded already, so that the objects that are not named again must be erased.
    private mutating func restartEncoded() {
        for object in encoded?.objects ?? [] where !removed.contains(object) { encoded?.aside.insert(object) }
        encoded?.again = []
        (kept, removed, sent, sentCount) = ([], [], [], 0)
    }

    /// Drops the rows, and keeps the keys of their objects. The end of the bootstrap decides on what follows.
    mutating func drop() {
        dropped.formUnion(named)
        removeRows()
        encoded = nil
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

    /// Removes and returns the rows that are encoded; none for others.
    mutating func takePieces() -> BridgePieces {
        guard let pieces = encoded?.pieces else { return BridgePieces(maximum: bounds.entryBytes) }
        let next = newPieces
        encoded?.pieces = next
        return pieces
    }

    /// Pieces with room for the rows that are still to come.
    private var newPieces: BridgePieces {
        BridgePieces(maximum: bounds.entryBytes, expecting: Self.rowBytes * max(0, expected - sentCount - rowCount))
    }

    /// Writes the instructions of each object, and updates the content.
    ///
    /// Equal changes of a view are in the same order. The rows of a whole view are in the order of the session.
    /// - Parameters:
    ///   - before: What the client held before the view; nil for the content.
    ///   - leftovers: The objects of unfinished bootstraps. The client may hold them after a full one.
    ///   - pieces: Those of `takePieces`.
    mutating func write(
        _ form: Form, _ content: inout BridgeContent, before: RealmFileMemory? = nil, _ place: BridgeContent.Place,
        leftovers: Set<ObjectKey> = [], to pieces: inout BridgePieces
    ) throws(SluiceError) {
        // The rows that are encoded change the content first.
        let held = encoded == nil || form != .full && form != .difference ? nil : held(content, before ?? content.memory)
        if let objects = encoded?.objects {
            // Behind a slice more objects come. Room for them would be made by moving all.
            let room = max(form == .slice ? 2 * objects.count : objects.count, expected - sentCount)
            content.enter(objects, place, expecting: room)
        }
        let leaving = leaving(form, content, held, before: before, place, leftovers)
        for object in BridgeOrder.sorted(leaving, { $0 }) {
            try pieces.append(content.leave(object, place, isKnown: form != .restoration))
        }
        guard encoded == nil else { return }
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
            if let encoded {
                sent?.formUnion(encoded.again ?? [])
            } else {
                sent?.formUnion(rows.lazy.filter { $0.row != nil }.map(\.object))
            }
        }
        sentCount += rowCount
        removeRows()
    }

    /// - Throws: `internalError` if the session keeps an object that the client lacks.
    func check(_ content: BridgeContent) throws(SluiceError) {
        guard let missing = kept.first(where: { !content.memory.view.contains($0) }) else { return }
        throw SluiceError(.internalError, "A bootstrap keeps an object of class \(missing.type) that its client lacks.")
    }

    /// Returns the objects that the client held before the view.
    /// - Parameter before: What it held. It holds the objects of slices as well, which the bootstrap has.
    private func held(_ content: BridgeContent, _ before: RealmFileMemory) -> Set<ObjectKey> {
        guard sent != nil else { return before.view.union(content.made) }
        // A bootstrap that has begun again may lack objects of its slices.
        return content.memory.view.union(encoded?.objects ?? [])
    }

    /// Returns the objects that a full bootstrap or a difference erases. Rows that are encoded are in the content already.
    /// - Parameters:
    ///   - held: The objects that the client held before the view; nil to ask the content.
    ///   - before: What the client held before the view; nil for the content.
    private mutating func leaving(
        _ form: Form, _ content: BridgeContent, _ held: Set<ObjectKey>?, before: RealmFileMemory?, _ place: BridgeContent.Place,
        _ leftovers: Set<ObjectKey>
    ) -> Set<ObjectKey> {
        // The client may hold an object that the content lacks, if its position is older than the stream.
        guard form == .full || form == .difference else { return removed }
        let memory = content.memory
        let held = held ?? self.held(content, before ?? memory)
        if encoded == nil, !held.isEmpty || form == .full { find() }
        var leaving = removed
        for object in held where memory.view.contains(object) && !isNamed(object, memory, place) { leaving.insert(object) }
        guard form == .full else { return leaving }
        // The client may hold the objects of its view, and those whose erasure it has not confirmed. An earlier slice may have erased them.
        for object in memory.barriers.objects(besides: place.version) {
            if !memory.view.contains(object), places?[object] == nil { leaving.insert(object) }
        }
        for object in leftovers where !memory.view.contains(object) && places?[object] == nil { leaving.insert(object) }
        return leaving
    }

    /// Returns `true` if the bootstrap has an object of the view. Those in `removed` have left since.
    private func isNamed(_ object: ObjectKey, _ memory: RealmFileMemory, _ place: BridgeContent.Place) -> Bool {
        if places?[object] != nil || kept.contains(object) { return true }
        if let sent { return sent.contains(object) || encoded?.again?.contains(object) ?? false }
        return (encoded != nil || sentCount > 0) && memory.barriers[object]?.last.version == place.version
    }
}
