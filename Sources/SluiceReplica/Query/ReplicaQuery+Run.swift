package import SluiceCore
package import SluiceQuery

extension ReplicaQuery {
    /// Returns the keys of the matching objects, in order.
    ///
    /// O(rows that SQLite cannot exclude). Per row about 0.5 µs if SQLite decides, and 1 µs if the row's own values do. Each object that
    /// a condition or a sort key path reaches through a link takes about 3 µs.
    /// - Parameter maximum: the maximum number of keys. Stops early if no sorting remains after SQLite.
    package func run(on store: RowStore, atMost maximum: Int = .max) throws(SluiceError) -> [Value] {
        let plan = ReplicaPlan(self, store)
        let keys = try plan.keys(atMost: maximum)
        return keys.count > maximum ? Array(keys.prefix(maximum)) : keys
    }

    /// Returns the number of matching objects. Reads no key if SQLite decides alone.
    package func count(on store: RowStore) throws(SluiceError) -> Int {
        if isWhole { return try store.count(type: type) }
        return try ReplicaPlan(self, store).count()
    }

    /// Returns SQLite's query plan for the statement that selects the rows, line by line.
    package func explanation(on store: RowStore) throws(SluiceError) -> String { try ReplicaPlan(self, store).explanation() }

    package func first(on store: RowStore) throws(SluiceError) -> Value? { try run(on: store, atMost: 1).first }

    /// Returns a block of keys that contains the index, without reading the keys before it.
    /// - Returns: `nil` if SQLite has no index for it, or cannot decide alone. An empty block if the index is behind the last object.
    package func block(at index: Int, on store: RowStore) throws(SluiceError) -> KeyBlock? {
        if isWhole { return try store.block(type: type, at: index) }
        return try ReplicaPlan(self, store).block(at: index)
    }

    /// `true` if the object is among the matches. With DISTINCT or LIMIT, this runs the query.
    package func contains(_ key: Value, on store: RowStore) throws(SluiceError) -> Bool {
        if ReplicaPlan.picks(bound.suffixes) { return try run(on: store).contains(key) }
        return try ReplicaPlan(self, store).matches(key)
    }

    /// Returns the index of an object among the matches, or `nil` if it does not match.
    package func position(of key: Value, on store: RowStore) throws(SluiceError) -> Int? {
        let plan = ReplicaPlan(self, store)
        if let position = try plan.position(of: key) { return position < 0 ? nil : position }
        return try run(on: store).firstIndex(of: key)
    }

    /// Returns the minimum, maximum, sum or average of a property over the matching objects, as `@min` to `@avg` do. Nulls are skipped.
    /// Without values the sum is 0 and the others are null. Sums of integers wrap around.
    package func aggregate(_ function: Aggregate, property: Int, on store: RowStore) throws(SluiceError) -> Value {
        let type = bound.type.properties[property].type
        let plan = ReplicaPlan(self, store)
        if let value = try plan.extreme(function, property) { return value }
        var aggregation = Aggregation(function, of: type)
        try plan.visitValues(of: property) { aggregation.add($0) }
        return aggregation.result
    }

    /// Returns a property's values of the matching objects, in order.
    package func values(of property: Int, on store: RowStore) throws(SluiceError) -> [Value] {
        var values: [Value] = []
        try ReplicaPlan(self, store).visitValues(of: property, isOrdered: true) { values.append($0) }
        return values
    }
}

/// The execution of a query on one connection: the part for SQLite, and the rest.
struct ReplicaPlan {
    private let type: Int
    private let bound: BoundQuery
    private let store: RowStore
    private let selection: SQLSelection
    /// The properties that the residual condition reads.
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

    /// `true` if suffixes select among the objects that meet the condition.
    static func picks(_ suffixes: [BoundSuffix]) -> Bool {
        suffixes.contains { if case .sort = $0 { false } else { true } }
    }

    private var rows: RowSelection {
        RowSelection(
            type: type, condition: selection.condition, order: selection.order, limit: selection.limit,
            isNested: selection.residual?.needsGraph ?? false)
    }

    func keys(atMost maximum: Int = .max) throws(SluiceError) -> [Value] {
        // A suffix that remains here needs all rows: the first one in its order may come last.
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

    /// Returns the keys of a block if SQLite neither sorts nor visits rows that do not match: O(index) steps in an index.
    func block(at index: Int) throws(SluiceError) -> KeyBlock? {
        guard selection.isExact, selection.suffixes.isEmpty, index >= 0 else { return nil }
        var rows = rows
        rows.limit = min(RowBlocks.size, max((selection.limit ?? .max) - index, 0))
        rows.offset = index
        // With a sort or a scan, every block would cost the whole table.
        let plan = try store.explanation(of: rows)
        guard !plan.contains("TEMP B-TREE"), selection.condition.text == "TRUE" || plan.contains("SEARCH") else { return nil }
        var block = KeyBlock(first: index, keys: [])
        try store.visit(rows) { key, _ throws(SluiceError) in
            block.keys.append(key)
            return true
        }
        return block
    }

    /// `true` if the order is the table's, and an index may find the rows.
    private var isInTableOrder: Bool {
        let isOwn = selection.order.map { $0 == "\(SQLLayout.row).\(store.layouts[type].rowid)" } ?? true
        return isOwn && selection.condition.text != "TRUE"
    }

    /// Returns the keys in table order. Without ORDER BY, SQLite uses an index if there is one. Its result is usually short or in order.
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
            // An error leaves the graph's answers empty: check before the row counts as a match or not.
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

    /// `true` if the residual condition reads other objects, outside of SQLite.
    var needsGraph: Bool { selection.residual?.needsGraph ?? false }

    /// `true` if one object meets the condition.
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

    /// Returns the index of an object in table order: -1 if it does not match, `nil` if the order differs or SQLite cannot decide.
    func position(of key: Value) throws(SluiceError) -> Int? {
        guard selection.isExact, bound.suffixes.isEmpty else { return nil }
        guard let rowid = try store.rowid(type: type, key: key), try matches(key) else { return -1 }
        let before = SQLCondition(
            text: "(\(selection.condition.text)) AND \(SQLLayout.row).\(store.layouts[type].rowid) < \(rowid)",
            parameters: selection.condition.parameters)
        return try store.value(of: "count(*)", type, before) { Int($0.int(0)) } ?? -1
    }

    /// Returns `@min` or `@max` from SQL if its order is the language's and the condition is exact. Otherwise returns `nil`.
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
