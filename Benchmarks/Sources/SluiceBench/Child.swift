import Foundation

/// A child process. Its output is read line by line, its log goes to a file, and it can be paused.
final class Child {
    private let process: Process
    private var lines: AsyncStream<String>.AsyncIterator
    let name: String
    private let input: FileHandle

    init(_ program: String, _ arguments: [String], log: FileHandle, environment: [String: String] = [:]) throws {
        name = URL(fileURLWithPath: program).lastPathComponent
        process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let (output, input) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = log
        process.standardInput = input
        self.input = input.fileHandleForWriting
        let (stream, continuation) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingOldest(1_000_000))
        lines = stream.makeAsyncIterator()
        try process.run()
        let reading = output.fileHandleForReading
        // A thread of its own, because reading blocks.
        Thread.detachNewThread {
            var rest = Data()
            while true {
                guard let data = reading.nextBytes() else { break }
                rest += data
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    continuation.yield(String(decoding: rest[rest.startIndex..<end], as: UTF8.self))
                    rest = Data(rest[rest.index(after: end)...])
                }
            }
            continuation.finish()
        }
    }

    deinit { stop() }

    var identifier: Int32 { process.processIdentifier }

    /// Returns the next line of the process's output.
    func line() async throws -> String {
        guard let line = await lines.next(isolation: #isolation) else { throw BenchFailure("\(name) ended early.") }
        return line
    }

    func write(_ text: String) { input.write(Data(text.utf8)) }

    /// Stops the process with SIGSTOP until `go`.
    func pause() { kill(identifier, SIGSTOP) }
    func go() { kill(identifier, SIGCONT) }

    /// Waits for the end of the process on another thread.
    /// - Returns: The exit status.
    func end() async -> Int32 {
        let process = Unchecked(process)
        return await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                process.value.waitUntilExit()
                continuation.resume(returning: process.value.terminationStatus)
            }
        }
    }

    func stop() {
        guard process.isRunning else { return }
        go()
        process.terminate()
        // No event of the process's end is available here.
        let deadline = seconds() + 8
        while process.isRunning, seconds() < deadline { usleep(20_000) }
        if process.isRunning { kill(identifier, SIGKILL) }
    }

    /// The processor time so far in user and system mode, in seconds.
    var cpuSeconds: Double {
        guard let stat = try? String(contentsOfFile: "/proc/\(identifier)/stat", encoding: .utf8),
            let fields = stat.split(separator: ")").last?.split(separator: " "), fields.count > 12
        else { return .nan }
        return ((Double(fields[11]) ?? 0) + (Double(fields[12]) ?? 0)) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// The resident memory, in MiB.
    var residentMegabytes: Double {
        guard let status = try? String(contentsOfFile: "/proc/\(identifier)/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
            let number = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({ Double($0) })
        else { return .nan }
        return number / 1_024
    }
}

/// Passes a value to another thread, which becomes its only user.
struct Unchecked<Value>: @unchecked Sendable {  // Sendable because: the creator gives the value away.
    let value: Value
    init(_ value: Value) { self.value = value }
}

extension FileHandle {
    /// Waits for the next bytes and returns them, or nil at the end. `availableData` would end the process at an interrupted read.
    func nextBytes() -> Data? {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = readSome(fileDescriptor, &bytes, bytes.count)
            if count > 0 { return Data(bytes[..<count]) }
            if count == 0 || errno != EINTR { return nil }
        }
    }
}

/// Calls `read`. Inside `FileHandle` that name is another function.
private func readSome(_ descriptor: Int32, _ bytes: UnsafeMutableRawPointer, _ count: Int) -> Int { read(descriptor, bytes, count) }
