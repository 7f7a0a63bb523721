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
    private let profile = LoopProfile()
    private let rest: LoopRest
    // Unchecked because: a loop belongs to the place of its Realm, and the checks cost as much as a step.
    @exclusivity(unchecked) private var rows: [_RowCache] = []
    /// Of the rows: those that the body has been given, while the loop may use them again.
    @exclusivity(unchecked) private var objects: [AnyObject?] = []
    private let recycles: Bool
    /// The element of a row.
    private let element: (_RowCache) -> AnyObject?
    @exclusivity(unchecked) private var position = 0
    private var size = 4

    private static var largest: Int { 512 }

    /// A loop over objects of a class.
    init<Element: RealmCollectionValue>(core: RealmCore, type: Int, over objects: LoopRest.State, of _: Element.Type) {
        self.core = core
        self.type = type
        schema = core.schema(type)
        rest = LoopRest(core, type, objects)
        recycles = schema.isPlain && Element.self == schema.objectClass && !core.isFrozen
        element = { Element._object(of: $0) as AnyObject? }
        if case .table = objects, !core.isFrozen { core.loops.insert(rest) }
    }

    /// The next object; those that have been deleted are passed over.
    @usableFromInline func next() -> AnyObject? {
        while true {
            if position == rows.count, !fill() { return nil }
            let index = position
            position += 1
            if rows[index].isGone { continue }
            if let object = objects[index] { return object }
            let object = element(rows[index])
            if recycles { objects[index] = object }
            return object
        }
    }

    /// - Returns: whether there is another row.
    private func fill() -> Bool {
        let limit = size
        size = min(size * 4, Self.largest)
        // A frozen row is read whole: any thread may use it, and none may change it.
        var reader = RowReader(core, schema, type, core.isFrozen ? nil : profile, reusing: rows, objects)
        (rows, objects) = ([], [])
        var last: Int64?
        core.attempt(()) { store throws(SluiceError) in
            switch rest.state {
            case .table(let number):
                try store.visit(type: type, after: number, limit: limit, properties: reader.slots) {
                    reader.read($0)
                    if reader.count == limit { last = $0.number }
                }
            case .keys(let keys):
                try store.visit(type: type, keys: keys.prefix(limit), properties: reader.slots) { reader.read($0) }
            }
        }
        (rows, objects) = reader.finish()
        position = 0
        switch rest.state {
        case .table:
            rest.state = last.map { .table(after: $0) } ?? .keys([])
            return !rows.isEmpty
        case .keys(let keys):
            rest.state = .keys(keys.dropFirst(limit))
            return !rows.isEmpty || (!keys.isEmpty && fill())
        }
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

    init(_ core: RealmCore, _ type: Int, _ state: State) {
        self.core = core
        self.type = type
        self.state = state
    }

    /// Called before the Realm moves on or changes: notes what is left of the state at which the loop began.
    func settle() {
        guard case .table(let number) = state else { return }
        var keys: [Value] = []
        core.attempt((), moving: false) { store throws(SluiceError) in
            try store.visit(type: type, after: number, limit: .max, properties: []) { keys.append($0.key) }
        }
        state = .keys(keys[...])
    }
}

/// Makes rows of what a loop reads. Rows of before that nobody else has any more are used again, with their objects.
private struct RowReader {
    private let core: RealmCore
    private let schema: ModelSchema
    private let type: Int
    private let profile: LoopProfile?
    private let mask: SlotSet
    let slots: [Int]
    private var rows: [_RowCache]
    private var objects: [AnyObject?]
    private(set) var count = 0

    /// - Parameter profile: nil: rows have all values.
    init(
        _ core: RealmCore, _ schema: ModelSchema, _ type: Int, _ profile: LoopProfile?, reusing rows: [_RowCache],
        _ objects: [AnyObject?]
    ) {
        self.core = core
        self.schema = schema
        self.type = type
        self.profile = profile
        self.rows = rows
        self.objects = objects
        mask = profile?.used ?? SlotSet()
        slots = profile?.used.slots.filter { $0 < schema.storedCount } ?? Array(0..<schema.storedCount)
    }

    mutating func read(_ view: ColumnsView) {
        if count == rows.count {
            rows.append(row(view.key))
            objects.append(nil)
        } else if !isFree(count) || !rows[count].restart(key: view.key, having: mask) {
            rows[count] = row(view.key)
            objects[count] = nil
        }
        let values = rows[count].values
        for index in slots.indices { values[slots[index]] = _StoredValue(view.value(index)) }
        count += 1
    }

    /// Whether nobody but the loop has the row at the index, nor its object.
    private mutating func isFree(_ index: Int) -> Bool {
        if profile == nil { return false }
        if objects[index] == nil { return isKnownUniquelyReferenced(&rows[index]) }
        return References.isOnly(objects, at: index) && References.isOneOfTwo(rows, at: index)
    }

    private func row(_ key: Value) -> _RowCache {
        if let profile { return _RowCache(core: core, schema: schema, type: type, key: key, having: mask, for: profile) }
        let row = _RowCache(core: core, schema: schema, type: type, key: key)
        row.generation = core.clock.generation
        return row
    }

    /// The rows that were read.
    mutating func finish() -> (rows: [_RowCache], objects: [AnyObject?]) {
        rows.removeLast(rows.count - count)
        objects.removeLast(objects.count - count)
        return (rows, objects)
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
