import Foundation
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// One of the programs that are built with the tests, as a process of its own: what it prints, and how it ends.
///
/// It starts with no signal blocked or ignored, whatever the test runner has set, and does not outlive the tests.
final class Program: Sendable {
    /// The child as the thread sees that made it.
    private final class Child: Sendable {
        struct State {
            var identifier: pid_t = 0
            var status: Int32?
            var waiters: [UUID: CheckedContinuation<Int32?, Never>] = [:]
        }

        let state = Mutex(State())

        func signal(_ number: Int32) {
            state.withLock { state in
                if state.status == nil, state.identifier > 0 { kill(state.identifier, number) }
            }
        }

        /// Waits without reaping first, so that nobody can signal a number that has been given to another process.
        func reap() {
            let identifier = state.withLock(\.identifier)
            guard identifier > 0 else { return }
            var information = siginfo_t()
            while waitid(P_PID, id_t(identifier), &information, Int32(WEXITED) | Int32(WNOWAIT)) < 0, errno == EINTR {}
            let (status, waiters) = state.withLock { state in
                var status: Int32 = 0
                while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
                state.status = status
                defer { state.waiters = [:] }
                return (status, Array(state.waiters.values))
            }
            for waiter in waiters { waiter.resume(returning: status) }
        }
    }

    /// How a process ended.
    enum Ending: Hashable, Sendable {
        case exit(Int32)
        case signal(Int32)
        /// It is still running.
        case none
    }

    private let child = Child()
    private let lines: AsyncStream<String>
    private let log: URL

    static let folder = URL(
        fileURLWithPath: (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
    ).deletingLastPathComponent()

    /// - Parameter input: what the program reads from its standard input.
    init(_ name: String, _ arguments: [String], environment: [String: String] = [:], input: String = "") throws {
        let scratch = FileManager.default.temporaryDirectory.appendingPathComponent("program-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        log = scratch.appendingPathComponent("stderr")
        let stdin = scratch.appendingPathComponent("stdin")
        try Data(input.utf8).write(to: stdin)
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw POSIXError(.EMFILE) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let (reader, writer) = (ends[0], ends[1])
        let (lines, letters) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingOldest(10_000))
        self.lines = lines
        let command = ["/usr/bin/setpriv", "--pdeathsig=KILL", Self.folder.appendingPathComponent(name).path] + arguments
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0.key)=\($0.value)" }
        let (stderr, input) = (log.path, stdin.path)
        let started = DispatchSemaphore(value: 0)
        // The kernel ends the child with the thread that made it, so that thread stays until the child is gone.
        Thread.detachNewThread { [child] in
            let identifier = Self.spawn(command, variables, stdin: input, stdout: writer, stderr: stderr)
            close(writer)
            child.state.withLock { $0.identifier = identifier }
            started.signal()
            child.reap()
        }
        started.wait()
        guard child.state.withLock(\.identifier) > 0 else {
            close(reader)
            throw POSIXError(.ENOENT)
        }
        Thread.detachNewThread {
            var rest: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 4_096)
            while case let count = read(reader, &piece, piece.count), count > 0 {
                rest += piece[..<count]
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    letters.yield(String(decoding: rest[..<end], as: UTF8.self))
                    rest.removeFirst(end + 1)
                }
            }
            close(reader)
            if !rest.isEmpty { letters.yield(String(decoding: rest, as: UTF8.self)) }
            letters.finish()
        }
    }

    deinit {
        child.signal(SIGKILL)
        try? FileManager.default.removeItem(at: log.deletingLastPathComponent())
    }

    var identifier: Int32 { child.state.withLock(\.identifier) }
    var isRunning: Bool { child.state.withLock { $0.status == nil } }
    /// What it has said on standard error so far.
    var said: String { (try? String(contentsOf: log, encoding: .utf8)) ?? "" }

    func signal(_ number: Int32) { child.signal(number) }

    /// The next line on standard output; nil when the program has closed it, or says nothing for so long.
    func line(within seconds: Double = 60) async -> String? {
        await Self.limited(seconds) { [lines] in
            for await line in lines { return line }
            return nil
        }
    }

    /// Every line that is still to come, until the program has closed its output.
    func remainingLines(within seconds: Double = 60) async -> [String] {
        await Self.limited(seconds) { [lines] in
            var all: [String] = []
            for await line in lines { all.append(line) }
            return all
        } ?? []
    }

    /// Waits for the end.
    func end(within seconds: Double = 60) async -> Ending {
        let status = await withCheckedContinuation { (waiter: CheckedContinuation<Int32?, Never>) in
            let key = UUID()
            let known = child.state.withLock { state -> Int32? in
                if state.status == nil { state.waiters[key] = waiter }
                return state.status
            }
            if let known { return waiter.resume(returning: known) }
            DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { [child] in
                child.state.withLock { $0.waiters.removeValue(forKey: key) }?.resume(returning: nil)
            }
        }
        guard let status else { return .none }
        return status & 0x7F == 0 ? .exit(status >> 8 & 0xFF) : .signal(status & 0x7F)
    }

    private static func spawn(_ command: [String], _ environment: [String], stdin: String, stdout: Int32, stderr: String) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, stdin, O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, stdout, 1)
        posix_spawn_file_actions_addopen(&actions, 2, stderr, O_WRONLY | O_CREAT | O_APPEND, 0o600)
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

    private static func limited<R: Sendable>(_ seconds: Double, _ body: @escaping @Sendable () async -> R?) async -> R? {
        await withTaskGroup(of: R?.self) { group in
            group.addTask { await body() }
            group.addTask {
                try? await Task.sleep(for: .seconds(seconds))
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }
}
