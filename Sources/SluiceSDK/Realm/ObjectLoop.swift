import SluiceCore
import SluiceReplica

/// Goes through objects and reads their rows ahead: a few at first, then more at a time, and of each the properties that the
/// body of the loop has used so far. A loop goes through the objects that were there when it began.
///
/// Objects that the body has not kept become those of later rows: making one costs more than reading its row.
///
/// Public because inlined iterators name it; apps have no use for it.
public final class _ObjectLoop {
    private let core: RealmCore
    private let schema: ModelSchema
    private let type: Int
    private let rest: LoopRest
    // Unchecked because: a loop belongs to the place of its Realm, and the checks cost as much as a step.
    @exclusivity(unchecked) private var reader: RowReader
    private let recycles: Bool
    /// The element of a row.
    private let element: (_RowCache) -> AnyObject?
    @exclusivity(unchecked) private var position = 0
    private var size = 4

    /// A loop over objects of a class.
    init<Element: RealmCollectionValue>(core: RealmCore, type: Int, over objects: LoopRest.State, of _: Element.Type) {
        self.core = core
        self.type = type
        schema = core.schema(type)
        reader = RowReader(core, schema, type)
        rest = LoopRest(core, type, objects)
        recycles = schema.isPlain && Element.self == schema.objectClass && !core.isFrozen
        element = { Element._object(of: $0) as AnyObject? }
        if case .table = objects, !core.isFrozen { core.loops.insert(rest) }
    }

    /// The next object; those that have been deleted are passed over.
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

    /// - Returns: whether there is another row.
    private func fill() -> Bool {
        let limit = size
        reader.begin()
        position = 0
        let isMore: Bool? = core.attempt(nil) { store throws(SluiceError) in
            switch rest.state {
            case .table(let number):
                // As many as stay in the processor's nearest cache.
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
        // A file that cannot be read shows nothing more.
        if isMore == nil { rest.finish() }
        return reader.count > 0 || (isMore == true && fill())
    }

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

/// What a loop has not read yet. The Realm knows this part of a loop only: an object that is known weakly is slow to use.
final class LoopRest {
    enum State {
        /// All rows of the class behind a number.
        case table(after: Int64)
        case keys(ArraySlice<Value>)
    }

    private let core: RealmCore
    private let type: Int
    var state: State
    /// Stands on the last row that was read, with the properties of a set.
    private var cursor: (RowCursor, SlotSet)?

    init(_ core: RealmCore, _ type: Int, _ state: State) {
        self.core = core
        self.type = type
        self.state = state
    }

    /// Reads on behind a row, from where the last rows were read when they had the same properties.
    func cursor(after number: Int64, _ mask: SlotSet, _ slots: [Int], from store: RowStore) throws(SluiceError) -> RowCursor? {
        if let (cursor, properties) = cursor, properties.bits == mask.bits { return cursor }
        let new = try store.cursor(type: type, after: number, properties: slots)
        // The readers of a frozen Realm come from any thread, and one left over could be let go from any.
        cursor = core.isFrozen ? nil : new.map { ($0, mask) }
        return new
    }

    func finish() {
        cursor = nil
        state = .keys([])
    }

    /// Called before the Realm moves on or changes: notes what is left of the state at which the loop began.
    func settle() {
        guard case .table(let number) = state else { return }
        cursor = nil
        var keys: [Value] = []
        core.attempt((), moving: false) { store throws(SluiceError) in
            guard let cursor = try store.cursor(type: type, after: number, properties: []) else { return }
            while try cursor.next() { keys.append(cursor.view.key) }
        }
        state = .keys(keys[...])
    }
}

/// Makes rows of what a loop reads. Rows of before that nobody else has any more are used again, with their objects.
private struct RowReader {
    private let core: RealmCore
    private let schema: ModelSchema
    private let type: Int
    /// Nil: rows have all values. A frozen row is read whole: any thread may use it, and none may change it.
    private let profile: LoopProfile?
    private let references = References()
    /// What is read.
    private(set) var mask = SlotSet()
    private(set) var slots: [Int] = []
    private(set) var rows: [_RowCache] = []
    /// Of the rows: those that the body has been given, while the loop may use them again.
    var objects: [AnyObject?] = []
    private(set) var count = 0

    init(_ core: RealmCore, _ schema: ModelSchema, _ type: Int) {
        self.core = core
        self.schema = schema
        self.type = type
        profile = core.isFrozen ? nil : LoopProfile()
        if profile == nil { slots = Array(0..<schema.storedCount) }
    }

    /// Begins the next rows, with the properties that have been used so far.
    mutating func begin() {
        count = 0
        guard let profile, profile.used.bits != mask.bits else { return }
        mask = profile.used
        slots = mask.slots.filter { $0 < schema.storedCount }
    }

    mutating func read(_ view: ColumnsView) {
        let values = values(ofRowWith: view.key)
        for index in slots.indices { values[slots[index]] = _StoredValue(view.value(index)) }
        count += 1
    }

    /// Where the values of the next row belong.
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

    /// Whether nobody but the loop has the row at the index, nor its object.
    private mutating func isFree(_ index: Int) -> Bool {
        if profile == nil { return false }
        if objects[index] == nil { return isKnownUniquelyReferenced(&rows[index]) }
        return references.isOnly(objects, at: index) && references.isOneOfTwo(rows, at: index)
    }

    private func row(_ key: Value) -> _RowCache {
        if let profile { return _RowCache(core: core, schema: schema, type: type, key: key, having: mask, for: profile) }
        let row = _RowCache(core: core, schema: schema, type: type, key: key)
        row.generation = core.clock.generation
        return row
    }

    /// Lets go of rows of before that were not needed.
    mutating func end() {
        if count == rows.count { return }
        rows.removeLast(rows.count - count)
        objects.removeLast(objects.count - count)
    }
}

/// The loops of a Realm that still depend on its state.
struct LoopRegistry {
    private struct Weak {
        weak var rest: (LoopRest)?
    }

    private var loops: [Weak] = []
    private var bound = 16

    var isEmpty: Bool { loops.isEmpty }

    mutating func insert(_ rest: LoopRest) {
        if loops.count >= bound {
            loops.removeAll { $0.rest == nil }
            bound = max(16, 2 * loops.count)
        }
        loops.append(Weak(rest: rest))
    }

    /// Those that are still there; they are to be settled, and are forgotten here.
    mutating func takeAll() -> [LoopRest] {
        defer { loops = [] }
        return loops.compactMap(\.rest)
    }
}
