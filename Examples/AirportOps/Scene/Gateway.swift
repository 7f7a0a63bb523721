import Foundation

/// A gateway as a process of its own, started with `sluice serve`.
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
    /// - Parameter port: 0 is any free one.
    static func start(_ setup: SceneSetup, port: Int = 0) async throws -> Gateway {
        let process = Process()
        // It ends with this process, however that ends.
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

    /// Starts a process from a thread that lives as long as it: the kernel ends the process when that thread is gone.
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

    /// The first line that a process prints, or nil when it ends before.
    private static func firstLine(of handle: FileHandle) async -> Data? {
        await withCheckedContinuation { continuation in
            // A thread of its own: reading blocks.
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

    /// As a power cut would: no goodbye, nothing flushed.
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

/// What went wrong in a step, in one sentence.
public struct SceneFailure: Error, CustomStringConvertible {
    public let description: String
    init(_ description: String) { self.description = description }
}
