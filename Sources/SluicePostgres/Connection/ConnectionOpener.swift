import CLibPQ
import SluiceCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Opens connections with a deadline.
enum ConnectionOpener {
    /// Opens a connection. Blocks the calling thread until it is ready or the limit has passed.
    ///
    /// - Returns: The connection, owned by the caller, and its name for errors.
    /// - Throws: `postgresUnreachable`, or `configInvalid` for a malformed string.
    static func open(_ conninfo: String, replication: Bool, within limit: Duration) throws -> (OpaquePointer, String) {
        let name = try name(of: conninfo)
        // The connection string may override entries before `dbname`, but not those after it.
        var entries = [
            ("fallback_application_name", "sluice"), ("keepalives_idle", "30"), ("keepalives_interval", "10"),
            ("keepalives_count", "3"), ("tcp_user_timeout", "60000"), ("dbname", conninfo), ("client_encoding", "UTF8"),
        ]
        if replication { entries.append(("replication", "database")) }
        let handle = unsafe withCStrings(entries.map(\.0)) { keywords in
            unsafe withCStrings(entries.map(\.1)) { values in unsafe PQconnectStartParams(keywords, values, 1) }
        }
        guard let handle = unsafe handle else { throw PostgresError(.postgresUnreachable, "libpq has no memory for a connection.") }
        do {
            // Without it, libpq tells no SQLSTATE of a refused connection.
            _ = unsafe PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
            try unsafe finish(handle, name, .now + limit)
            _ = unsafe PQsetErrorVerbosity(handle, PQERRORS_DEFAULT)
            return unsafe (handle, name)
        } catch {
            unsafe PQfinish(handle)
            throw error
        }
    }

    private static func finish(_ handle: OpaquePointer, _ name: String, _ deadline: ContinuousClock.Instant) throws {
        // libpq connects in steps. Each step states the direction in which the socket must be ready for the next.
        var status = PGRES_POLLING_WRITING
        while status != PGRES_POLLING_OK {
            if unsafe status == PGRES_POLLING_FAILED || PQstatus(handle) == CONNECTION_BAD { throw unsafe failure(handle, name) }
            let events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT
            do {
                try unsafe SocketWait.wait(PQsocket(handle), Int16(events), until: deadline)
            } catch let error as PostgresError where error.code == .timeout {
                throw PostgresError(.postgresUnreachable, "\(name) did not answer in time.")
            } catch {
                throw unsafe failure(handle, name)
            }
            status = unsafe PQconnectPoll(handle)
        }
    }

    private static func failure(_ handle: OpaquePointer, _ name: String) -> PostgresError {
        let (state, reason) = unsafe refusal(String(cString: PQerrorMessage(handle)))
        var error = PostgresError(
            .postgresUnreachable, "Connecting to \(name) failed.", cause: .postgres(sqlState: state, text: reason.shortened))
        error.sqlState = state
        return error
    }

    /// Takes the SQLSTATE out of a verbose message, and the places in the server's source. There is no state if no server answered.
    ///
    /// `… failed: FATAL:  3D000: database "a" does not exist`
    static func refusal(_ message: String) -> (state: String?, reason: String) {
        var state: String?
        var lines: [String] = []
        for line in message.split(separator: "\n") where !line.hasPrefix("LOCATION:") {
            var parts = line.split(separator: ": ", omittingEmptySubsequences: false)
            if let place = parts.firstIndex(where: { isState($0.drop { $0 == " " }) }) {
                state = state ?? String(parts[place].drop { $0 == " " })
                parts.remove(at: place)
            }
            lines.append(parts.joined(separator: ": "))
        }
        return (state, lines.joined(separator: "\n"))
    }

    private static func isState(_ text: Substring) -> Bool {
        text.utf8.count == 5 && text.contains { ("0"..."9").contains($0) }
            && text.allSatisfy { ("0"..."9").contains($0) || ("A"..."Z").contains($0) }
    }

    /// Returns `host:port/database` of a connection string, without its secrets.
    private static func name(of conninfo: String) throws -> String {
        var message: UnsafeMutablePointer<CChar>?
        guard let options = unsafe PQconninfoParse(conninfo, &message) else {
            let reason = unsafe message.map { unsafe String(cString: $0).shortened } ?? "out of memory"
            unsafe PQfreemem(message)
            throw PostgresError(
                .configInvalid, "The PostgreSQL connection string cannot be read.",
                fix: "Use the form “host=… port=5432 dbname=… user=… password=…” or “postgresql://user@host/dbname”.",
                cause: .postgres(sqlState: nil, text: reason))
        }
        defer { unsafe PQconninfoFree(options) }
        var found: [String: String] = [:]
        var option = unsafe options
        while let keyword = unsafe option.pointee.keyword {
            if let value = unsafe option.pointee.val { unsafe found[String(cString: keyword)] = unsafe String(cString: value) }
            unsafe option += 1
        }
        let host = found["host"] ?? found["hostaddr"] ?? "local"
        return "\(host):\(found["port"] ?? "5432")/\(found["dbname"] ?? found["user"] ?? "")"
    }

    private static func withCStrings<R>(_ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> R) -> R {
        let copies = unsafe strings.map { unsafe UnsafePointer(strdup($0)) } + [nil]
        defer { unsafe copies.forEach { unsafe free(UnsafeMutablePointer(mutating: $0)) } }
        return unsafe copies.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
    }
}
