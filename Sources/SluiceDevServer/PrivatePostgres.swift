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

/// A private PostgreSQL server in a folder, for `sluice dev`, demos and tests.
///
/// It is created on first use, has the settings that Sluice needs, and listens on the loopback interface with a generated password.
///
/// The folder holds `data`, `password` and `gateway-password` (mode 0600), `port` and `postgres.log`. If this process is root, the
/// server runs as an unprivileged user (`ServerUser`). That user then owns the folder and must be able to reach it.
///
/// The server does not outlive this process. On Linux it is started through `setpriv --pdeathsig SIGQUIT`: the kernel stops it when
/// the thread that created it has ended, even by SIGKILL. Elsewhere only `stop` does.
package final class PrivatePostgres: Sendable {
    /// The gateway's connection string for the database. The role owns the database and may replicate, but is no superuser.
    package let conninfo: String
    /// The superuser's connection string for the database, for administration.
    package let administration: String
    package let port: Int
    private let child: ChildProcess

    private init(conninfo: String, administration: String, port: Int, child: ChildProcess) {
        self.conninfo = conninfo
        self.administration = administration
        self.port = port
        self.child = child
    }

    package var processIdentifier: Int { Int(child.identifier) }

    /// `true` if the server process has ended, on its own or by `stop`.
    package var hasEnded: Bool { child.status != nil }

    /// Starts the server. Creates its files and the database first if they are missing.
    ///
    /// - Parameter settings: Additional settings of the server, which override the defaults.
    /// - Throws: `configMissing` without an installed server, `configInvalid` if the folder cannot be used, `postgresUnreachable`
    ///   if the server does not start. That message ends with the last lines of its log.
    package static func start(
        in folder: String, database: String = "sluice", settings: [String: String] = [:], within limit: Duration = .seconds(60)
    ) async throws -> PrivatePostgres {
        let deadline = ContinuousClock.now + limit
        let files = PrivateFiles(folder: folder, user: try ServerUser.unprivileged())
        try files.prepare()
        let binaries = try ServerBinaries.find(majorVersion: files.majorVersion)
        if files.majorVersion == nil { try await initialise(files, binaries, deadline) }
        try await files.removeStaleLock(deadline)
        let password = try files.password()
        var lastProblem: (any Error)?
        // A free port may be taken before the server binds it.
        for _ in 0..<3 {
            let port = try files.choosePort()
            let child = try await ChildProcess.start(files.serve(binaries, port: port, settings: settings))
            let address = "host=127.0.0.1 port=\(port)"
            let server = "\(address) user=sluice password=\(password)"
            do {
                try await waitUntilReady(server, child, files, deadline)
                let role = PrivateRole(server: server, database: database, password: try files.gatewayPassword())
                try await role.prepare(deadline)
                return PrivatePostgres(
                    conninfo: "\(address) \(role.credentials)", administration: "\(server) \(role.place)", port: port, child: child)
            } catch {
                // SIGQUIT ends the server at once, so that the next attempt finds its data unlocked.
                child.signal(SIGQUIT)
                _ = await child.wait(.seconds(5))
                lastProblem = error
                // Only a port that was taken is worth another attempt.
                guard files.lastWords.contains("could not bind") else { throw error }
            }
        }
        throw lastProblem ?? PostgresError(.postgresUnreachable, "PostgreSQL found no free port.")
    }

    /// Stops the server. It rolls back open transactions and flushes its data; after the limit it is killed instead.
    package func stop(within limit: Duration = .seconds(20)) async {
        child.signal(SIGINT)
        if await child.wait(limit) != nil { return }
        child.signal(SIGQUIT)
        if await child.wait(.seconds(5)) != nil { return }
        child.signal(SIGKILL)
        _ = await child.wait(.seconds(5))
    }

    private static func initialise(_ files: PrivateFiles, _ binaries: ServerBinaries, _ deadline: ContinuousClock.Instant) async throws {
        try files.removeUnfinished()
        try files.makePassword()
        let child = try await ChildProcess.start(files.initialise(binaries))
        // initdb has children, so the whole group must end with a cancelled task.
        let ending = await withTaskCancellationHandler {
            await child.wait(deadline - .now)
        } onCancel: {
            child.signalGroup(SIGKILL)
        }
        try Task.checkCancellation()
        guard let status = ending else {
            child.signalGroup(SIGKILL)
            throw PostgresError(.timeout, "initdb did not finish in time in \(files.folder).")
        }
        if status != 0 {
            throw PostgresError(
                .configInvalid, "initdb could not create a database in \(files.folder): \(files.lastWords)",
                fix: "See \(files.log).")
        }
        try files.finish()
    }

    private static func waitUntilReady(
        _ server: String, _ child: ChildProcess, _ files: PrivateFiles, _ deadline: ContinuousClock.Instant
    ) async throws {
        while true {
            if child.status != nil {
                throw PostgresError(
                    .postgresUnreachable, "PostgreSQL in \(files.folder) ended while starting: \(files.lastWords)", fix: "See \(files.log)."
                )
            }
            do {
                let connection = try await PostgresConnection.connect("\(server) dbname=postgres", within: .seconds(5))
                return await connection.close()
            } catch {
                guard .now < deadline else { throw error }
            }
            // Readiness has no event that another process could wait for.
            try await Task.sleep(for: .milliseconds(30))
        }
    }
}
