import SluiceCore
import SluiceReplica

/// A loop over objects that reads their rows ahead, a few at first and then more at a time.
/// It reads the properties that the loop's body has used so far, and iterates over the objects that existed at its start.
///
/// Objects that the body has not retained are reused for later rows: creating an object costs more than reading its row.
///
/// Public because inlined iterators name it; not for use by apps.
public final class _ObjectLoop {
    private let core: RealmCore
    private let schema: ModelSchema
    private let type: Int
    private let rest: LoopRest
    // Unchecked because: a loop is confined to its Realm's scheduler, and the checks cost as much as a step.
    @exclusivity(unchecked) private var reader: RowReader
    /// `true` if objects may be reused. This needs a plain class and a live Realm.
    private let recycles: Bool
    /// Creates the element of a row.
    private let element: (_RowCache) -> AnyObject?
    /// The index of the next row in `reader`.
    @exclusivity(unchecked) private var position = 0
    /// The number of rows of the next read.
    private var size = 4

    /// Creates a loop over objects of a class.
    init<Element: RealmCollectionValue>(core: RealmCore, type: Int, over objects: LoopRest.State, of _: Element.Type) {
        self.core = core
        self.type = type
        schema = core.classes.schema(type)
        reader = RowReader(core, schema, type)
        rest = LoopRest(core, type, objects)
        recycles = schema.isPlain && Element.self == schema.objectClass && !core.isFrozen
        element = { Element._object(of: $0) as AnyObject? }
        // The Realm detaches such a loop before it advances: the loop keeps the state at its start.
        if case .table = objects, !core.isFrozen { core.reading.loops.insert(rest) }
    }

    /// The next object. Deleted objects are skipped.
    @usableFromInline func next() -> AnyObject? {
        while true {
            if position == reader.count, !fill() { return nil }
            let index = position
            position += 1
            if reader.rows[index].isGone { continue }
            if let object = reader.objects[index] { return object }
            let object = element(reader.rows[index])
            if recycles { reader.objects[index] = object }
            return object
        }
    }

    /// Reads the next rows.
    /// - Returns: `true` if another row was read.
    private func fill() -> Bool {
        let limit = size
        reader.begin()
        position = 0
        let isMore: Bool? = core.reading.attempt(nil) { store throws(SluiceError) in
            switch rest.state {
            case .table(let number):
                // As many rows as fit into the processor's nearest cache.
                size = min(size * 4, 64)
                return try fill(limit, after: number, from: store)
            case .keys(let keys):
                size = min(size * 4, 512)
                try store.visit(type: type, keys: keys.prefix(limit), properties: reader.slots) { reader.read($0) }
                rest.state = .keys(keys.dropFirst(limit))
                return keys.count > limit
            }
        }
        reader.end()
        // An unreadable file ends the loop.
        if isMore == nil { rest.finish() }
        // All objects of this read may have been deleted: continue with the next keys.
        return reader.count > 0 || (isMore == true && fill())
    }

    /// Reads rows of a table.
    /// - Returns: `false` at the end of the table.
    private func fill(_ limit: Int, after number: Int64, from store: RowStore) throws(SluiceError) -> Bool {
        guard let cursor = try rest.cursor(after: number, reader.mask, reader.slots, from: store) else { return false }
        while reader.count < limit {
            if try !cursor.next() {
                rest.finish()
                return false
            }
            reader.read(cursor.view)
        }
        rest.state = .table(after: cursor.view.number)
        return true
    }
}

/// The part of a loop that is still to be read.
/// The Realm holds only this part weakly: an object with weak references is slow to use.
final class LoopRest {
    enum State {
        /// All rows of the class after a row number.
        case table(after: Int64)
        /// The objects with these keys.
        case keys(ArraySlice<Value>)
    }

    private let core: RealmCore
    private let type: Int
    var state: State
    /// The open cursor, at the last row read, and the properties that it reads.
    private var cursor: (RowCursor, SlotSet)?

    init(_ core: RealmCore, _ type: Int, _ state: State) {
        self.core = core
        self.type = type
        self.state = state
    }

    /// Returns a cursor after a row. The open cursor is reused if it reads the same properties.
    func cursor(after number: Int64, _ mask: SlotSet, _ slots: [Int], from store: RowStore) throws(SluiceError) -> RowCursor? {
        if let (cursor, properties) = cursor, properties.bits == mask.bits { return cursor }
        let new = try store.cursor(type: type, after: number, properties: slots)
        // A frozen Realm is read from any thread, and a stored cursor could be released on any of them.
        cursor = core.isFrozen ? nil : new.map { ($0, mask) }
        return new
    }

