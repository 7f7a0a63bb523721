import CSQLite
import SluiceCore

/// A prepared statement. Parameters and columns count from 0 (SQLite counts parameters from 1).
final class Statement {
    private let pointer: OpaquePointer
    private unowned let connection: Connection

    /// Makes SQLite copy the bound bytes.
    private static var transient: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    init(_ sql: String, on connection: Connection) throws(SluiceError) {
        try Connection.refuseNUL(sql)
        var prepared: OpaquePointer?
        guard
            sqlite3_prepare_v3(connection.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil) == SQLITE_OK,
            let prepared
        else { throw connection.error("preparing \(sql)") }
        pointer = prepared
        self.connection = connection
    }

    deinit { sqlite3_finalize(pointer) }

    func reset() {
        sqlite3_reset(pointer)
        sqlite3_clear_bindings(pointer)
    }

    /// - Returns: `true` if a row is available.
    func step() throws(SluiceError) -> Bool {
        switch sqlite3_step(pointer) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default:
            let failure = connection.error("running \(String(cString: sqlite3_sql(pointer)).prefix(120))")
            sqlite3_reset(pointer)
            throw failure
        }
    }

    /// Runs the statement to its end and resets it. Keeps the bindings.
    func run() throws(SluiceError) {
        while try step() {}
        sqlite3_reset(pointer)
    }

    // MARK: Parameters

    func bindNull(_ index: Int) { sqlite3_bind_null(pointer, Int32(index + 1)) }
    func bind(_ index: Int, _ value: Int64) { sqlite3_bind_int64(pointer, Int32(index + 1), value) }
    func bind(_ index: Int, _ value: UInt64) { bind(index, Int64(bitPattern: value)) }
    func bind(_ index: Int, _ value: Double) { sqlite3_bind_double(pointer, Int32(index + 1), value) }

    func bind(_ index: Int, _ value: String) {
        var value = value
        value.withUTF8 { bind(index, text: $0, copied: true) }
    }

    func bind(_ index: Int, _ value: [UInt8]) { value.withUnsafeBytes { bind(index, blob: $0, copied: true) } }

    /// - Parameter copied: `false` if the bytes stay valid until the statement has run.
    func bind(_ index: Int, text: UnsafeBufferPointer<UInt8>, copied: Bool) {
        guard let base = text.baseAddress, !text.isEmpty else {
            sqlite3_bind_text(pointer, Int32(index + 1), "", 0, Statement.transient)
            return
        }
        base.withMemoryRebound(to: CChar.self, capacity: text.count) {
            _ = sqlite3_bind_text(pointer, Int32(index + 1), $0, Int32(text.count), copied ? Statement.transient : nil)
        }
    }

    func bind(_ index: Int, blob: UnsafeRawBufferPointer, copied: Bool) {
        #if DEBUG
            connection.boundBytes += blob.count
        #endif
        guard let base = blob.baseAddress, !blob.isEmpty else {
            sqlite3_bind_zeroblob(pointer, Int32(index + 1), 0)
            return
        }
        sqlite3_bind_blob(pointer, Int32(index + 1), base, Int32(blob.count), copied ? Statement.transient : nil)
    }

    // MARK: Columns

    func isNull(_ column: Int) -> Bool { sqlite3_column_type(pointer, Int32(column)) == SQLITE_NULL }
    func storage(_ column: Int) -> Int32 { sqlite3_column_type(pointer, Int32(column)) }
    func int(_ column: Int) -> Int64 { sqlite3_column_int64(pointer, Int32(column)) }
    func unsigned(_ column: Int) -> UInt64 { UInt64(bitPattern: int(column)) }
    func double(_ column: Int) -> Double { sqlite3_column_double(pointer, Int32(column)) }

    /// Returns the bytes of a text or blob column. They are valid until the next step.
    func bytes(_ column: Int) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(pointer, Int32(column))
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(pointer, Int32(column))))
    }

    func string(_ column: Int) -> String { String(decoding: bytes(column), as: UTF8.self) }
    func blob(_ column: Int) -> [UInt8] { Array(bytes(column)) }
}
