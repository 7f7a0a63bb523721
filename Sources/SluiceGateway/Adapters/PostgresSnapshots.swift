import SluiceCore
import SluicePipeline
import SluicePostgres
import SluiceQuery

/// PostgreSQL's read side as the pipeline's port.
struct PostgresSnapshots: SnapshotStore {
    private let store: PostgresSnapshotStore
    private let tables: GatewayTables

    init(pool: PostgresPool, tables: GatewayTables) {
        store = PostgresSnapshotStore(pool: pool)
        self.tables = tables
    }

    func read(
        _ queries: [SnapshotQuery],
        begin: @Sendable (SnapshotStart) async throws -> Bool,
        rows: @Sendable (_ query: Int, _ buffer: RowBuffer, _ rows: [RowRef]) async throws -> Void
    ) async throws -> SnapshotStart? {
        // Where SQL cannot say all, it selects more, and what is left of the predicate decides.
        let splits = try queries.map { query in
            let columns = try tables.shape(of: query.type.name).columns
            return query.predicate.split(.postgres) { columns[$0] }
        }
        let programs = splits.map { $0.residual?.compile() }
        let selections = try zip(queries, splits).map { query, split in
            SnapshotSelection(
                try tables.shape(of: query.type.name), where: split.condition.text, split.condition.parameters.map(Self.parameter))
        }
        let result = try await store.read(
            selections, begin: { try await begin(SnapshotStart(snapshot: $0, lsn: $1)) },
            rows: { query, buffer, refs in
                let matching = programs[query].map { program in refs.filter { buffer.withView($0) { program.matches($0) } } } ?? refs
                if !matching.isEmpty { try await rows(query, buffer, matching) }
            })
        return result.map { SnapshotStart(snapshot: $0.snapshot, lsn: $0.lsn) }
    }

    func currentLSN() async throws -> LSN { try await store.currentLSN() }

    private static func parameter(_ parameter: SQLParameter) -> PostgresParameter {
        let isList = if case .list = parameter.value { true } else { false }
        let property = Property(id: 0, name: "", type: parameter.type, collection: isList ? .list : .none, isOptional: true)
        return ColumnForm(property, in: Schema([])).parameter(parameter.value)
    }
}
