package import SluiceCore
import SluiceMerge
package import SluicePorts
import SluiceQuery
import Synchronization

/// The snapshots of views, read from the app's tables.
package struct PostgresSnapshots: SnapshotStore {
    private let store: PostgresSnapshotStore
    private let tables: PostgresRowStore.Tables

    /// - Parameters:
    ///   - streams: The pool for large views, whose connections are lent for as long as the clients read.
    ///   - tables: Returns the table of a class in the current schema.
    ///   - unfit: Receives the rows that do not fit their class. The snapshot leaves them out.
    package init(
        pool: PostgresPool, streams: PostgresPool, tables: @escaping PostgresRowStore.Tables,
        unfit: @escaping PostgresSnapshotStore.ReportUnfit
    ) {
        store = PostgresSnapshotStore(pool: pool, streams: streams, unfit: unfit)
        self.tables = tables
    }

    package func read(_ queries: [SnapshotQuery], into sink: some SnapshotSink) async throws -> SnapshotStart? {
        let parts = Mutex<[SnapshotPart]>([])
        var expect: (@Sendable (UInt64) async throws -> Void)?
        if sink.needsEstimate { expect = { try await sink.expect($0) } }
        return try await store.read(
            choose: { [tables] start in
                let chosen = try queries.indices.flatMap { try SnapshotPart.parts(of: queries[$0], $0, tables, at: start) }
                parts.withLock { $0 = chosen }
                return chosen.map(\.selection)
            }, begin: { try await sink.begin($0) }, expected: expect
        ) { number, buffer, refs in
            // The store numbers rows by selection, in the order of `choose`.
            let part = parts.withLock { $0[number] }
            let matching = part.residual.map { program in refs.filter { buffer.withView($0) { program.matches($0) } } } ?? refs
            if matching.isEmpty { return }
            switch part.purpose {
            case .rows: try await sink.take(matching, of: buffer, query: part.query, isInOrder: part.selection.isInOrder)
            case .kept: try await sink.take(kept: part.keys(matching, buffer), query: part.query)
            case .lost: try await sink.take(lost: part.keys(matching, buffer), query: part.query)
            }
        }
    }

    package func stored(_ type: ObjectType, keys: [Value]) async throws -> (objects: [Value: StoredObject], start: SnapshotStart) {
        try await store.stored(try tables(type.name), keys: keys)
    }

    package func source(of type: ObjectType) throws -> String {
        let shape = try tables(type.name)
        return "\(shape.table) (\(shape.columns.joined(separator: ", ")))"
    }

    package func hasSeen(_ witness: HistoryAnchor) async throws -> Bool { try await store.hasSeen(witness) }

    package func currentLSN() async throws -> LSN { try await store.currentLSN() }

    package func place() async throws -> (lsn: LSN, point: SnapshotPoint) {
        let start = try await store.place()
        return (start.lsn, start.point)
    }
}

/// One SQL selection of a query.
private struct SnapshotPart: Sendable {
    /// The index of the query.
    var query: Int
    var selection: SnapshotSelection
    /// The exact condition if SQL selects too many rows.
    var residual: Program?
    var purpose: Purpose

    enum Purpose { case rows, kept, lost }

    func keys(_ rows: [RowRef], _ buffer: RowBuffer) -> [Value] {
        let key = selection.keysOnly ? 0 : selection.shape.key
        return rows.map { buffer.withView($0) { $0.value(key) ?? .null } }
    }

    static func parts(
        of query: SnapshotQuery, _ index: Int, _ tables: PostgresRowStore.Tables, at start: SnapshotStart
    ) throws -> [SnapshotPart] {
        let shape = try tables(query.type.name)
        if let first = query.first { return [try SnapshotPart(index, shape, query.predicate, first, tables)] }
        var parts = parts(of: query, index, shape, at: start)
        if let lost = query.lost, let part = part(of: lost, index, shape, at: start) { parts.append(part) }
        return parts
    }

    private static func parts(of query: SnapshotQuery, _ index: Int, _ shape: TableShape, at start: SnapshotStart) -> [SnapshotPart] {
        let whole = SnapshotPart(index, shape, query.predicate)
        var parts = [whole]
        var staged = query.staged
        if let known = query.known {
            if known.point.isComparable(at: start), let difference = difference(query.predicate, known, index, shape) {
                parts = difference
            } else {
                // The staged rows extend the known ones, so they are useless without them.
                staged = nil
            }
        }
        // Only the first part carries the row estimate, as the parts together are the view.
        for part in parts.indices { parts[part].selection.planned = part == 0 ? whole.selection.planned : nil }
        parts[parts.count - 1].selection.isInOrder = true
        if let staged, staged.point.isComparable(at: start), let last = parts.popLast() { parts += last.going(on: staged) }
        return parts
    }

