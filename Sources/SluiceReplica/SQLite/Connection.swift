import SluiceCore
import CSluiceVFS
import CSQLite

/// A SQLite handle with its prepared statements, used through the C interface for the hot paths. A row costs 0.6 µs this way, and 1.2 µs
/// or more through row objects.
///
/// A connection has no lock. It is confined to its replica's writer queue, or to the one Realm that owns it.
package final class Connection {
    let handle: OpaquePointer
    /// Prepared statements by text. All are dropped at `keptStatements`: queries with literal lists would fill the cache otherwise.
    private var statements: [String: Statement] = [:]
    private static let keptStatements = 256
    /// The page cache of a writer, in KiB. A transaction that changes more spills pages to the WAL before its commit, and reads and
    /// verifies them to change them again. SQLite's default of 2 MiB is too small for the indexes of a large transaction.
    private static let writerCache = 16_384

    /// The longest wait for another process, in milliseconds.
    private static let patience: Int32 = 10_000

    private init(handle: OpaquePointer) { self.handle = handle }

    enum Mode {
        /// Creates the file if it is missing.
        case writer(isTemporary: Bool)
        /// Reads a file that other connections write. The file must exist.
        case reader
        /// Reads a file that no connection of this machine writes. Its folder may be read-only.
        case readOnly
    }

    static func open(path: String, _ mode: Mode) throws(SluiceError) -> Connection {
        switch mode {
        case .writer(let isTemporary):
            let connection = try open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
            sluice_vfs_prepare(connection.handle)
            // Before SQLite creates the files beside it, which get the same permissions.
            ReplicaFile.protect(path)
            try connection.execute("PRAGMA journal_mode = WAL")
            try connection.execute("PRAGMA synchronous = \(isTemporary ? "OFF" : "NORMAL"); PRAGMA secure_delete = FAST")
            try connection.execute("PRAGMA cache_size = -\(writerCache)")
            return connection
        case .reader:
            let connection = try open(path, SQLITE_OPEN_READWRITE)
            try connection.execute("PRAGMA query_only = 1")
            return connection
        case .readOnly:
            let connection = try open(path, SQLITE_OPEN_READONLY)
            if (try? connection.execute("SELECT 1 FROM sqlite_master")) != nil { return connection }
            // A read-only folder has no room for the files of a shared database. Then no other process writes the file either.
            let name = path.utf8.map { byte in
                "?#%".utf8.contains(byte) ? "%\(String(byte, radix: 16, uppercase: true))" : String(decoding: [byte], as: UTF8.self)
            }
            let immutable = try open("file:\(name.joined())?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
            try immutable.execute("SELECT 1 FROM sqlite_master")
            return immutable
        }
    }

    /// Opens the file through the layer that verifies each page, see CSluiceVFS.
    private static func open(_ path: String, _ flags: Int32) throws(SluiceError) -> Connection {
        let registered = sluice_vfs_register()
        guard registered == SQLITE_OK else {
            throw SluiceError(
                .internalError, "SQLite has no file layer.", fix: "Report it with the text above.", cause: cause(registered))
        }
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(path, &handle, flags | SQLITE_OPEN_NOMUTEX, SLUICE_VFS_NAME)
        guard code == SQLITE_OK, let handle else {
            let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            let extended = handle.map { sqlite3_extended_errcode($0) } ?? code
            sqlite3_close_v2(handle)
            if isDamage(extended) { throw damage(extended, "opening it") }
            throw SluiceError(
                .replicaCorrupt, "The local file \(path) cannot be opened.",
                fix: "Check that the folder exists and that this user may read and write it.",
                cause: .sqlite(code: extended, text: message))
        }
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, patience)
        return Connection(handle: handle)
    }

    /// Moves the log into the database and empties it. Does nothing while another connection reads or writes.
    func truncateLog() {
        sqlite3_busy_timeout(handle, 0)
        try? execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sqlite3_busy_timeout(handle, Connection.patience)
    }

    deinit {
        statements = [:]
        sqlite3_close_v2(handle)
    }

    /// Returns the statement of a text, prepared once and cached. It is reset and has no bindings.
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

    /// Returns a statement for exclusive use, until `giveBack`. The caller may keep it across other statements of the same text.
    func takeStatement(_ sql: String) throws(SluiceError) -> Statement {
        if let statement = statements.removeValue(forKey: sql) {
            statement.reset()
            return statement
        }
        return try Statement(sql, on: self)
    }

    func giveBack(_ statement: Statement, of sql: String) {
        statement.reset()
        if statements.count < Connection.keptStatements { statements[sql] = statement }
    }

    /// Returns the integers of a query with one column.
    func integers(_ sql: String) throws(SluiceError) -> [Int64] {
        let statement = try statement(sql)
        defer { statement.reset() }
        var integers: [Int64] = []
        while try statement.step() { integers.append(statement.int(0)) }
        return integers
    }

    /// Returns the number that a query computes from the rows up to a limit, its only argument. `nil`: from all.
    func number(_ sql: String, _ limit: UInt64?) throws(SluiceError) -> UInt64 {
        let statement = try statement(sql)
        statement.bind(0, limit ?? UInt64(Int64.max))
        defer { statement.reset() }
        return try statement.step() ? statement.unsigned(0) : 0
    }

    /// Runs one or more statements that return no rows.
    func execute(_ sql: String) throws(SluiceError) {
        try Connection.refuseNUL(sql)
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw error("running \(sql.prefix(80))") }
    }

    /// Rejects a statement with a NUL, where SQLite would stop reading. - Throws: `invalidName`.
    static func refuseNUL(_ sql: String) throws(SluiceError) {
        guard sql.utf8.contains(0) else { return }
        throw SluiceError(.invalidName, "The name of a class or property contains a NUL character, which SQLite cannot store.")
    }

    /// Waits until all commits are on the disk.
    func syncLog() throws(SluiceError) {
        var log: UnsafeMutablePointer<sqlite3_file>?
        let found = sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log)
        // A WAL that was never written to is not open.
        guard found == SQLITE_OK, let log, let methods = log.pointee.pMethods else { return }
        let code = methods.pointee.xSync(log, SQLITE_SYNC_NORMAL)
        if code != SQLITE_OK {
            throw SluiceError(
                .internalError, "The log of the local file cannot be written to the disk.",
                fix: "Check that the disk has room and no faults.", cause: Connection.cause(code))
        }
    }

    /// The number of virtual machine instructions that SQLite has run for the statements that are prepared.
    var instructions: Int {
        var (sum, next) = (0, sqlite3_next_stmt(handle, nil))
        while let statement = next {
            sum += Int(sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 0))
            next = sqlite3_next_stmt(handle, statement)
        }
        return sum
    }

    #if DEBUG
        /// The bytes of blobs bound to statements.
        var boundBytes = 0
    #endif

    /// Drops the cached statements. Required after a change of the file's schema.
    func forgetStatements() {
        statements = [:]
    }

    /// The number of rows changed by the last statement.
    var changes: Int { Int(sqlite3_changes(handle)) }

    /// Returns the last error of the handle as a `SluiceError`.
    func error(_ doing: String) -> SluiceError {
        let code = sqlite3_extended_errcode(handle)
        if Connection.isDamage(code) { return Connection.damage(code, doing) }
        let text = "SQLite failed while \(doing)."
        let cause = ErrorCause.sqlite(code: code, text: String(cString: sqlite3_errmsg(handle)))
        switch code & 0xFF {
        case SQLITE_CORRUPT, SQLITE_NOTADB: return SluiceError(.replicaCorrupt, text, cause: cause)
        case SQLITE_FULL: return SluiceError(.deviceFull, text, cause: cause)
        case SQLITE_BUSY, SQLITE_LOCKED:
            return SluiceError(.timeout, text, fix: "Close other programs that use the local file.", cause: cause)
        default: return SluiceError(.internalError, text, fix: "Report it with the text above.", cause: cause)
        }
    }

    /// Returns the cause for a result code without a handle.
    private static func cause(_ code: Int32) -> ErrorCause { .sqlite(code: code, text: String(cString: sqlite3_errstr(code))) }

    private static func isDamage(_ code: Int32) -> Bool { code == SLUICE_VFS_DAMAGED || code == SLUICE_VFS_FOREIGN }

    /// Returns the error for a file that differs from the written content, or that another library wrote.
    private static func damage(_ code: Int32, _ doing: String) -> SluiceError {
        var offset: Int64 = 0
        let file = sluice_vfs_damage(&offset).map { String(cString: $0) } ?? ""
        if code == SLUICE_VFS_FOREIGN {
            return SluiceError(
                .replicaCorrupt, "\(file) is a database without page checksums: another program created it, or an older release.",
                fix: """
                    Move it away and open anew: a synced Realm is downloaded afresh. Carry the objects of a local one over with the \
                    release that wrote it.
                    """)
        }
        guard !RealmFileMark.isThere(in: file) else {
            return SluiceError(
                .replicaCorrupt, "\(file) is a file of RealmSwift, which this SDK does not read.",
                fix: """
                    Open another path, and keep this file: a synced Realm is downloaded afresh. Changes that were not uploaded, and the \
                    objects of a local Realm, come over with a release of the app that still has RealmSwift.
                    """)
        }
        let mark = file + SLUICE_VFS_MARK_ENDING
        // Without its mark file, the WAL ends where the damage begins.
        let rest = file.hasSuffix("-wal") ? " Or delete \(mark) to open the state before the damage; later commits are lost." : ""
        return SluiceError(
            .replicaCorrupt, "The file \(file) is damaged: from byte \(offset) on it is not what was written (while \(doing)).",
            fix: ErrorCode.replicaCorrupt.fix + rest)
    }

    /// Runs the body in a transaction. Commits when it returns and rolls back when it throws.
    func transaction<R>(_ body: () throws(SluiceError) -> R) throws(SluiceError) -> R {
        try execute("BEGIN IMMEDIATE")
        do throws(SluiceError) {
            let result = try body()
            try execute("COMMIT")
            return result
        } catch {
            // An error such as a full disk may have rolled back already.
            if sqlite3_get_autocommit(handle) == 0 { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
            throw error
        }
    }
}
