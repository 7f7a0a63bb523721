import SluiceCore
import CSluiceVFS
import GRDBSQLite

/// One SQLite handle with its prepared statements, used through the C interface: what the hot paths need (a row costs
/// 0.6 µs this way and 1.2 µs and more through row objects).
///
/// A connection is confined, and has no lock of its own: to the writer queue of its replica, or to the one Realm that owns it.
package final class Connection {
    let handle: OpaquePointer
    /// Beyond `keptStatements` all are let go; queries with literal lists would fill it otherwise.
    private var statements: [String: Statement] = [:]
    private static let keptStatements = 256
    /// KiB of pages that a writer may hold. What a transaction changes beyond it goes to the log before the commit, and is read from there
    /// and checked when it is changed again; SQLite's own 2 MiB are too few for the indexes of a large one.
    private static let writerCache = 16_384

    private init(handle: OpaquePointer) { self.handle = handle }

    enum Mode {
        /// Makes the file when it is missing.
        case writer(isTemporary: Bool)
        /// One that others write; it exists.
        case reader
        /// As a reader, of a file that nobody here writes; it may lie where nothing can be written.
        case readOnly
    }

    static func open(path: String, _ mode: Mode) throws(SluiceError) -> Connection {
        switch mode {
        case .writer(let isTemporary):
            let connection = try open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
            sluice_vfs_prepare(connection.handle)
            try connection.execute("PRAGMA journal_mode = WAL")
            try connection.execute("PRAGMA synchronous = \(isTemporary ? "OFF" : "NORMAL"); PRAGMA secure_delete = OFF")
            try connection.execute("PRAGMA cache_size = -\(writerCache)")
            return connection
        case .reader:
            let connection = try open(path, SQLITE_OPEN_READWRITE)
            try connection.execute("PRAGMA query_only = 1")
            return connection
        case .readOnly:
            let connection = try open(path, SQLITE_OPEN_READONLY)
            if (try? connection.execute("SELECT 1 FROM sqlite_master")) != nil { return connection }
            // A folder that cannot be written has no room for the files that a shared database needs. Then nobody else writes either.
            let name = path.utf8.map { byte in
                "?#%".utf8.contains(byte) ? "%\(String(byte, radix: 16, uppercase: true))" : String(decoding: [byte], as: UTF8.self)
            }
            let immutable = try open("file:\(name.joined())?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
            try immutable.execute("SELECT 1 FROM sqlite_master")
            return immutable
        }
    }

    /// Through the layer that checks each page of the file, see CSluiceVFS.
    private static func open(_ path: String, _ flags: Int32) throws(SluiceError) -> Connection {
        let registered = sluice_vfs_register()
        guard registered == SQLITE_OK else {
            throw SluiceError(.internalError, "SQLite has no file layer (\(registered)).", fix: "Report it with the text above.")
        }
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(path, &handle, flags | SQLITE_OPEN_NOMUTEX, SLUICE_VFS_NAME)
        guard code == SQLITE_OK, let handle else {
            let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            let extended = handle.map { sqlite3_extended_errcode($0) } ?? code
            sqlite3_close_v2(handle)
            if isDamage(extended) { throw damage(extended, "opening it") }
            throw SluiceError(
                .replicaCorrupt, "The local file \(path) cannot be opened: \(message).",
                fix: "See that the folder exists and that this user may read and write it.")
        }
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, 10_000)
        return Connection(handle: handle)
    }

    deinit {
        statements = [:]
        sqlite3_close_v2(handle)
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

    /// A statement that nobody else is given until it comes back.
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

    /// Runs one or more statements that return nothing.
    func execute(_ sql: String) throws(SluiceError) {
        try Connection.refuseNUL(sql)
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw error("running \(sql.prefix(80))") }
    }

    /// Refuses a statement that SQLite would read only up to its first NUL. - Throws: `invalidName`.
    static func refuseNUL(_ sql: String) throws(SluiceError) {
        guard sql.utf8.contains(0) else { return }
        throw SluiceError(.invalidName, "The name of a class or property contains a NUL character, which SQLite cannot store.")
    }

    /// Waits until what is committed is on the disk.
    func syncLog() throws(SluiceError) {
        var log: UnsafeMutablePointer<sqlite3_file>?
        let found = sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log)
        // A log that nothing was written to yet is not open.
        guard found == SQLITE_OK, let log, let methods = log.pointee.pMethods else { return }
        let code = methods.pointee.xSync(log, SQLITE_SYNC_NORMAL)
        if code != SQLITE_OK {
            throw SluiceError(
                .internalError, "The log of the local file cannot be written to the disk (\(code)).",
                fix: "See that the disk has room and is whole.")
        }
    }

    /// How many instructions of its own SQLite has run for the statements that are kept: what it does not read it does not count.
    var instructions: Int {
        var (sum, next) = (0, sqlite3_next_stmt(handle, nil))
        while let statement = next {
            sum += Int(sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 0))
            next = sqlite3_next_stmt(handle, statement)
        }
        return sum
    }

    #if DEBUG
        /// Bytes of the blobs that statements were given.
        var boundBytes = 0
    #endif

    /// Forgets the prepared statements; needed after the schema of the file has changed.
    func forgetStatements() {
        statements = [:]
    }

    /// Rows changed by the last statement.
    var changes: Int { Int(sqlite3_changes(handle)) }

    /// The last error of the handle in our words.
    func error(_ doing: String) -> SluiceError {
        let code = sqlite3_extended_errcode(handle)
        if Connection.isDamage(code) { return Connection.damage(code, doing) }
        let text = "SQLite failed while \(doing): \(String(cString: sqlite3_errmsg(handle))) (\(code))."
        switch code & 0xFF {
        case SQLITE_CORRUPT, SQLITE_NOTADB: return SluiceError(.replicaCorrupt, text)
        case SQLITE_FULL: return SluiceError(.deviceFull, text)
        case SQLITE_BUSY, SQLITE_LOCKED: return SluiceError(.timeout, text, fix: "Close other programs that use the local file.")
        default: return SluiceError(.internalError, text, fix: "Report it with the text above.")
        }
    }

    private static func isDamage(_ code: Int32) -> Bool { code == SLUICE_VFS_DAMAGED || code == SLUICE_VFS_FOREIGN }

    /// A file that is not as it was written, or was not written by this library.
    private static func damage(_ code: Int32, _ doing: String) -> SluiceError {
        var offset: Int64 = 0
        let file = sluice_vfs_damage(&offset).map { String(cString: $0) } ?? ""
        if code == SLUICE_VFS_FOREIGN {
            return SluiceError(
                .replicaCorrupt, "\(file) is a database without page sums: another program made it, or a release before page sums.",
                fix: """
                    Move it away and open anew: a synced Realm is downloaded afresh. Carry the objects of a local one over with the \
                    release that wrote it.
                    """)
        }
        let mark = file + SLUICE_VFS_MARK_ENDING
        // Without its mark the log ends where the damage begins.
        let rest = file.hasSuffix("-wal") ? " Or delete \(mark) to open the state before the damage: what was committed later is lost." : ""
        return SluiceError(
            .replicaCorrupt, "The file \(file) is damaged: from byte \(offset) on it is not what was written (while \(doing)).",
            fix: ErrorCode.replicaCorrupt.fix + rest)
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