    /// Returns the part for the keys of lost rows. It reads whole rows if SQL cannot decide the condition. Returns nil if row ages cannot
    /// prove which rows the client had.
    private static func part(of lost: SnapshotQuery.Lost, _ index: Int, _ shape: TableShape, at start: SnapshotStart) -> SnapshotPart? {
        var age = RowAge.any
        if let point = lost.before {
            guard point.isComparable(at: start) else { return nil }
            age = .before(point.transaction)
        }
        var part = SnapshotPart(index, shape, lost.predicate, age: age, purpose: .lost)
        part.selection.keysOnly = part.residual == nil
        part.selection.planned = nil
        return part
    }

    /// Returns the parts for a known view: keys of unchanged rows, rows written since, and rows new to the view. Returns nil if SQL
    /// cannot decide the condition exactly, as keys alone do not suffice then.
    private static func difference(
        _ predicate: Predicate, _ known: SnapshotQuery.Known, _ index: Int, _ shape: TableShape
    ) -> [SnapshotPart]? {
        let isSame = predicate == known.predicate
        let both = isSame ? predicate : .and(predicate, known.predicate)
        let kept = SnapshotPart(index, shape, both, age: .before(known.point.transaction), purpose: .kept)
        guard kept.residual == nil else { return nil }
        let written = SnapshotPart(index, shape, both, age: .since(known.point.transaction))
        return [kept, written] + (isSame ? [] : [SnapshotPart(index, shape, .and(predicate, !known.predicate))])
    }

    /// Returns the parts after an interrupted bootstrap: keys of unchanged staged rows, staged rows written since, and the rows beyond.
    /// Returns only itself if keys alone cannot be selected.
    private func going(on staged: SnapshotQuery.Staged) -> [SnapshotPart] {
        guard residual == nil else { return [self] }
        let form = selection.shape.forms[selection.shape.key]
        let keys: KeyRange = staged.through.map { .through(form.parameter($0)) } ?? .all
        let first: UInt64? = if case .since(let first) = selection.age { first } else { nil }
        let point = staged.point.transaction
        var (kept, written) = (self, self)
        (kept.selection.keys, written.selection.keys) = (keys, keys)
        (kept.selection.isInOrder, written.selection.isInOrder) = (false, false)
        written.selection.planned = nil
        // Rows written since `first` but not since the staging are as staged. `max` covers a staging older than `first`.
        kept.selection.age = first.map { .between($0, max($0, point)) } ?? .before(point)
        kept.selection.keysOnly = true
        kept.purpose = .kept
        written.selection.age = .since(max(first ?? point, point))
        guard let through = staged.through else { return [kept, written] }
        var rest = self
        rest.selection.keys = .after(form.parameter(through))
        rest.selection.planned = nil
        return [kept, written, rest]
    }

    private init(_ index: Int, _ shape: TableShape, _ predicate: Predicate, age: RowAge = .any, purpose: Purpose = .rows) {
        let split = predicate.split(.postgres) { shape.compared[$0] }
        query = index
        selection = SnapshotSelection(
            shape, where: split.condition.text, split.condition.parameters.map(Self.parameter), age: age, keysOnly: purpose == .kept)
        self.purpose = purpose
        residual = split.residual?.compile()
    }

    /// Creates the part of a query with a limit.
    /// - Throws: `queryUnsupported` if SQL cannot express the condition exactly, or the rules of a class that the order passes through.
    private init(
        _ index: Int, _ shape: TableShape, _ predicate: Predicate, _ first: ObjectChoice, _ tables: PostgresRowStore.Tables
    ) throws {
        let split = predicate.split(.postgres) { "\(SQLLayout.row).\(shape.compared[$0])" }
        guard split.residual == nil else {
            // The condition contains the rules, which clients may not see.
            throw SluiceError(
                .queryUnsupported, "A limit is not possible on a query of class \(shape.type.name) that PostgreSQL cannot apply alone.",
                value: String(predicate.canonicalText.prefix(200)),
                fix: "Compare without [c], and numbers with numbers of their own type.")
        }
        var known = [shape.type.name: SQLTable(name: shape.table, columns: shape.compared)]
        for link in first.links where known[link.target.name] == nil {
            let linked = try tables(link.target.name)
            known[link.target.name] = SQLTable(name: linked.table, columns: linked.compared)
        }
        let choice = try first.sql(of: shape.type, where: split.condition, tables: known)
        query = index
        selection = SnapshotSelection(
            shape, where: choice.condition.text, choice.condition.parameters.map(Self.parameter),
            first: .init(limit: choice.limit, order: choice.order, row: SQLLayout.row, joins: choice.joins))
        purpose = .rows
        residual = nil
    }

    private static func parameter(_ parameter: SQLParameter) -> PostgresParameter {
        let isList = if case .list = parameter.value { true } else { false }
        let property = Property(id: 0, name: "", type: parameter.type, collection: isList ? .list : .none, isOptional: true)
        return ColumnForm(property, in: Schema([])).parameter(parameter.value)
    }
}
