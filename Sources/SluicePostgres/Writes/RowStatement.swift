import SluiceCore
import SluiceMerge

/// A statement that writes a row and its clocks.
struct RowStatement {
    private let shape: TableShape
    private let key: Value
    private var clockSQL = ""
    private var rowSQL: String?
    private(set) var parameters: [PostgresParameter] = []

    init(_ shape: TableShape, _ key: Value) {
        self.shape = shape
        self.key = key
    }

    /// The SQL of the statement. The write of the row is the main statement, so that the result counts it.
    var sql: String { rowSQL.map { "WITH clock AS (\(clockSQL)) \($0)" } ?? clockSQL }

    private mutating func bind(_ parameter: PostgresParameter) -> String {
        parameters.append(parameter)
        return "$\(parameters.count)"
    }

    private mutating func bind(_ value: Value, _ property: Int) -> String { bind(shape.forms[property].parameter(value)) }

    mutating func clocks(_ clocks: ObjectClocks) {
        let deleted = clocks.isDeleted ? clocks.deletion?.lsn : nil
        let values = [
            bind(.text(shape.type.name)), bind(.text(StoreText.key(key))), bind(.bytes(clocks.encoded)),
            bind(.optional(deleted?.description)),
        ]
        clockSQL = """
            INSERT INTO sluice.row_clock (type, key, clocks, deleted_lsn) VALUES (\(values.joined(separator: ", "))) \
            ON CONFLICT (type, key) DO UPDATE SET clocks = excluded.clocks, deleted_lsn = excluded.deleted_lsn
            """
    }

    /// Inserts a row unless its key exists.
    ///
    /// A table with a unique index on each partition has no conflict target. Without one, ON CONFLICT would also skip a row that any other
    /// constraint rejects.
    mutating func insert(_ row: Row) {
        var columns: [String] = []
        var values: [String] = []
        for index in shape.columns.indices where !shape.forms[index].isGenerated {
            guard let value = row[index] else { continue }
            columns.append(shape.columns[index])
            values.append(bind(value, index))
        }
        let (list, row) = (columns.joined(separator: ", "), values.joined(separator: ", "))
        rowSQL =
            shape.mapping.hasKeyPerPartition
            ? """
            INSERT INTO \(shape.table) (\(list)) SELECT \(row) \
            WHERE NOT EXISTS (SELECT FROM \(shape.table) WHERE \(shape.keyColumn) = \(bind(key, shape.key)))
            """
            : "INSERT INTO \(shape.table) (\(list)) VALUES (\(row)) ON CONFLICT (\(shape.identity)) DO NOTHING"
    }

    mutating func update(_ values: [Int: Value]) {
        let sets = values.sorted { $0.key < $1.key }
            .filter { shape.columns.indices.contains($0.key) && $0.key != shape.key }
            .map { "\(shape.columns[$0.key]) = \(bind($0.value, $0.key))" }
        guard !sets.isEmpty else { return }
        rowSQL = "UPDATE \(shape.table) SET \(sets.joined(separator: ", ")) WHERE \(shape.keyColumn) = \(bind(key, shape.key))"
    }

    mutating func delete() { rowSQL = "DELETE FROM \(shape.table) WHERE \(shape.keyColumn) = \(bind(key, shape.key))" }
}
