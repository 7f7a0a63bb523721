package import SluiceCore
package import SluiceQuery

extension ReplicaQuery {
    /// The keys of the objects that match, in order.
    ///
    /// O(rows that SQLite cannot rule out): about 0.5 µs each when SQLite decides, 1 µs when a row's own values do, and some 3 µs for each
    /// object that a condition or a sort key path goes to through a link.
    /// - Parameter maximum: no more than the first so many; stops early when nothing has to be sorted here.
    package func run(on store: RowStore, atMost maximum: Int = .max) throws(SluiceError) -> [Value] {
        let plan = ReplicaPlan(self, store)
        let keys = try plan.keys(atMost: maximum)
        return keys.count > maximum ? Array(keys.prefix(maximum)) : keys
    }

    /// The number of objects that match. No key is read when SQLite decides alone.
    package func count(on store: RowStore) throws(SluiceError) -> Int {
        if isWhole { return try store.count(type: type) }
        return try ReplicaPlan(self, store).count()
    }

    /// How SQLite goes about it: what it says of the statement that selects the rows, line by line.
    package func explanation(on store: RowStore) throws(SluiceError) -> String { try ReplicaPlan(self, store).explanation() }

    package func first(on store: RowStore) throws(SluiceError) -> Value? { try run(on: store, atMost: 1).first }

    /// The keys from a place on, or from a little before it, without those before them.
    /// - Returns: nil if SQLite has no index to find them by, or cannot decide alone. An empty block is behind the last object.
    package func block(at index: Int, on store: RowStore) throws(SluiceError) -> KeyBlock? {
        if isWhole { return try store.block(type: type, at: index) }
        return try ReplicaPlan(self, store).block(at: index)
    }

    /// Whether an object is among those that match; a DISTINCT or LIMIT makes it run the query.
    package func contains(_ key: Value, on store: RowStore) throws(SluiceError) -> Bool {
        if ReplicaPlan.picks(bound.suffixes) { return try run(on: store).contains(key) }
        return try ReplicaPlan(self, store).matches(key)
    }

    /// The place of an object among those that match; nil when it does not match.
    package func position(of key: Value, on store: RowStore) throws(SluiceError) -> Int? {
        let plan = ReplicaPlan(self, store)
        if let position = try plan.position(of: key) { return position < 0 ? nil : position }
        return try run(on: store).firstIndex(of: key)
    }

    /// The smallest, largest, sum or average of a property over the objects that match, as the language's `@min` to `@avg` have it: nulls
    /// are left out; of nothing a sum is 0 and the rest is null; sums of integers wrap around.
    package func aggregate(_ function: Aggregate, property: Int, on store: RowStore) throws(SluiceError) -> Value {
        let type = bound.type.properties[property].type
        let plan = ReplicaPlan(self, store)
        if let value = try plan.extreme(function, property) { return value }
        var aggregation = Aggregation(function, of: type)
        try plan.visitValues(of: property) { aggregation.add($0) }
        return aggregation.result
    }

    /// A property's values of the objects that match, in order.
    package func values(of property: Int, on store: RowStore) throws(SluiceError) -> [Value] {
        var values: [Value] = []
        try ReplicaPlan(self, store).visitValues(of: property, isOrdered: true) { values.append($0) }
        return values
    }
}

/// How a query is run on one connection: what SQLite does, and what is left.
struct ReplicaPlan {
    private let type: Int
    private let bound: BoundQuery
    private let store: RowStore
    private let selection: SQLSelection
    /// Properties that what is left of the condition reads.
    private let reads: [Int]

    init(_ query: ReplicaQuery, _ store: RowStore) {
        type = query.type
        bound = query.bound
        self.store = store
        selection = query.bound.sql(store.sql)
        if let residual = selection.residual {
            reads = (residual.ownProperties ?? Set(bound.type.properties.indices)).sorted()
        } else {
            reads = []
        }
    }

    /// Whether suffixes choose among the objects that meet the condition.
    static func picks(_ suffixes: [BoundSuffix]) -> Bool {
        suffixes.contains { if case .sort = $0 { false } else { true } }
    }

    private var rows: RowSelection {
        RowSelection(
            type: type, condition: selection.condition, order: selection.order, limit: selection.limit,
            isNested: selection.residual?.needsGraph ?? false)
    }

    func keys(atMost maximum: Int = .max) throws(SluiceError) -> [Value] {
        let stop = selection.suffixes.isEmpty ? maximum : .max
        if stop <= 0 { return [] }
        let graph = ReplicaGraph(store)
        var keys: [Value] = []
        if stop == .max, isInTableOrder, selection.limit == nil {
            keys = try keysInTableOrder(graph)
        } else {
            var rows = rows
            if selection.isExact, stop < .max { rows.limit = min(stop, rows.limit ?? .max) }
            try visit(rows, graph) { key, _, _ in
                keys.append(key)
                return keys.count < stop
            }
        }
        if selection.suffixes.isEmpty { return keys }
        keys = bound.arranged(keys, by: selection.suffixes, in: graph)
        try graph.check()
        return keys
    }

