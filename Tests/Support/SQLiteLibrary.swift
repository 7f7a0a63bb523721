import Glibc
package import SluiceCore

/// The system's SQLite, opened at run time: the oracle for generated SQL, and for what lies in a replica's file. Only what a comparison
/// of rows needs.
package final class SQLiteLibrary {
    private typealias Open =
        @convention(c) (UnsafePointer<CChar>, UnsafeMutablePointer<OpaquePointer?>, Int32, UnsafePointer<CChar>?) -> Int32
    private typealias Prepare =
        @convention(c) (OpaquePointer, UnsafePointer<CChar>, Int32, UnsafeMutablePointer<OpaquePointer?>, OpaquePointer?) -> Int32
    private typealias Step = @convention(c) (OpaquePointer) -> Int32
    private typealias BindInt = @convention(c) (OpaquePointer, Int32, Int64) -> Int32
    private typealias BindDouble = @convention(c) (OpaquePointer, Int32, Double) -> Int32
    private typealias BindBytes = @convention(c) (OpaquePointer, Int32, UnsafePointer<UInt8>?, Int32, Int) -> Int32
    private typealias BindNull = @convention(c) (OpaquePointer, Int32) -> Int32
    private typealias Column = @convention(c) (OpaquePointer, Int32) -> Int64
    private typealias ColumnType = @convention(c) (OpaquePointer, Int32) -> Int32
    private typealias ColumnDouble = @convention(c) (OpaquePointer, Int32) -> Double
    private typealias ColumnBytes = @convention(c) (OpaquePointer, Int32) -> UnsafeRawPointer?
    private typealias Message = @convention(c) (OpaquePointer) -> UnsafePointer<CChar>

    package struct Failure: Error { package var message: String }

    private let library: UnsafeMutableRawPointer
    private let database: OpaquePointer

    /// Nil where there is no SQLite.
    package convenience init?() { self.init(":memory:", flags: SQLiteLibrary.readWrite | SQLiteLibrary.create) }

    /// A file that others write meanwhile; it is only read.
    package convenience init?(reading path: String) { self.init(path, flags: SQLiteLibrary.readOnly) }

    private static let (readOnly, readWrite, create): (Int32, Int32, Int32) = (1, 2, 4)

    private init?(_ path: String, flags: Int32) {
        guard let library = dlopen("libsqlite3.so.0", RTLD_NOW) else { return nil }
        self.library = library
        var database: OpaquePointer?
        guard let symbol = dlsym(library, "sqlite3_open_v2") else { return nil }
        guard unsafeBitCast(symbol, to: Open.self)(path, &database, flags, nil) == 0, let database else { return nil }
        self.database = database
    }

    deinit {
        _ = try? function("sqlite3_close", Step.self)(database)
        dlclose(library)
    }

    private func function<T>(_ name: String, _: T.Type) throws -> T {
        guard let symbol = dlsym(library, name) else { throw Failure(message: "no \(name)") }
        return unsafeBitCast(symbol, to: T.self)
    }

    /// Runs a statement and gives the first column of its rows.
    @discardableResult
    package func run(_ sql: String, _ values: [Value] = []) throws -> [Int64] {
        let column = try function("sqlite3_column_int64", Column.self)
        var result: [Int64] = []
        try each(sql, values) { result.append(column($0, 0)) }
        return result
    }

    /// The rows of a statement, with what is stored: numbers, texts and bytes.
    package func rows(_ sql: String, _ values: [Value] = []) throws -> [[Value]] {
        let count = try function("sqlite3_column_count", Step.self)
        var rows: [[Value]] = []
        try each(sql, values) { statement in rows.append(try (0..<count(statement)).map { try value(statement, $0) }) }
        return rows
    }

    private func each(_ sql: String, _ values: [Value], _ body: (OpaquePointer) throws -> Void) throws {
        var statement: OpaquePointer?
        let prepare = try function("sqlite3_prepare_v2", Prepare.self)
        guard prepare(database, sql, -1, &statement, nil) == 0, let statement else { throw try failure(sql) }
        let finalize = try function("sqlite3_finalize", Step.self)
        defer { _ = finalize(statement) }
        for (index, value) in values.enumerated() { try bind(value, Int32(index + 1), statement) }
        let step = try function("sqlite3_step", Step.self)
        while true {
            switch step(statement) {
            case 100: try body(statement)
            case 101: return
            default: throw try failure(sql)
            }
        }
    }

    private func value(_ statement: OpaquePointer, _ index: Int32) throws -> Value {
        switch try function("sqlite3_column_type", ColumnType.self)(statement, index) {
        case 1: return .int(try function("sqlite3_column_int64", Column.self)(statement, index))
        case 2: return .double(try function("sqlite3_column_double", ColumnDouble.self)(statement, index))
        case 3: return .string(String(decoding: try bytes(statement, index), as: UTF8.self))
        case 4: return .binary(try bytes(statement, index))
        default: return .null
        }
    }

    private func bytes(_ statement: OpaquePointer, _ index: Int32) throws -> [UInt8] {
        let start = try function("sqlite3_column_blob", ColumnBytes.self)(statement, index)
        let count = try function("sqlite3_column_bytes", ColumnType.self)(statement, index)
        return Array(UnsafeRawBufferPointer(start: start, count: Int(count)))
    }

    private func failure(_ sql: String) throws -> Failure {
        Failure(message: String(cString: try function("sqlite3_errmsg", Message.self)(database)) + ": " + sql)
    }

    /// As replicas store values: times as one sortable blob, ids as blobs, NaN and -0 as the bytes of their bit pattern, empty
    /// collections as the bytes of their kind and count.
    private func bind(_ value: Value, _ index: Int32, _ statement: OpaquePointer) throws {
        switch value {
        case .bool(let v): _ = try function("sqlite3_bind_int64", BindInt.self)(statement, index, v ? 1 : 0)
        case .int(let v): _ = try function("sqlite3_bind_int64", BindInt.self)(statement, index, v)
        case .double(let v) where v.isNaN || v == 0 && v.sign == .minus:
            try bind("sqlite3_bind_blob", withUnsafeBytes(of: v.bitPattern.bigEndian) { Array($0) }, index, statement)
        case .float(let v) where v.isNaN || v == 0 && v.sign == .minus:
            try bind("sqlite3_bind_blob", withUnsafeBytes(of: v.bitPattern.bigEndian) { Array($0) }, index, statement)
        case .double(let v): _ = try function("sqlite3_bind_double", BindDouble.self)(statement, index, v)
        case .float(let v): _ = try function("sqlite3_bind_double", BindDouble.self)(statement, index, Double(v))
        case .decimal(let v): try bind("sqlite3_bind_blob", v.bytes, index, statement)
        case .string(let v): try bind("sqlite3_bind_text", Array(v.utf8), index, statement)
        case .binary(let v): try bind("sqlite3_bind_blob", v, index, statement)
        case .objectId(let v): try bind("sqlite3_bind_blob", v.bytes, index, statement)
        case .uuid(let v): try bind("sqlite3_bind_blob", v.bytes, index, statement)
        case .timestamp(let v):
            let seconds = withUnsafeBytes(of: UInt64(bitPattern: v.seconds ^ .min).bigEndian) { Array($0) }
            let rest = withUnsafeBytes(of: UInt32(bitPattern: v.nanoseconds ^ .min).bigEndian) { Array($0) }
            try bind("sqlite3_bind_blob", seconds + rest, index, statement)
        case .list([]): try bind("sqlite3_bind_blob", [12, 0, 0, 0, 0], index, statement)
        case .dictionary([:]): try bind("sqlite3_bind_blob", [13, 0, 0, 0, 0], index, statement)
        default: _ = try function("sqlite3_bind_null", BindNull.self)(statement, index)
        }
    }

    private func bind(_ name: String, _ bytes: [UInt8], _ index: Int32, _ statement: OpaquePointer) throws {
        let content = bytes.isEmpty ? [0] : bytes
        // -1 asks SQLite to copy.
        _ = try function(name, BindBytes.self)(statement, index, content, Int32(bytes.count), -1)
    }
}
