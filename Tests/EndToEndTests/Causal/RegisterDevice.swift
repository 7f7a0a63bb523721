import Foundation
import Synchronization
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// A device of the causal test: the program register-client behind a link that can be cut.
final class RegisterDevice: Sendable {
    enum Fault: String, CaseIterable, Sendable {
        case disconnect, restart, kill, pause, cutBoth, cutToServer, cutToClient
    }

    private let folder: DataFolder
    private let link: FaultyLink
    private let arguments: [String]
    let number: Int
    /// What happened to it, each with the transactions that it had begun by then.
    private let log = Mutex<[String]>([])
    var events: String { "device \(number): " + log.withLock { $0.joined(separator: "; ") } }

    /// - Parameter ports: where gateways of the app are now.
    init(_ number: Int, of app: String, rate: Double, at ports: @escaping @Sendable () -> [Int]) throws {
        self.number = number
        folder = try DataFolder()
        link = try FaultyLink(to: ports)
        arguments = [folder.path, "http://127.0.0.1:\(link.port)", app, "\(number)", "\(rate)"]
    }

    deinit { link.end() }

    private func say(_ control: String) throws {
        try control.write(toFile: folder.path + "/control", atomically: true, encoding: .utf8)
    }

    private func start() throws -> Program { try Program("register-client", arguments) }

    /// Runs until the deadline, with faults of up to ten seconds one after the other. - Returns: the program, healed and running.
    func run(until deadline: ContinuousClock.Instant, _ faults: [Fault], _ random: inout SplitMix64) async throws -> Program {
        var program = try start()
        #expect(await program.line(within: 120) == "ready", "device \(number): \(program.said)")
        while ContinuousClock.now < deadline {
            // The moments and lengths of the faults are what the play draws; nothing is waited for.
            try await Task.sleep(for: .milliseconds(300 + random.below(2_500)))
            let rest = ContinuousClock.now.duration(to: deadline)
            let pause = min(Duration.milliseconds(100 + random.below(9_900)), max(rest, .milliseconds(100)))
            let fault = random.pick(faults)
            note("\(fault) for \(pause)")
            switch fault {
            case .disconnect:
                try say("offline")
                try await Task.sleep(for: pause)
                try say("run")
            case .restart: program = try await restart(program, SIGTERM)
            case .kill: program = try await restart(program, SIGKILL)
            case .pause:
                program.signal(SIGSTOP)
                try await Task.sleep(for: pause)
                program.signal(SIGCONT)
            case .cutBoth: try await cut(.both, pause, &random)
            case .cutToServer: try await cut(.toServer, pause, &random)
            case .cutToClient: try await cut(.toClient, pause, &random)
            }
        }
        return program
    }

    private func note(_ event: String) {
        let transactions = (try? history().last?.number).map { $0 + 1 } ?? 0
        log.withLock { $0.append("\(transactions): \(event)") }
    }

    private func cut(_ directions: FaultyLink.Cut, _ pause: Duration, _ random: inout SplitMix64) async throws {
        let breaks = random.chance(50)
        link.set(directions)
        try await Task.sleep(for: pause)
        if breaks { link.breakConnections() }
        link.set([])
    }

    private func restart(_ program: Program, _ signal: Int32) async throws -> Program {
        program.signal(signal)
        defer { note("began again after it had said: \(program.said)") }
        #expect(await program.end() == .signal(signal), "device \(number): \(program.said)")
        let next = try start()
        #expect(await next.line(within: 120) == "ready", "device \(number): \(next.said)")
        return next
    }

    /// Waits until everything that the device wrote has been taken.
    func upload(_ program: Program) async throws {
        try say("upload")
        #expect(await program.line(within: 120) == "uploaded", "device \(number): \(program.said)")
    }

    /// Waits until the device has everything. - Returns: its registers.
    func download(_ program: Program) async throws -> [Int] {
        try say("download")
        let line = try #require(await program.line(within: 120), "device \(number): \(program.said)")
        return line.split(separator: " ").dropFirst().compactMap { Int($0) }
    }

    func history() throws -> [RegisterTransaction] {
        RegisterTransaction.history(of: number, try String(contentsOfFile: folder.path + "/history", encoding: .utf8))
    }
}
