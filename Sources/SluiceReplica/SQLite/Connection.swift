import SluiceCore
import GRDBSQLite

/// One SQLite handle with its prepared statements, used through the C interface: what the hot paths need (a row costs
/// 0.6 µs this way and 1.2 µs and more through row objects).
///
/// A connection is confined: to the writer queue of its replica, or to the one Realm that owns it.
package final class Connection {
    let handle: OpaquePointer
    /// Whether `deinit` closes the handle; false for the writer, whose handle GRDB owns.
    private let ownsHandle: Bool
    /// Beyond `keptStatements` all are let go; queries with literal lists would fill it otherwise.
    private var statements: [String: Statement] = [:]
    private static let keptStatements = 256

    init(handle: OpaquePointer, ownsHandle: Bool) {
        self.handle = handle
        self.ownsHandle = ownsHandle
    }

    /// Opens a second handle to a file that exists, for reading.
    static func reader(path: String) throws(SluiceError) -> Connection {
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil)
        guard code == SQLITE_OK, let handle else {
            let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            sqlite3_close_v2(handle)
            throw SluiceError(.replicaCorrupt, "The local file \(path) cannot be opened: \(message).")
        }
        sqlite3_busy_timeout(handle, 10_000)
        let connection = Connection(handle: handle, ownsHandle: true)
        try connection.execute("PRAGMA query_only = 1")
        return connection
    }

    /// Takes over the writer's handle. GRDB watches commits of its own statements through hooks; ours would reach it out of turn.
    static func writer(handle: OpaquePointer) -> Connection {
        sqlite3_commit_hook(handle, nil, nil)
        sqlite3_rollback_hook(handle, nil, nil)
        return Connection(handle: handle, ownsHandle: false)
    }

    deinit {
        statements = [:]
        if ownsHandle { sqlite3_close_v2(handle) }
    }

    /// The statement of a text, prepared once and kept; it comes back reset and without bindings.
    func statement(_ sql: String) throws(SluiceError) -> Statement {
        if let statement = statements[sql] {
            statement.reset()
            return statement
        }
        if statements.count >= Connection.keptStatements { statements = [:] }
        let statement = try Statement(sql, on: self)
        statements[sql] = statement
        return statement
    }

    /// Runs one or more statements that return nothing.
    func execute(_ sql: String) throws(SluiceError) {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw error("running \(sql.prefix(80))") }
    }

    /// Forgets the prepared statements; needed after the schema of the file has changed.
    func forgetStatements() {
        statements = [:]
    }

    /// Rows changed by the last statement.
    var changes: Int { Int(sqlite3_changes(handle)) }

    /// The last error of the handle in our words.
    func error(_ doing: String) -> SluiceError {
        let code = sqlite3_extended_errcode(handle)
        let text = "SQLite failed while \(doing): \(String(cString: sqlite3_errmsg(handle))) (\(code))."
        switch code & 0xFF {
        case SQLITE_CORRUPT, SQLITE_NOTADB: return SluiceError(.replicaCorrupt, text)
        case SQLITE_FULL: return SluiceError(.internalError, text, fix: "Free space on the device.")
        case SQLITE_BUSY, SQLITE_LOCKED: return SluiceError(.timeout, text, fix: "Close other programs that use the local file.")
        default: return SluiceError(.internalError, text, fix: "Report it with the text above.")
        }
    }

    /// Runs the body in a transaction: committed when it returns, rolled back when it throws.
    func transaction<R>(_ body: () throws(SluiceError) -> R) throws(SluiceError) -> R {
        try execute("BEGIN IMMEDIATE")
        do throws(SluiceError) {
            let result = try body()
            try execute("COMMIT")
            return result
        } catch {
            if sqlite3_get_autocommit(handle) == 0 { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
            throw error
        }
    }
}
