import Foundation
import Testing

/// Programs that a test runs to their end.
enum Program {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..").standardized

    /// Runs Python, which has Kafka's client, with a text as its standard input.
    /// - Returns: its exit code.
    static func python(_ arguments: [String], _ input: String = "") async throws -> Int32 {
        let program = root.appendingPathComponent(".sluice/python/bin/python")
        try #require(FileManager.default.fileExists(atPath: program.path), "Run dev/setup, which installs the clients for Python.")
        return try await run(program, arguments, input)
    }

    /// - Returns: its exit code.
    static func run(_ program: URL, _ arguments: [String], _ input: String = "") async throws -> Int32 {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(["PYTHONDONTWRITEBYTECODE": "1"]) { $1 }
        let pipe = Pipe()
        process.standardInput = pipe
        let (ends, end) = AsyncStream<Int32>.makeStream(bufferingPolicy: .bufferingNewest(1))
        process.terminationHandler = { end.yield($0.terminationStatus) }
        try process.run()
        try pipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try pipe.fileHandleForWriting.close()
        var ended = ends.makeAsyncIterator()
        return await ended.next() ?? -1
    }
}
