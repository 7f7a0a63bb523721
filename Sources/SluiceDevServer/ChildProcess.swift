import CSluiceSpawn
import Dispatch
import SluiceCore
import SluicePostgres
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A child process, watched by a thread of its own until it ends.
///
/// That thread is also the child's parent for Linux's parent-death signal, which fires when the creating *thread* ends. It must
/// live as long as the child, unlike the threads of a pool.
final class ChildProcess: Sendable {
    /// The program with its arguments, its environment, and the file to which its output is appended.
    struct Command: Sendable {
        var arguments: [String]
        var environment: [String]
        var logPath: String
    }

    private struct State {
        var identifier: pid_t = 0
        /// The wait status; nil while the child runs.
        var status: Int32?
        var waiters: [UInt64: CheckedContinuation<Int32?, Never>] = [:]
        var nextWaiter: UInt64 = 0
    }

    private let state = Mutex(State())

    private init() {}

    /// Starts the program.
    ///
    /// - Throws: `internalError` with the program and the system's reason.
    static func start(_ command: Command) async throws -> ChildProcess {
        let child = ChildProcess()
        try await withCheckedThrowingContinuation { (started: CheckedContinuation<Void, any Error>) in
            let box = unsafe Unmanaged.passRetained(ChildOrder(child: child, command: command, started: started))
            #if canImport(Darwin)
                var thread: pthread_t?
            #else
                var thread = pthread_t()
            #endif
            let failed = unsafe pthread_create(&thread, nil, childThread, box.toOpaque())
            if failed != 0 {
                unsafe box.release()
                started.resume(throwing: PostgresError(.internalError, "No thread could be created for “\(command.arguments[0])”."))
            }
        }
        return child
    }

    var identifier: Int32 { state.withLock(\.identifier) }

    /// The wait status; nil while the child runs.
    var status: Int32? { state.withLock(\.status) }

    /// Sends a signal, unless the child has ended: its process id may belong to another process by then.
    func signal(_ number: Int32) {
        state.withLock { state in
            if state.status == nil, state.identifier > 0 { kill(state.identifier, number) }
        }
    }

    /// Sends a signal to the child's process group, unless the child has ended.
    func signalGroup(_ number: Int32) {
        state.withLock { state in
            if state.status == nil, state.identifier > 0 { kill(-state.identifier, number) }
        }
    }

    /// Waits for the end of the child.
    ///
    /// - Returns: The wait status; nil if the child still runs after the limit.
    func wait(_ limit: Duration) async -> Int32? {
        await withCheckedContinuation { (waiter: CheckedContinuation<Int32?, Never>) in
            let (status, number) = state.withLock { state -> (Int32?, UInt64) in
                state.nextWaiter += 1
                if state.status == nil { state.waiters[state.nextWaiter] = waiter }
                return (state.status, state.nextWaiter)
            }
            if let status { return waiter.resume(returning: status) }
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int(limit.pollMilliseconds))) {
                self.state.withLock { $0.waiters.removeValue(forKey: number) }?.resume(returning: nil)
            }
        }
    }

    fileprivate func run(_ command: Command, _ started: CheckedContinuation<Void, any Error>) {
        let (identifier, problem) = unsafe Spawn.spawn(command)
        guard problem == 0 else {
            let reason = unsafe String(cString: strerror(problem))
            // Without a child `signal` must do nothing, and `wait` must return.
            state.withLock { $0.status = 0 }
            return started.resume(
                throwing: PostgresError(
                    .internalError, "“\(command.arguments[0])” could not be started.", cause: .system(errno: problem, text: reason)))
        }
        state.withLock { $0.identifier = identifier }
        started.resume()
        // Waits without reaping, so that the process id is not reused yet.
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(identifier), &information, Int32(WEXITED) | Int32(WNOWAIT)) < 0, errno == EINTR {}
        // Reaped under the lock, so that `signal` never meets a reused process id.
        let (status, waiters) = state.withLock { state in
            var status: Int32 = 0
            while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
            state.status = status
            defer { state.waiters.removeAll() }
            return (status, Array(state.waiters.values))
        }
        for waiter in waiters { waiter.resume(returning: status) }
    }
}

private final class ChildOrder: Sendable {
    let child: ChildProcess
    let command: ChildProcess.Command
    let started: CheckedContinuation<Void, any Error>

    init(child: ChildProcess, command: ChildProcess.Command, started: CheckedContinuation<Void, any Error>) {
        self.child = child
        self.command = command
        self.started = started
    }

    func run() {
        // Nothing joins the thread.
        pthread_detach(pthread_self())
        child.run(command, started)
    }
}

#if canImport(Darwin)
    private func childThread(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        unsafe Unmanaged<ChildOrder>.fromOpaque(context).takeRetainedValue().run()
        return nil
    }
#else
    private func childThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        if let context = unsafe context { unsafe Unmanaged<ChildOrder>.fromOpaque(context).takeRetainedValue().run() }
        return nil
    }
#endif

/// A `posix_spawn` that resets everything that a child must not inherit.
private enum Spawn {
    /// Starts the program.
    ///
    /// - Returns: The process id, and the error number; 0 if the program was started.
    @unsafe
    static func spawn(_ command: ChildProcess.Command) -> (pid_t, Int32) {
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
            var attributes: posix_spawnattr_t?
        #else
            var actions = unsafe posix_spawn_file_actions_t()
            var attributes = posix_spawnattr_t()
        #endif
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        defer {
            unsafe posix_spawn_file_actions_destroy(&actions)
            unsafe posix_spawnattr_destroy(&attributes)
        }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_addopen(&actions, 1, command.logPath, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        unsafe posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // Not every library marks its sockets as close-on-exec. A server that inherits a listening socket keeps the port.
        #if canImport(Darwin)
            let inheritance = Int32(POSIX_SPAWN_CLOEXEC_DEFAULT)
        #else
            let inheritance: Int32 = 0
            let failure = unsafe sluice_spawn_close_from(&actions, 3)
            guard failure == 0 else { return (0, failure) }
        #endif
        // A process group of its own: Ctrl-C reaches only this process, which then stops the child in order.
        var mask = sigset_t()
        unsafe sigemptyset(&mask)
        unsafe posix_spawnattr_setsigmask(&attributes, &mask)
        for number in [SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGPIPE] { unsafe sigaddset(&mask, number) }
        unsafe posix_spawnattr_setsigdefault(&attributes, &mask)
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP | inheritance
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
        var identifier: pid_t = 0
        let problem = unsafe withCStrings(command.arguments) { arguments in
            unsafe withCStrings(command.environment) { environment in
                unsafe posix_spawn(&identifier, command.arguments[0], &actions, &attributes, arguments, environment)
            }
        }
        return (identifier, problem)
    }

    private static func withCStrings<R>(_ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> R) -> R {
        var copies = unsafe strings.map { unsafe strdup($0) } + [nil]
        defer { unsafe copies.forEach { unsafe free($0) } }
        return unsafe body(&copies)
    }
}