    /// Ends the loop and closes its cursor.
    func finish() {
        cursor = nil
        state = .keys([])
    }

    /// Runs before the Realm advances or changes. Replaces the open cursor by the remaining keys at the loop's start.
    func detach() {
        guard case .table(let number) = state else { return }
        cursor = nil
        var keys: [Value] = []
        core.reading.attempt((), moving: false) { store throws(SluiceError) in
            guard let cursor = try store.cursor(type: type, after: number, properties: []) else { return }
            while try cursor.next() { keys.append(cursor.view.key) }
        }
        state = .keys(keys[...])
    }
}

/// Creates the rows of a loop. Earlier rows without other references are reused together with their objects.
private struct RowReader {
    private let core: RealmCore
    private let schema: ModelSchema
    private let type: Int
    /// The properties that the loop's body uses; nil if rows are read whole.
    /// A frozen Realm's rows are whole, since any thread may use them and none may change them.
    private let profile: LoopProfile?
    private let references = References()
    /// The properties that are read.
    private(set) var mask = SlotSet()
    private(set) var slots: [Int] = []
    private(set) var rows: [_RowCache] = []
    /// The objects of the rows, as far as the loop may reuse them.
    var objects: [AnyObject?] = []
    /// The number of rows that are valid now. The others are left for reuse.
    private(set) var count = 0

    init(_ core: RealmCore, _ schema: ModelSchema, _ type: Int) {
        self.core = core
        self.schema = schema
        self.type = type
        profile = core.isFrozen ? nil : LoopProfile()
        if profile == nil { slots = Array(0..<schema.storedCount) }
    }

    /// Starts the next rows, with the properties used so far.
    mutating func begin() {
        count = 0
        // The columns change only when the loop's body has used another property.
        guard let profile, profile.used.bits != mask.bits else { return }
        mask = profile.used
        slots = mask.slots.filter { $0 < schema.storedCount }
    }

    /// Reads a row from the cursor.
    mutating func read(_ view: ColumnsView) {
        let values = values(ofRowWith: view.key)
        for index in slots.indices { values[slots[index]] = _StoredValue(view.value(index)) }
        count += 1
    }

    /// Returns the buffer for the values of the next row.
    private mutating func values(ofRowWith key: Value) -> UnsafeMutablePointer<_StoredValue> {
        if count == rows.count {
            rows.append(row(key))
            objects.append(nil)
        } else if isFree(count), let values = rows[count].restart(key: key, having: mask) {
            return values
        } else {
            rows[count] = row(key)
            objects[count] = nil
        }
        return rows[count].values
    }

    /// `true` if only the loop holds the row at the index and its object.
    private mutating func isFree(_ index: Int) -> Bool {
        if profile == nil { return false }
        if objects[index] == nil { return isKnownUniquelyReferenced(&rows[index]) }
        // The object holds the row as well, hence two references.
        return references.isOnly(objects, at: index) && references.isOneOfTwo(rows, at: index)
    }

    private func row(_ key: Value) -> _RowCache {
        if let profile { return _RowCache(core: core, schema: schema, type: type, key: key, having: mask, for: profile) }
        let row = _RowCache(core: core, schema: schema, type: type, key: key)
        row.generation = core.clock.generation
        return row
    }

    /// Releases earlier rows that were not reused.
    mutating func end() {
        if count == rows.count { return }
        rows.removeLast(rows.count - count)
        objects.removeLast(objects.count - count)
    }
}

/// The loops of a Realm that still depend on its snapshot, held weakly.
struct LoopRegistry {
    private struct Weak {
        weak var rest: (LoopRest)?
    }

    private var loops: [Weak] = []
    private var bound = 16

    var isEmpty: Bool { loops.isEmpty }

    // Remove released loops at each doubling: O(1) amortized.
    mutating func insert(_ rest: LoopRest) {
        if loops.count >= bound {
            loops.removeAll { $0.rest == nil }
            bound = max(16, 2 * loops.count)
        }
        loops.append(Weak(rest: rest))
    }

    /// Returns the remaining loops for detaching, and forgets them.
    mutating func takeAll() -> [LoopRest] {
        defer { loops = [] }
        return loops.compactMap(\.rest)
    }
}
