import CSluiceSpawn
import Foundation
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// One of the programs that are built with the tests, as a process of its own: what it prints, and how it ends.
///
/// It starts with no signal blocked or ignored, whatever the test runner has set, and does not outlive the tests.
final class Program: Sendable {
    /// How a process ended.
    enum Ending: Hashable, Sendable {
        case exit(Int32)
        case signal(Int32)
        /// It is still running.
        case none
    }

    private let child = Child()
    private let scratch: URL

    static let folder = URL(
        fileURLWithPath: (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
    ).deletingLastPathComponent()

    /// - Parameters:
    ///   - name: of a program beside the tests, or the path of another.
    ///   - input: what the program reads from its standard input.
    init(_ name: String, _ arguments: [String], environment: [String: String] = [:], input: String = "") throws {
        scratch = FileManager.default.temporaryDirectory.appendingPathComponent("program-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        let (stdin, stderr) = (scratch.appendingPathComponent("stdin"), scratch.appendingPathComponent("stderr"))
        try Data(input.utf8).write(to: stdin)
        let command = ["/usr/bin/setpriv", "--pdeathsig=KILL", URL(fileURLWithPath: name, relativeTo: Self.folder).path] + arguments
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0.key)=\($0.value)" }
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw POSIXError(.EMFILE) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let (reader, writer) = (ends[0], ends[1])
        let started = DispatchSemaphore(value: 0)
        // The kernel ends the child with the thread that made it, so that thread stays until the child is gone.
        Thread.detachNewThread { [child] in
            let identifier = Self.spawn(command, variables, stdin: stdin.path, stdout: writer, stderr: stderr.path)
            close(writer)
            child.change { $0.identifier = identifier }
            started.signal()
            child.reap()
        }
        Thread.detachNewThread { [child] in child.read(reader) }
        started.wait()
        guard child.now.identifier > 0 else { throw POSIXError(.ENOENT) }
    }

    deinit {
        child.signal(SIGKILL)
        try? FileManager.default.removeItem(at: scratch)
    }

    var identifier: Int32 { child.now.identifier }
    var isRunning: Bool { child.now.status == nil }
    /// What it has said on standard error so far.
    var said: String { (try? String(contentsOf: scratch.appendingPathComponent("stderr"), encoding: .utf8)) ?? "" }

    func signal(_ number: Int32) { child.signal(number) }

    /// The next line on standard output; nil when the program has closed it, or says nothing for so long.
    func line(within seconds: Double = 60) async -> String? {
        await child.wait(seconds) { state -> String?? in
            if !state.lines.isEmpty { return state.lines.removeFirst() }
            return state.isClosed ? .some(nil) : nil
        } ?? nil
    }

    /// Every line that is still to come, until the program has closed its output; nil when it does not.
    func remainingLines(within seconds: Double = 60) async -> [String]? {
        await child.wait(seconds) { state in
            guard state.isClosed else { return nil }
            defer { state.lines = [] }
            return state.lines
        }
    }

    /// Waits for the end.
    func end(within seconds: Double = 60) async -> Ending {
        guard let status = await child.wait(seconds, { $0.status }) else { return .none }
        return status & 0x7F == 0 ? .exit(status >> 8 & 0xFF) : .signal(status & 0x7F)
    }

    /// The output of a program that has ended.
    struct Ran {
        var code: Ending
        var out: String
        var err: String
    }

    /// Runs `sluice` to its end.
    static func sluice(_ words: [String]) async throws -> Ran {
        let program = try Program("sluice", words)
        let lines = await program.remainingLines(within: 180) ?? []
        return Ran(code: await program.end(), out: lines.joined(separator: "\n"), err: program.said)
    }

    private static func spawn(_ command: [String], _ environment: [String], stdin: String, stdout: Int32, stderr: String) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, stdin, O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, stdout, 1)
        posix_spawn_file_actions_addopen(&actions, 2, stderr, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        // Nothing else that the tests have open: a pipe's end held here would keep its reader waiting.
        guard sluice_spawn_close_from(&actions, 3) == 0 else { return -1 }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var mask = sigset_t()
        sigemptyset(&mask)
        posix_spawnattr_setsigmask(&attributes, &mask)
        for number in [SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT] { sigaddset(&mask, number) }
        posix_spawnattr_setsigdefault(&attributes, &mask)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var arguments = command.map { strdup($0) } + [nil]
        var variables = environment.map { strdup($0) } + [nil]
        defer { for pointer in arguments + variables { free(pointer) } }
        var identifier: pid_t = 0
        return posix_spawn(&identifier, command[0], &actions, &attributes, &arguments, &variables) == 0 ? identifier : -1
    }
}

/// The process as its two threads see it, one that made it and one that reads it.
private final class Child: Sendable {
    struct State {
        var identifier: pid_t = 0
        var status: Int32?
        /// Printed, and not yet taken.
        var lines: [String] = []
        var isClosed = false
        /// How often anything has changed.
        var changes = 0
        var waiters: [UUID: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = Mutex(State())

    var now: State { state.withLock { $0 } }

    func change(_ body: (inout State) -> Void) {
        let waiters = state.withLock { state in
            body(&state)
            state.changes += 1
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until `look` finds what it looks for.
    func wait<Found: Sendable>(_ seconds: Double, _ look: (inout State) -> Found?) async -> Found? {
        let key = UUID()
        let deadline = ContinuousClock.now + .seconds(seconds)
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { [self] in
            state.withLock { $0.waiters.removeValue(forKey: key) }?.resume()
        }
        while true {
            let (found, seen) = state.withLock { (look(&$0), $0.changes) }
            if let found { return found }
            guard ContinuousClock.now < deadline else { return nil }
            await withCheckedContinuation { (waiter: CheckedContinuation<Void, Never>) in
                let isLate = state.withLock { state in
                    guard state.changes == seen, ContinuousClock.now < deadline else { return true }
                    state.waiters[key] = waiter
                    return false
                }
                if isLate { waiter.resume() }
            }
        }
    }

    func signal(_ number: Int32) {
        state.withLock { state in
            if state.status == nil, state.identifier > 0 { kill(state.identifier, number) }
        }
    }

    /// Waits without reaping first, so that nobody can signal a number that has been given to another process.
    func reap() {
        let identifier = now.identifier
        guard identifier > 0 else { return }
        var information = siginfo_t()
        while waitid(P_PID, id_t(identifier), &information, Int32(WEXITED) | Int32(WNOWAIT)) < 0, errno == EINTR {}
        change { state in
            var status: Int32 = 0
            while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
            state.status = status
        }
    }

    /// Reads lines until nobody can write any more.
    func read(_ descriptor: Int32) {
        var rest: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4_096)
        while case let count = Glibc.read(descriptor, &piece, piece.count), count > 0 {
            rest += piece[..<count]
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: rest[..<end], as: UTF8.self)
                rest.removeFirst(end + 1)
                change { $0.lines.append(line) }
            }
        }
        close(descriptor)
        change { state in
            if !rest.isEmpty { state.lines.append(String(decoding: rest, as: UTF8.self)) }
            state.isClosed = true
        }
    }
}
