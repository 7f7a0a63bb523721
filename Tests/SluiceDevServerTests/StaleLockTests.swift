import Foundation
import SluiceCore
import SluicePostgres
import Testing

@testable import SluiceDevServer

@Suite(.timeLimit(.minutes(1))) struct `A folder that another server works in` {
    @Test func `is waited for no longer than the bound, whatever the deadline`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-lock-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let data = folder.appendingPathComponent("data")
        try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
        // A server is known by its working directory.
        let server = Process()
        server.executableURL = URL(fileURLWithPath: "/bin/sleep")
        server.arguments = ["60"]
        server.currentDirectoryURL = data
        try server.run()
        defer { server.terminate() }
        try "\(server.processIdentifier)\n".write(to: data.appendingPathComponent("postmaster.pid"), atomically: true, encoding: .utf8)
        let files = PrivateFiles(folder: folder.path, user: nil)
        let error = await #expect(throws: PostgresError.self) {
            try await files.removeStaleLock(.now + .seconds(600), patience: .milliseconds(300))
        }
        #expect(error?.code == .configInvalid && error?.message.contains("\(server.processIdentifier)") == true)
    }
}
