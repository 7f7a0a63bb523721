import FoundationEssentials
import SluiceCore
import SluicePostgres

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The folder of the PostgreSQL server's programs.
struct ServerBinaries {
    let folder: String

    var initdb: String { folder + "/initdb" }
    var postgres: String { folder + "/postgres" }

    /// Finds the programs.
    ///
    /// The folder in the variable `PGBIN` comes first. The usual places follow: the major version that created the data, or without
    /// data the newest one. The last is `PATH`.
    /// - Throws: `configMissing` if none is found, `configInvalid` if `PGBIN` lacks the programs.
    static func find(majorVersion: Int?, environment: [String: String] = ProcessInfo.processInfo.environment) throws -> ServerBinaries {
        if let named = environment["PGBIN"] {
            guard isComplete(named) else {
                throw PostgresError(.configInvalid, "PGBIN is “\(named)”, which has no programs initdb and postgres.")
            }
            return ServerBinaries(folder: named)
        }
        var found: [(version: Int, folder: String)] = []
        for (root, tail) in [
            ("/usr/lib/postgresql", "/bin"), ("/usr/pgsql", "/bin"), ("/opt/homebrew/opt", "/bin"), ("/usr/local/opt", "/bin"),
        ] {
            for name in (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? [] {
                let digits = name.hasPrefix("postgresql@") ? name.dropFirst("postgresql@".count) : name[...]
                guard let version = Int(digits), isComplete("\(root)/\(name)\(tail)") else { continue }
                found.append((version, "\(root)/\(name)\(tail)"))
            }
        }
        if let majorVersion, let match = found.first(where: { $0.version == majorVersion }) { return ServerBinaries(folder: match.folder) }
        if majorVersion == nil, let newest = found.max(by: { $0.version < $1.version }) { return ServerBinaries(folder: newest.folder) }
        for folder in (environment["PATH"] ?? "").split(separator: ":") where isComplete(String(folder)) {
            return ServerBinaries(folder: String(folder))
        }
        throw PostgresError(
            .configMissing, "No PostgreSQL server\(majorVersion.map { " \($0)" } ?? "") is installed.",
            fix: "Install it (apt-get install postgresql), or name the folder of its programs in PGBIN.")
    }

    private static func isComplete(_ folder: String) -> Bool {
        unsafe access(folder + "/initdb", X_OK) == 0 && access(folder + "/postgres", X_OK) == 0
    }
}

/// The user that the server runs as, because PostgreSQL refuses to run as root.
struct ServerUser {
    let name: String
    let user: uid_t
    let group: gid_t

    /// Returns the user; nil if this process is not root, because the server then runs as the same user.
    ///
    /// - Throws: `configMissing` if the system has no suitable user.
    static func unprivileged() throws -> ServerUser? {
        guard geteuid() == 0 else { return nil }
        for name in ["postgres", "nobody"] {
            if let entry = unsafe getpwnam(name) {
                return unsafe ServerUser(name: name, user: entry.pointee.pw_uid, group: entry.pointee.pw_gid)
            }
        }
        throw PostgresError(
            .configMissing, "PostgreSQL does not run as root, and there is no user postgres or nobody to run it as.",
            fix: "Start this program as an ordinary user.")
    }

    /// Makes the user the owner of a file or folder.
    func own(_ path: String) throws {
        guard unsafe chown(path, user, group) == 0 else {
            let number = errno
            throw PostgresError(
                .configInvalid, "\(path) cannot be given to the user \(name).",
                cause: .system(errno: number, text: unsafe String(cString: strerror(number))))
        }
    }
}
