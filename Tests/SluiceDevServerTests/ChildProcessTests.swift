import Foundation
import Testing

@testable import SluiceDevServer

@Suite(.timeLimit(.minutes(1))) struct `A child process` {
    @Test func `inherits no descriptor, also none that is not marked as close-on-exec`() async throws {
        let log = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-child-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: log) }
        let inheritable = fcntl(0, F_DUPFD, 200)
        defer { close(inheritable) }
        try #require(inheritable >= 200 && fcntl(inheritable, F_GETFD) == 0)
        let child = try await ChildProcess.start(.init(arguments: ["/bin/ls", "/proc/self/fd"], environment: [], logPath: log.path))
        #expect(await child.wait(.seconds(30)) == 0)
        let descriptors = Set(try String(contentsOf: log, encoding: .utf8).split(separator: "\n").compactMap { Int32($0) })
        #expect(descriptors.isSuperset(of: [0, 1, 2]) && descriptors.allSatisfy { $0 <= 3 }, "\(descriptors)")
    }
}
