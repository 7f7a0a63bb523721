import Foundation
import CSQLite

/// The reference of `ObjectStoreBenchmark`: SQLite's C interface with prepared statements, on a table like the class's.
final class SQLiteReference {
    private var database: OpaquePointer?
    private var lookup: OpaquePointer?
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    /// Opens the file, or creates it with its table.
    init(_ path: String) throws {
        guard sqlite3_open(path, &database) == SQLITE_OK else { throw BenchFailure("SQLite cannot open \(path).") }
        try execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
        try execute(
            """
            CREATE TABLE IF NOT EXISTS reading (
                _id INTEGER PRIMARY KEY NOT NULL, sensor TEXT, station INTEGER, value REAL, note TEXT);
            CREATE INDEX IF NOT EXISTS reading_station ON reading (station)
            """)
    }

    deinit {
        sqlite3_finalize(lookup)
        sqlite3_close(database)
    }

    private func execute(_ sql: String) throws {
        guard sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK else {
            throw BenchFailure("SQLite: \(String(cString: sqlite3_errmsg(database)))")
        }
    }

    private func prepare(_ sql: String) throws -> OpaquePointer? {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(database, sql, -1, &statement, nil) == SQLITE_OK else {
            throw BenchFailure("SQLite: \(String(cString: sqlite3_errmsg(database)))")
        }
        return statement
    }

    /// - Returns: Seconds per row.
    func insert(_ count: Int) throws -> Double {
        let begin = seconds()
        try execute("BEGIN IMMEDIATE")
        let statement = try prepare("INSERT INTO reading VALUES (?, ?, ?, ?, ?)")
        for number in 0..<count {
            sqlite3_bind_int64(statement, 1, Int64(number))
            bind("sensor \(number % 1_000)", 2, statement)
            sqlite3_bind_int64(statement, 3, Int64(number % 10_000))
            sqlite3_bind_double(statement, 4, Double(number) / 4)
            if number % 4 == 0 { bind("calibrated", 5, statement) } else { sqlite3_bind_null(statement, 5) }
            guard sqlite3_step(statement) == SQLITE_DONE else { throw BenchFailure("SQLite refused a row.") }
            sqlite3_reset(statement)
        }
        sqlite3_finalize(statement)
        try execute("COMMIT")
        return (seconds() - begin) / Double(count)
    }

    private func bind(_ text: String, _ index: Int32, _ statement: OpaquePointer?) {
        var text = text
        text.withUTF8 { bytes in
            _ = bytes.withMemoryRebound(to: CChar.self) {
                sqlite3_bind_text(statement, index, $0.baseAddress, Int32($0.count), Self.transient)
            }
        }
    }

    /// Reads one column of every row.
    func sum() throws -> Double {
        let statement = try prepare("SELECT value FROM reading")
        defer { sqlite3_finalize(statement) }
        var sum = 0.0
        while sqlite3_step(statement) == SQLITE_ROW { sum += sqlite3_column_double(statement, 0) }
        return sum
    }

    /// Reads the keys of the rows of a station.
    /// - Returns: The number of keys.
    func keys(station: Int) throws -> Int {
        if lookup == nil { lookup = try prepare("SELECT _id FROM reading WHERE station = ? ORDER BY rowid") }
        sqlite3_bind_int64(lookup, 1, Int64(station))
        defer { sqlite3_reset(lookup) }
        var keys: [Int64] = []
        while sqlite3_step(lookup) == SQLITE_ROW { keys.append(sqlite3_column_int64(lookup, 0)) }
        return keys.count
    }
}
