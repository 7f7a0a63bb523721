import Foundation
import SluiceDevServer
import Synchronization
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// A PostgreSQL of one test, which may kill it: the one of `dev/with-servers` is everybody's. It waits for the disk as the default has it.
final class TestDatabaseServer: Sendable {
    /// Who gets SIGKILL.
    enum Death: String, CaseIterable, Sendable {
        /// The server's first process alone: the others see that, each as soon as it waits for something.
        case first
        /// All of them at one moment, as in a power cut.
        case all
    }

    private let folder: DataFolder
    private let server: Mutex<PrivatePostgres>
    /// A superuser's connection string.
    let conninfo: String

    static func with(_ body: (TestDatabaseServer) async throws -> Void) async throws {
        let folder = try DataFolder()
        let server = TestDatabaseServer(folder, try await start(folder))
        do {
            try await body(server)
        } catch {
            await server.current.stop(within: .zero)
            throw error
        }
        await server.current.stop(within: .zero)
    }

    private init(_ folder: DataFolder, _ first: PrivatePostgres) {
        self.folder = folder
        server = Mutex(first)
        conninfo = first.administration
    }

    private static func start(_ folder: DataFolder) async throws -> PrivatePostgres {
        try await PrivatePostgres.start(in: folder.path + "/postgres")
    }

    private var current: PrivatePostgres { server.withLock { $0 } }

    func kill(_ death: Death) async throws {
        let server = current
        try #require(!server.hasEnded, "PostgreSQL has ended by itself.")
        let first = pid_t(server.processIdentifier)
        if death == .all {
            // While it is stopped it reaps nobody, so that no number can become another process's.
            signal(first, SIGSTOP)
            try #require(try await eventually(every: .milliseconds(1)) { ProcessState.isStopped(first) })
            for child in ProcessState.children(of: first) { signal(child.id, SIGKILL) }
        }
        signal(first, SIGKILL)
        await server.stop()
    }

    private func signal(_ process: pid_t, _ number: Int32) { _ = Glibc.kill(process, number) }

    /// Has it recover what it had, and answer again where it did.
    func restart() async throws {
        let next = try await Self.start(folder)
        let isSame = next.administration == conninfo
        server.withLock { $0 = next }
        try #require(isSame, "Somebody else has taken PostgreSQL's port.")
    }
}
