import SluiceCore
import SluiceReplica

/// Goes through objects and reads their rows ahead: a few at first, then more at a time, and of each the properties that the
/// body of the loop has used so far. A loop goes through the objects that were there when it began.
final class ObjectLoop<Element: RealmCollectionValue>: AnyObjectLoop {
    private enum Rest {
        /// All rows of the class behind a number.
        case table(after: Int64)
        case keys(ArraySlice<Value>)
    }

    private let core: RealmCore
    private let schema: ModelSchema
    private let type: Int
    private let profile = LoopProfile()
    private var rest: Rest
    private var rows: [_RowCache] = []
    private var next = 0
    private var size = 4

    private static var largest: Int { 512 }

    /// A loop over all objects of a class in the table's order.
    init(core: RealmCore, type: Int) {
        self.core = core
        self.type = type
        schema = core.schema(type)
        rest = .table(after: .min)
        if !core.isFrozen { core.loops.insert(self) }
    }

    /// A loop over the objects with the keys.
    init(core: RealmCore, type: Int, keys: [Value]) {
        self.core = core
        self.type = type
        schema = core.schema(type)
        rest = .keys(keys[...])
    }

    /// The next object; those that have been deleted are passed over.
    func object() -> Element? {
        while true {
            if next == rows.count, !fill() { return nil }
            let row = rows[next]
            next += 1
            if row.isGone { continue }
            return Element._object(of: row)
        }
    }

    /// - Returns: whether there is another row.
    private func fill() -> Bool {
        let limit = size
        size = min(size * 4, Self.largest)
        // A frozen row is read whole: any thread may use it, and none may change it.
        var reader = RowReader(core, schema, type, core.isFrozen ? nil : profile, reusing: rows)
        rows = []
        var last: Int64?
        core.attempt(()) { store throws(SluiceError) in
            switch rest {
            case .table(let number):
                try store.visit(type: type, after: number, limit: limit, properties: reader.slots) {
                    reader.read($0)
                    if reader.count == limit { last = $0.number }
                }
            case .keys(let keys):
                try store.visit(type: type, keys: keys.prefix(limit), properties: reader.slots) { reader.read($0) }
            }
        }
        (rows, next) = (reader.finish(), 0)
        switch rest {
        case .table:
            rest = last.map { .table(after: $0) } ?? .keys([])
            return !rows.isEmpty
        case .keys(let keys):
            rest = .keys(keys.dropFirst(limit))
            return !rows.isEmpty || (!keys.isEmpty && fill())
        }
    }

    /// Called before the Realm moves on or changes: notes what is left of the state at which the loop began.
    func settle() {
        guard case .table(let number) = rest else { return }
        var keys: [Value] = []
        core.attempt((), moving: false) { store throws(SluiceError) in
            try store.visit(type: type, after: number, limit: .max, properties: []) { keys.append($0.key) }
        }
        rest = .keys(keys[...])
    }
}

/// Makes rows of what a loop reads. Rows of before that no object has any more are used again.
private struct RowReader {
    private let core: RealmCore
    private let schema: ModelSchema
    private let type: Int
    private let profile: LoopProfile?
    private let mask: SlotSet
    let slots: [Int]
    private var rows: [_RowCache]
    private(set) var count = 0

    /// - Parameter profile: nil: rows have all values.
    init(_ core: RealmCore, _ schema: ModelSchema, _ type: Int, _ profile: LoopProfile?, reusing rows: [_RowCache]) {
        self.core = core
        self.schema = schema
        self.type = type
        self.profile = profile
        self.rows = rows
        mask = profile?.used ?? SlotSet()
        slots = profile?.used.slots.filter { $0 < schema.storedCount } ?? Array(0..<schema.storedCount)
    }

    mutating func read(_ view: ColumnsView) {
        if count == rows.count {
            rows.append(row(view.key))
        } else if profile == nil || !isKnownUniquelyReferenced(&rows[count]) || !rows[count].restart(key: view.key, having: mask) {
            rows[count] = row(view.key)
        }
        let values = rows[count].values
        for index in slots.indices { values[slots[index]] = _StoredValue(view.value(index)) }
        count += 1
    }

    private func row(_ key: Value) -> _RowCache {
        if let profile { return _RowCache(core: core, schema: schema, type: type, key: key, having: mask, for: profile) }
        let row = _RowCache(core: core, schema: schema, type: type, key: key)
        row.generation = core.clock.generation
        return row
    }

    /// The rows that were read.
    mutating func finish() -> [_RowCache] {
        rows.removeLast(rows.count - count)
        return rows
    }
}

/// A loop of any class.
protocol AnyObjectLoop: AnyObject {
    func settle()
}

/// The loops of a Realm that still depend on its state.
struct LoopRegistry {
    private struct Weak {
        weak var loop: (any AnyObjectLoop)?
    }

    private var loops: [Weak] = []
    private var bound = 16

    mutating func insert(_ loop: any AnyObjectLoop) {
        if loops.count >= bound {
            loops.removeAll { $0.loop == nil }
            bound = max(16, 2 * loops.count)
        }
        loops.append(Weak(loop: loop))
    }

    /// Those that are still there; they are to be settled, and are forgotten here.
    mutating func takeAll() -> [any AnyObjectLoop] {
        if loops.isEmpty { return [] }
        defer { loops = [] }
        return loops.compactMap(\.loop)
    }
}
