import SluiceCore
import SluiceValues

/// An estimate of the number of rows that selections have, for the progress of a download.
///
/// PostgreSQL's planner gives it without reading a row, from the statistics that ANALYZE collects. A table that was just filled has none,
/// and a partitioned table has none until an operator runs ANALYZE. The planner's default is then wrong by orders of magnitude, so the
/// rows in a few random pages are counted instead (TABLESAMPLE SYSTEM).
enum RowEstimate {
    /// The pages that are read of a table without statistics, on average. They cost milliseconds, and have thousands of rows.
    private static let sampledPages = 128.0

    /// Returns the sum of the estimates of all selections with a `planned` condition, at most 10¹⁵.
    static func rows(of selections: [SnapshotSelection], _ connection: PostgresConnection) async throws -> UInt64 {
        var total = 0.0
        for selection in selections {
            guard let planned = selection.planned else { continue }
            let guess = try await plannedRows(selection, planned, connection)
            total += try await sampledRows(selection, planned, insteadOf: guess, connection) ?? guess
        }
        return UInt64(min(max(total, 0), 1e15))
    }

    private static func plannedRows(
        _ selection: SnapshotSelection, _ planned: SnapshotSelection.Planned, _ connection: PostgresConnection
    ) async throws -> Double {
        guard let text = try await connection.query(selection.explanation(planned), planned.parameters)[0, 0] else { return 0 }
        let rows = try JSON.parse(text).array?.first?["Plan"]?["Plan Rows"]
        if case .double(let number)? = rows { return number }
        return Double(rows?.int ?? 0)
    }

    /// Returns the estimate from a sample; nil for a table with statistics.
    private static func sampledRows(
        _ selection: SnapshotSelection, _ planned: SnapshotSelection.Planned, insteadOf guess: Double, _ connection: PostgresConnection
    ) async throws -> Double? {
        let table = try await connection.query(unknownPages, [.text(selection.shape.table)])
        guard table.count == 1, let pages = table[0, 0].flatMap({ Double($0) }) else { return nil }
        let percent = min(100, 100 * sampledPages / max(pages, 1))
        let counted = try await connection.query(selection.sample(planned, percent: percent), planned.parameters)
        let found = counted[0, 0].flatMap { Double($0) } ?? 0
        // A row that the sample lacks is rarer than one in the sample.
        let rows = found > 0 ? found * 100 / percent : min(guess, 100 / percent)
        return selection.first.map { min(rows, Double($0.limit)) } ?? rows
    }

    /// Selects the number of a table's pages, with those of its partitions; no row for a table with statistics.
    private static let unknownPages = """
        SELECT coalesce((SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree(c.oid) WHERE isleaf), pg_relation_size(c.oid)) \
        / current_setting('block_size')::numeric \
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1::regclass \
        AND NOT EXISTS (SELECT FROM pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname)
        """
}