    /// The keys from a place on, where SQLite neither sorts nor looks at rows that do not match: O(place) steps in an index.
    func block(at index: Int) throws(SluiceError) -> KeyBlock? {
        guard selection.isExact, selection.suffixes.isEmpty, index >= 0 else { return nil }
        var rows = rows
        rows.limit = min(RowBlocks.size, max((selection.limit ?? .max) - index, 0))
        rows.offset = index
        let plan = try store.explanation(of: rows)
        guard !plan.contains("TEMP B-TREE"), selection.condition.text == "TRUE" || plan.contains("SEARCH") else { return nil }
        var block = KeyBlock(first: index, keys: [])
        try store.visit(rows) { key, _ throws(SluiceError) in
            block.keys.append(key)
            return true
        }
        return block
    }

    /// Whether the order is the table's, and an index may find the rows.
    private var isInTableOrder: Bool {
        let isOwn = selection.order.map { $0 == "\(SQLLayout.row).\(store.layouts[type].rowid)" } ?? true
        return isOwn && selection.condition.text != "TRUE"
    }

    /// Asked for no order, SQLite uses an index where there is one; what it then gives is mostly in order, or short.
    private func keysInTableOrder(_ graph: ReplicaGraph) throws(SluiceError) -> [Value] {
        var rows = rows
        rows.isOrdered = false
        var keys: [Value] = []
        var numbers: [Int64] = []
        var isSorted = true
        try visit(rows, graph) { key, number, _ in
            if let last = numbers.last, number < last { isSorted = false }
            keys.append(key)
            numbers.append(number)
            return true
        }
        if isSorted { return keys }
        return keys.indices.sorted { numbers[$0] < numbers[$1] }.map { keys[$0] }
    }

    func explanation() throws(SluiceError) -> String {
        var rows = rows
        rows.isOrdered = !isInTableOrder || selection.limit != nil
        return try store.explanation(of: rows)
    }

    /// Visits the rows that meet the whole condition.
    private func visit(_ rows: RowSelection, _ graph: ReplicaGraph, _ body: (Value, Int64, RowView) -> Bool) throws(SluiceError) {
        guard let residual = selection.residual else {
            return try store.visitNumbered(rows) { key, number, row throws(SluiceError) in body(key, number, row) }
        }
        var rows = rows
        let more = rows.properties
        rows.properties = more.isEmpty ? reads : Set(reads + more).sorted()
        let program = residual.program
        try store.visitNumbered(rows) { key, number, row throws(SluiceError) in
            let matches = if let program { program.matches(row) } else { residual.matches(row, key: key, in: graph) }
            try graph.check()
            return matches ? body(key, number, row) : true
        }
    }

    func count() throws(SluiceError) -> Int {
        if ReplicaPlan.picks(selection.suffixes) { return try keys().count }
        let limit = selection.limit ?? .max
        if selection.isExact {
            let count = try store.value(of: "count(*)", type, selection.condition) { Int($0.int(0)) }
            return min(count ?? 0, limit)
        }
        var count = 0
        var rows = rows
        rows.isOrdered = false
        try visit(rows, ReplicaGraph(store)) { _, _, _ in
            count += 1
            return true
        }
        return count
    }

    /// Whether deciding about an object reads others here, and not in SQLite.
    var needsGraph: Bool { selection.residual?.needsGraph ?? false }

    /// Whether one object meets the condition.
    func matches(_ key: Value) throws(SluiceError) -> Bool {
        let layout = store.layouts[type]
        guard layout.hasTable else { return false }
        var rows = rows
        rows.limit = nil
        rows.isOrdered = false
        rows.key = key
        var isThere = false
        try visit(rows, ReplicaGraph(store)) { _, _, _ in
            isThere = true
            return false
        }
        return isThere
    }

    /// The place of an object in the table's order; -1 when it does not match, nil when the order is another or SQLite cannot say.
    func position(of key: Value) throws(SluiceError) -> Int? {
        guard selection.isExact, bound.suffixes.isEmpty else { return nil }
        guard let rowid = try store.rowid(type: type, key: key), try matches(key) else { return -1 }
        let before = SQLCondition(
            text: "(\(selection.condition.text)) AND \(SQLLayout.row).\(store.layouts[type].rowid) < \(rowid)",
            parameters: selection.condition.parameters)
        return try store.value(of: "count(*)", type, before) { Int($0.int(0)) } ?? -1
    }

    /// `@min` and `@max` in SQL where its order is the language's and the condition is exact; nil elsewhere.
    func extreme(_ function: Aggregate, _ property: Int) throws(SluiceError) -> Value? {
        guard selection.isExact, !ReplicaPlan.picks(bound.suffixes), function == .min || function == .max else { return nil }
        let layout = store.layouts[type]
        switch layout.kinds[property] {
        case .int, .timestamp: break
        default: return nil
        }
        let column = "\(SQLLayout.row).\(SQLQuote.identifier(layout.type.properties[property].name))"
        let sql = "\(function == .min ? "min" : "max")(\(column))"
        return try store.value(of: sql, type, selection.condition) { layout.value($0, 0, layout.kinds[property]) } ?? .null
    }

    func visitValues(of property: Int, isOrdered: Bool = false, _ body: (Value) -> Void) throws(SluiceError) {
        if !selection.suffixes.isEmpty, isOrdered || ReplicaPlan.picks(bound.suffixes) {
            for key in try keys() { body(try store.row(type: type, key: key)?[property] ?? .null) }
            return
        }
        var rows = rows
        rows.properties = [property]
        if !isOrdered, rows.limit == nil { rows.order = nil }
        try visit(rows, ReplicaGraph(store)) { _, _, row in
            body(row.value(property) ?? .null)
            return true
        }
    }
}
