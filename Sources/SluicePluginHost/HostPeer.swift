import Glibc
import SluiceCore

/// The other end of a plugin host's socket: a process, or a thread of this one.
struct HostPeer {
    private enum Kind {
        case process(pid_t)
        case thread
    }

    /// How a host ended.
    struct End {
        var text: String
        /// It was ended by the timer of its calls (`ProcessorWatch`).
        var overran = false
    }

    /// Our end, non-blocking.
    let socket: Int32
    /// What the process writes to standard output and error, non-blocking; -1 for a thread.
    let output: Int32
    private let kind: Kind

    /// Starts the host of one plugin.
    ///
    /// Must be called on a thread that lives as long as the host: the kernel ends the process with the *thread* that
    /// started it.
    /// - Throws: `pluginUnavailable` when there is no such program or no descriptor left.
    static func start(_ spec: PluginSpec, _ image: PluginImage, executable: String) throws(SluiceError) -> HostPeer {
        let pair = try Descriptors.socketPair()
        switch spec.mode {
        case .inProcess:
            Descriptors.makeNonBlocking(pair.0)
            let theirs = pair.1
            // Never closed: the library that is loaded from it is never unloaded, and the loader tells libraries by their paths.
            let library = fcntl(image.descriptor, F_DUPFD_CLOEXEC, 0)
            do throws(SluiceError) {
                try Threads.start { PluginServer(descriptor: theirs, library: library, sandbox: nil).run() }
            } catch {
                Descriptors.close(pair.0, pair.1, library)
                throw error
            }
            return HostPeer(socket: pair.0, output: -1, kind: .thread)
        case .process:
            let output: (ours: Int32, theirs: Int32)
            do { output = try Descriptors.socketPair() } catch {
                Descriptors.close(pair.0, pair.1)
                throw error
            }
            defer { Descriptors.close(pair.1, output.theirs) }
            let folder = spec.folder.map { ["--folder", $0] } ?? []
            let arguments = [executable, "--memory-bytes", String(spec.memoryBytes)] + folder + [spec.path]
            do {
                let pid = try Spawn.run(arguments, socket: pair.1, library: image.descriptor, output: output.theirs)
                Descriptors.makeNonBlocking(pair.0)
                Descriptors.makeNonBlocking(output.ours)
                return HostPeer(socket: pair.0, output: output.ours, kind: .process(pid))
            } catch {
                Descriptors.close(pair.0, output.ours)
                throw error
            }
        }
    }

    /// Ends the peer and waits for its end. A thread ends by itself when the call it is in returns.
    /// - Parameter lastWords: gets what is left in the output.
    /// - Returns: how the process ended.
    func end(lastWords: ([UInt8]) -> Void) -> End {
        defer { Descriptors.close(socket, output) }
        guard case .process(let pid) = kind else { return End(text: "its socket was closed") }
        // A process that has ended already is not touched by the signal: its own status stays.
        kill(pid, SIGKILL)
        var status: Int32 = 0
        while unsafe waitpid(pid, &status, 0) < 0, errno == EINTR {}
        // Bounded: descendants of the plugin might go on writing.
        for _ in 0..<16 {
            guard case .bytes(let bytes) = Descriptors.read(output) else { break }
            lastWords(bytes)
        }
        let signal = status & 0x7F
        if signal == 0 { return End(text: "exit status \((status >> 8) & 0xFF)") }
        return End(text: "signal \(signal) (\(Self.name(ofSignal: signal)))", overran: signal == ProcessorWatch.signal)
    }

    var processID: pid_t? { if case .process(let pid) = kind { pid } else { nil } }

    /// How the thread that the hooks are called on has used its time.
    var use: ThreadUse? { processID.flatMap { ThreadUse(of: $0) } }

    private static func name(ofSignal signal: Int32) -> String {
        switch signal {
        case SIGSEGV: "segmentation fault"
        case SIGABRT: "abort"
        case SIGILL: "illegal instruction: a trap"
        case SIGTRAP: "a trap"
        case SIGBUS: "bus error"
        case SIGFPE: "arithmetic error"
        case SIGKILL: "killed"
        case SIGXCPU: "its processor time was used up"
        default: "see signal(7)"
        }
    }
}
