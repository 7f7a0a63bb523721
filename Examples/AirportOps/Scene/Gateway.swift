import Foundation

/// A gateway in its own process, started with `sluice serve`.
final class Gateway {
    let process: Process
    let url: String
    let adminURL: String
    let port: Int

    private init(process: Process, ready: Ready) {
        self.process = process
        url = ready.url
        adminURL = ready.admin_url
        port = Int(ready.url.split(separator: ":").last ?? "") ?? 0
    }

    private struct Ready: Decodable {
        var url: String
        var admin_url: String
    }

    /// Starts a gateway and waits until it is ready.
    /// - Parameter port: The port, or 0 for any free one.
    static func start(_ setup: SceneSetup, port: Int = 0) async throws -> Gateway {
        let process = Process()
        // The kernel ends the gateway with this process, also if this process crashes.
        process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
        process.arguments =
            [
                "--pdeathsig=TERM", "\(setup.binaries)/sluice", "serve", "--app", setup.app, "--postgres", setup.postgres,
                "--kafka", setup.kafka, "--port", "\(port)", "--admin-port", "0", "--json",
            ]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = setup.log
        process.standardInput = FileHandle.nullDevice
        try await run(process)
        let line = await firstLine(of: output.fileHandleForReading)
        guard let line, let ready = try? JSONDecoder().decode(Ready.self, from: line) else {
            process.terminate()
            throw SceneFailure("The gateway did not start: \(setup.lastFault ?? "it wrote no line"). See \(setup.logPath).")
        }
        return Gateway(process: process, ready: ready)
    }

    /// Starts a process on a thread that lives as long as it. The kernel ends the process when that thread ends.
    private static func run(_ process: Process) async throws {
        try await withCheckedThrowingContinuation { (started: CheckedContinuation<Void, any Error>) in
            Thread.detachNewThread {
                do {
                    try process.run()
                    started.resume()
                    process.waitUntilExit()
                } catch {
                    started.resume(throwing: error)
                }
            }
        }
    }

    /// Returns the first line that a process prints, or nil if it ends before.
    private static func firstLine(of handle: FileHandle) async -> Data? {
        await withCheckedContinuation { continuation in
            // A thread of its own, because reading blocks.
            Thread.detachNewThread {
                var line = Data()
                while let byte = try? handle.read(upToCount: 1), !byte.isEmpty {
                    if byte.first == UInt8(ascii: "\n") { break }
                    line += byte
                }
                continuation.resume(returning: line.isEmpty ? nil : line)
            }
        }
    }

    /// Ends the gateway as a power cut would, without a close or a flush.
    func kill() {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    func stop() {
        guard process.isRunning else { return }
        process.terminate()
        process.waitUntilExit()
    }
}

/// A failure of a step, described in one sentence.
public struct SceneFailure: Error, CustomStringConvertible {
    public let description: String
    init(_ description: String) { self.description = description }
}
