import Foundation
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// A broker of one test, which may stop it: the one of `dev/with-servers` is everybody's.
final class TestBroker: Sendable {
    let address: String
    private let port: Int
    private let program: Program
    private let folder: DataFolder

    private static let executable = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../.sluice/broker/noida-db").standardized.path

    static func start() async throws -> TestBroker {
        for _ in 0..<3 {
            let broker = try TestBroker(port: try LocalSocket.portToComeBackTo())
            if try await broker.answers() { return broker }
            await broker.end()
        }
        throw Failure(what: "The development broker does not start.")
    }

    private init(port: Int) throws {
        self.port = port
        address = "127.0.0.1:\(port)"
        folder = try DataFolder()
        let arguments = ["start", "--only", "kafka", "--host", "127.0.0.1", "--kafka-port", "\(port)", "--data-dir", folder.path]
        program = try Program(Self.executable, arguments)
    }

    /// It says nothing more, and its connections stay open.
    func pause() { program.signal(SIGSTOP) }
    func resume() { program.signal(SIGCONT) }

    /// By the broker's own commands, which close its port before they save: on SIGTERM it goes on acknowledging records after it has
    /// saved them for the last time, and those are lost.
    func restart() async throws {
        for command in ["stop", "start"] {
            let program = try Program(Self.executable, [command, "kafka", "--data-dir", folder.path])
            let ending = await program.end()
            try #require(ending == .exit(0), "\(command): \(ending), \(program.said)")
            if command == "stop" { try #require(try await eventually { isFree(port: port) }, "\(port) is in use after a stop") }
        }
        guard try await answers() else { throw Failure(what: "The broker did not come back: \(program.said)") }
    }

    func end() async {
        resume()
        program.signal(SIGTERM)
        if await program.end(within: 20) == .none { program.signal(SIGKILL) }
    }

    struct Failure: Error { var what: String }

    /// Waits until the broker listens.
    ///
    /// - Returns: `false` if it has ended, or does not listen within half a minute.
    private func answers() async throws -> Bool {
        try await eventually(within: .seconds(30)) { !program.isRunning || !isFree(port: port) } && program.isRunning
    }
}
