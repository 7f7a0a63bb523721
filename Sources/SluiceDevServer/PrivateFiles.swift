import FoundationEssentials
import SluiceCore
import SluicePostgres
import SluiceValues

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The folder of a private server, and the commands that work in it.
struct PrivateFiles: Sendable {
    let folder: String
    /// The user that the server runs as; nil for the current user.
    let user: ServerUser?

    var data: String { folder + "/data" }
    /// The folder in which initdb works until it has finished.
    private var unfinished: String { folder + "/data.new" }
    var log: String { folder + "/postgres.log" }
    private var passwordPath: String { folder + "/password" }
    private var gatewayPasswordPath: String { folder + "/gateway-password" }
    private var portPath: String { folder + "/port" }
    private var lockPath: String { data + "/postmaster.pid" }

    /// The size in bytes above which the log is deleted before a start.
    private static let logBound = 16 << 20

    // MARK: Files

    /// The major version that created the data; nil without data.
    var majorVersion: Int? {
        text(data + "/PG_VERSION").flatMap { Int($0.split(whereSeparator: \.isWhitespace).first ?? "") }
    }

    func prepare() throws {
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw PostgresError(.configInvalid, "The folder \(folder) cannot be created.", cause: ErrorCause(error))
        }
        try user?.own(folder)
        if let size = try? FileManager.default.attributesOfItem(atPath: log)[.size] as? Int, size > Self.logBound {
            try? FileManager.default.removeItem(atPath: log)
        }
    }

    /// Removes the remains of an initdb that was stopped.
    func removeUnfinished() throws {
        guard FileManager.default.fileExists(atPath: unfinished) else { return }
        do { try FileManager.default.removeItem(atPath: unfinished) } catch {
            throw PostgresError(.configInvalid, "\(unfinished) cannot be removed.", fix: "Remove it.", cause: ErrorCause(error))
        }
    }

    /// Renames the folder that initdb has filled, in one step: an existing data folder is always complete.
    func finish() throws {
        guard unsafe rename(unfinished, data) == 0 else {
            let number = errno
            throw PostgresError(
                .configInvalid, "\(unfinished) cannot be renamed to \(data).",
                cause: .system(errno: number, text: unsafe String(cString: strerror(number))))
        }
    }

    func makePassword() throws { try makePassword(passwordPath) }

    /// Returns the password of the gateway's role, created on first use.
    func gatewayPassword() throws -> String {
        if !FileManager.default.fileExists(atPath: gatewayPasswordPath) { try makePassword(gatewayPasswordPath) }
        return try password(gatewayPasswordPath)
    }

    private func makePassword(_ path: String) throws {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<18).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard descriptor >= 0 else { throw PostgresError(.configInvalid, "\(path) cannot be written.") }
        defer { close(descriptor) }
        let text = Array((Hex.encode(bytes) + "\n").utf8)
        guard fchmod(descriptor, 0o600) == 0, unsafe write(descriptor, text, text.count) == text.count else {
            throw PostgresError(.configInvalid, "\(path) cannot be written.")
        }
        try user?.own(path)
    }

    /// Returns the superuser's password.
    func password() throws -> String { try password(passwordPath) }

    private func password(_ path: String) throws -> String {
        guard let word = text(path)?.split(whereSeparator: \.isWhitespace).first else {
            throw PostgresError(
                .configInvalid, "\(path) is missing or empty, so the database in \(folder) cannot be opened.",
                fix: "Restore the file, or delete the folder to start with an empty database.")
        }
        return String(word)
    }

    /// The last four lines of the server's log, for errors.
    var lastWords: String {
        guard let text = text(log) else { return "no log" }
        return text.split(separator: "\n").suffix(4).joined(separator: " ")
    }

    private func text(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Removes the lock file of a server that was killed. Its process id may have been reused, and PostgreSQL would never start.
    ///
    /// It waits for a server that is ending, and for the children of a killed one. Each child runs until its next wait and keeps
    /// the shared memory.
    /// - Parameter patience: The maximum wait, within the deadline.
    /// - Throws: `configInvalid` if a server still runs on this data.
    func removeStaleLock(_ deadline: ContinuousClock.Instant, patience: Duration = .seconds(10)) async throws {
        let end = min(deadline, .now + patience)
        while let line = text(lockPath)?.split(separator: "\n").first {
            // The lock file names the main process. Its children are found by their working directory.
            let first = pid_t(line).flatMap { serves($0) ? $0 : nil }
            guard let number = first ?? processes().first(where: serves) else {
                try? FileManager.default.removeItem(atPath: lockPath)
                return
            }
            guard .now < end else {
                throw PostgresError(
                    .configInvalid, "A PostgreSQL server (process \(number)) already runs on \(data).",
                    fix: "Stop it, or use another folder.")
            }
            // The end of a process that is not a child has no portable event.
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Returns `true` if the process is a server of this data: PostgreSQL's working directory is its data folder.
    private func serves(_ number: pid_t) -> Bool {
        guard number > 1, kill(number, 0) == 0 || errno == EPERM else { return false }
        #if os(Linux)
            guard let place = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(number)/cwd") else { return false }
            return place == resolved(data)
        #else
            return true
        #endif
    }

    /// Returns the ids of all processes, if the system has `/proc`.
    private func processes() -> [pid_t] {
        ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { pid_t($0) }
    }

    private func resolved(_ path: String) -> String {
        guard let real = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(real) }
        return unsafe String(cString: real)
    }

    // MARK: Commands

    func initialise(_ binaries: ServerBinaries) -> ChildProcess.Command {
        // On other signals, initdb continues for a while.
        command(
            [
                binaries.initdb, "-D", unfinished, "-U", "sluice", "-E", "UTF8", "--locale=C", "--auth=scram-sha-256",
                "--pwfile=\(passwordPath)",
            ], deathSignal: "SIGKILL")
    }

    func serve(_ binaries: ServerBinaries, port: Int, settings: [String: String]) -> ChildProcess.Command {
        let ours = [
            "wal_level": "logical", "track_commit_timestamp": "on", "listen_addresses": "127.0.0.1", "port": "\(port)",
            "unix_socket_directories": "", "max_replication_slots": "50", "max_wal_senders": "50", "max_connections": "200",
            "max_slot_wal_keep_size": "8GB", "shared_buffers": "128MB", "logging_collector": "off", "log_destination": "stderr",
            "timezone": "UTC", "log_timezone": "UTC", "cluster_name": "sluice",
        ]
        var arguments = [binaries.postgres, "-D", data]
        for (name, value) in ours.merging(settings, uniquingKeysWith: { $1 }).sorted(by: { $0.key < $1.key }) {
            arguments += ["-c", "\(name)=\(value)"]
        }
        return command(arguments, deathSignal: "SIGQUIT")
    }

    /// Returns the command as the unprivileged user, tied to the life of this process.
    private func command(_ arguments: [String], deathSignal: String) -> ChildProcess.Command {
        var wrapped: [String] = []
        #if os(Linux)
            if let setpriv = ["/usr/bin/setpriv", "/bin/setpriv"].first(where: { (path: String) in unsafe access(path, X_OK) == 0 }) {
                wrapped = [setpriv, "--pdeathsig", deathSignal]
                if let user { wrapped += ["--reuid", "\(user.user)", "--regid", "\(user.group)", "--clear-groups"] }
                wrapped.append("--")
            }
        #endif
        return ChildProcess.Command(
            arguments: wrapped + arguments, environment: ["PATH=/usr/bin:/bin", "LC_ALL=C", "HOME=\(folder)"], logPath: log)
    }

    // MARK: The port

    /// Ports that Linux and macOS do not give to outgoing connections. One of those could take the port while the server is not running.
    private static let ports = 10_000..<32_768

    /// Returns the port of the previous run if it is free, so that the address stays; otherwise a random free one.
    func choosePort() throws -> Int {
        let wanted = text(portPath).flatMap { Int($0.split(whereSeparator: \.isWhitespace).first ?? "") }
        var port = wanted.flatMap { freePort($0) }
        for _ in 0..<100 where port == nil { port = freePort(.random(in: Self.ports)) }
        guard let port else { throw PostgresError(.portInUse, "No port is free on 127.0.0.1.") }
        try? "\(port)\n".write(toFile: portPath, atomically: true, encoding: .utf8)
        return port
    }

    private func freePort(_ wanted: Int) -> Int? {
        #if canImport(Glibc)
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // As for the server, a port whose last connections linger is free.
        var yes: Int32 = 1
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(truncatingIfNeeded: wanted).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return unsafe withUnsafeMutablePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                guard unsafe bind(descriptor, generic, length) == 0, unsafe getsockname(descriptor, generic, &length) == 0 else {
                    return nil
                }
                return unsafe Int(UInt16(bigEndian: address.pointee.sin_port))
            }
        }
    }
}
