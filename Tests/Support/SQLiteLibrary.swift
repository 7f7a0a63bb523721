import CSQLite
package import SluiceCore
import SluiceValues

/// A SQLite database without the replica's code between: the oracle for generated SQL and for the content of a replica's file.
package final class SQLiteLibrary {
    package struct Failure: Error { package var message: String }

    private let database: OpaquePointer

    /// Opens an empty database in memory.
    package convenience init() throws { try self.init(":memory:", flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) }

    /// Opens a file that others write meanwhile, for reading only.
    package convenience init(reading path: String) throws { try self.init(path, flags: SQLITE_OPEN_READONLY) }

    /// Opens the file of a replica for reading and writing, by the VFS that the file needs. Opening a replica in this process has
    /// registered the VFS. A replica that was just released may hold the file for a moment.
    package convenience init(replica path: String) throws {
        try self.init("file:\(path)?vfs=sluice", flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI)
        sqlite3_busy_timeout(database, 10_000)
    }

    private init(_ path: String, flags: Int32) throws {
        var opened: OpaquePointer?
        guard sqlite3_open_v2(path, &opened, flags, nil) == SQLITE_OK, let opened else {
            sqlite3_close(opened)
            throw Failure(message: "SQLite cannot open \(path).")
        }
        database = opened
    }

    deinit { sqlite3_close(database) }

    /// Runs a statement. - Returns: the first column of its rows.
    @discardableResult
    package func run(_ sql: String, _ values: [Value] = []) throws -> [Int64] {
        var result: [Int64] = []
        try each(sql, values) { result.append(sqlite3_column_int64($0, 0)) }
        return result
    }

    /// Returns the rows of a statement in SQLite's storage classes: numbers, texts and bytes.
    package func rows(_ sql: String, _ values: [Value] = []) throws -> [[Value]] {
        var rows: [[Value]] = []
        try each(sql, values) { statement in
            rows.append((0..<sqlite3_column_count(statement)).map { value(statement, $0) })
        }
        return rows
    }

    private func each(_ sql: String, _ values: [Value], _ body: (OpaquePointer) -> Void) throws {
        var prepared: OpaquePointer?
        guard sqlite3_prepare_v2(database, sql, -1, &prepared, nil) == SQLITE_OK, let statement = prepared else { throw failure(sql) }
        defer { sqlite3_finalize(statement) }
        for (index, value) in values.enumerated() { bind(value, Int32(index + 1), statement) }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: body(statement)
            case SQLITE_DONE: return
            default: throw failure(sql)
            }
        }
    }

    private func value(_ statement: OpaquePointer, _ index: Int32) -> Value {
        switch sqlite3_column_type(statement, index) {
        case SQLITE_INTEGER: .int(sqlite3_column_int64(statement, index))
        case SQLITE_FLOAT: .double(sqlite3_column_double(statement, index))
        case SQLITE_TEXT: .string(String(decoding: bytes(statement, index), as: UTF8.self))
        case SQLITE_BLOB: .binary(bytes(statement, index))
        default: .null
        }
    }

    private func bytes(_ statement: OpaquePointer, _ index: Int32) -> [UInt8] {
        let start = sqlite3_column_blob(statement, index)
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, index))))
    }

    private func failure(_ sql: String) -> Failure { Failure(message: String(cString: sqlite3_errmsg(database)) + ": " + sql) }

    /// Binds a value as replicas store it: times as one sortable blob, ids as blobs, NaN and -0 as the bytes of their bit pattern, empty
    /// collections as the bytes of their kind and count.
    private func bind(_ value: Value, _ index: Int32, _ statement: OpaquePointer) {
        switch value {
        case .bool(let v): sqlite3_bind_int64(statement, index, v ? 1 : 0)
        case .int(let v): sqlite3_bind_int64(statement, index, v)
        case .double(let v) where v.isNaN || v == 0 && v.sign == .minus:
            bindBlob(withUnsafeBytes(of: v.bitPattern.bigEndian) { Array($0) }, index, statement)
        case .float(let v) where v.isNaN || v == 0 && v.sign == .minus:
            bindBlob(withUnsafeBytes(of: v.bitPattern.bigEndian) { Array($0) }, index, statement)
        case .double(let v): sqlite3_bind_double(statement, index, v)
        case .float(let v): sqlite3_bind_double(statement, index, Double(v))
        case .decimal(let v): bindBlob(v.bytes, index, statement)
        case .string(let v): sqlite3_bind_text(statement, index, v, Int32(v.utf8.count), Self.transient)
        case .binary(let v): bindBlob(v, index, statement)
        case .objectId(let v): bindBlob(v.bytes, index, statement)
        case .uuid(let v): bindBlob(v.bytes, index, statement)
        case .timestamp(let v):
            let seconds = withUnsafeBytes(of: UInt64(bitPattern: v.seconds ^ .min).bigEndian) { Array($0) }
            let rest = withUnsafeBytes(of: UInt32(bitPattern: v.nanoseconds ^ .min).bigEndian) { Array($0) }
            bindBlob(seconds + rest, index, statement)
        case .list([]): bindBlob([12, 0, 0, 0, 0], index, statement)
        case .dictionary([:]): bindBlob([13, 0, 0, 0, 0], index, statement)
        default: sqlite3_bind_null(statement, index)
        }
    }

    /// Makes SQLite copy the bound bytes.
    private static var transient: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    private func bindBlob(_ bytes: [UInt8], _ index: Int32, _ statement: OpaquePointer) {
        // SQLite binds NULL for a null pointer, which an empty array may have.
        sqlite3_bind_blob(statement, index, bytes.isEmpty ? [0] : bytes, Int32(bytes.count), Self.transient)
    }
}
