import Foundation
import SluiceCore
import SluiceReplica
import Synchronization
import Testing

/// The program replica-writer as a process of its own.
final class OtherProcess {
    /// What it keeps.
    static let schema = Schema([
        ObjectType(
            name: "Item",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "value", type: .int),
                Property(id: 3, name: "text", type: .string),
            ])
    ])

    private let process = Process()
    private let output = Pipe()
    private let said = Mutex("")

    init(_ arguments: String...) throws {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        process.executableURL = URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent("replica-writer")
        process.arguments = arguments
        process.standardOutput = output
        try process.run()
    }

    deinit { kill() }

    /// The next line that it says; nil when it has ended.
    func line() -> String? {
        while true {
            let line = said.withLock { said -> String? in
                guard let end = said.firstIndex(of: "\n") else { return nil }
                defer { said.removeSubrange(...end) }
                return String(said[..<end])
            }
            if let line { return line }
            let bytes = output.fileHandleForReading.availableData
            if bytes.isEmpty { return nil }
            said.withLock { $0 += String(decoding: bytes, as: UTF8.self) }
        }
    }

    /// Everything else that it said, after its end.
    func rest() -> [String] {
        var lines: [String] = []
        while let line = line() { lines.append(line) }
        return lines
    }

    func kill() { if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) } }

    /// - Returns: its status.
    func wait() -> Int32 {
        process.waitUntilExit()
        return process.terminationStatus
    }
}
