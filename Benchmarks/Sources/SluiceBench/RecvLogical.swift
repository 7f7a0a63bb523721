import Foundation
import Synchronization

/// PostgreSQL's own reader of a slot, which does the minimum of a reader's work.
final class RecvLogical: Sendable {
    private let process: Unchecked<Process>
    private let times = Mutex<[Int: Double]>([:])

    /// Runs `pg_recvlogical` with a pipe and records the time at which it prints each `n=<number>;`.
    init(_ setup: Setup, _ conninfo: String, slot: String, publication: String) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try setup.postgresProgram("pg_recvlogical"))
        process.arguments = Self.arguments(conninfo, slot, publication) + ["--no-loop", "--file", "-"]
        process.standardError = try setup.log("pg_recvlogical")
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        self.process = Unchecked(process)
        let reading = pipe.fileHandleForReading
        Thread.detachNewThread { [weak self] in
            while true {
                guard let data = reading.nextBytes(), let self else { return }
                self.note(data, seconds())
            }
        }
    }

    static func arguments(_ conninfo: String, _ slot: String, _ publication: String) -> [String] {
        [
            "--dbname", conninfo, "--slot", slot, "--start", "--option", "proto_version=1", "--option", "publication_names=\(publication)",
            "--status-interval", "1",
        ]
    }

    /// Reads everything up to an LSN to /dev/null.
    /// - Returns: The duration in seconds.
    static func drain(_ setup: Setup, _ conninfo: String, slot: String, publication: String, to end: String) async throws -> Double {
        let child = try Child(
            setup.postgresProgram("pg_recvlogical"),
            arguments(conninfo, slot, publication) + ["--no-loop", "--endpos", end, "--file", "/dev/null"], log: setup.log("pg_recvlogical")
        )
        let begin = seconds()
        let status = await child.end()
        guard status == 0 else { throw BenchFailure("pg_recvlogical ended with status \(status).") }
        return seconds() - begin
    }

    private func note(_ data: Data, _ now: Double) {
        let bytes = [UInt8](data)
        var index = 0
        while let start = bytes[index...].firstIndex(of: UInt8(ascii: "n")) {
            index = start + 1
            guard index < bytes.count, bytes[index] == UInt8(ascii: "=") else { continue }
            let digits = bytes[(index + 1)...].prefix { (48...57).contains($0) }
            guard digits.endIndex < bytes.count, bytes[digits.endIndex] == UInt8(ascii: ";"),
                let number = Int(String(decoding: digits, as: UTF8.self))
            else { continue }
            times.withLock { if $0[number] == nil { $0[number] = now } }
        }
    }

    var seen: [Int: Double] { times.withLock { $0 } }

    @MainActor
    func saw(_ number: Int) async throws { try await until("pg_recvlogical sees write \(number)") { seen[number] != nil } }

    func stop() { process.value.terminate() }
}
