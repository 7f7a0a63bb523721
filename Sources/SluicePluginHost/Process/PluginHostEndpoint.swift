import CSluiceSandbox
import Glibc
import SluiceCore

/// The other end of a plugin host's socket: a process, or a thread of this process.
struct PluginHostEndpoint {
    private enum Kind {
        case process(pid_t)
        case thread
    }

    /// The end of a host.
    struct End {
        var text: String
        /// `true` if the timer of its calls ended it (`ProcessorWatch`).
        var overran = false
    }

    /// The gateway's end, non-blocking.
    let socket: Int32
    /// The standard output and error of the process, non-blocking; -1 for a thread.
    let output: Int32
    private let kind: Kind

    /// Starts the host of one plugin.
    ///
    /// The calling thread must live as long as the host: the kernel ends the process together with the *thread* that started it.
    /// - Throws: `pluginUnavailable` if the program is missing or no descriptor is left.
    static func start(_ spec: PluginSpec, _ image: PluginImage, executable: String) throws(SluiceError) -> PluginHostEndpoint {
        let pair = try Descriptors.socketPair()
        switch spec.mode {
        case .inProcess:
            Descriptors.makeNonBlocking(pair.0)
            let theirs = pair.1
            // Never closed: its library is never unloaded, and the loader identifies libraries by their paths.
            let library = fcntl(image.descriptor, F_DUPFD_CLOEXEC, 0)
            do throws(SluiceError) {
                try Threads.start { PluginServer(descriptor: theirs, library: library, sandbox: nil).run() }
            } catch {
                Descriptors.close(pair.0, pair.1, library)
                throw error
            }
            return PluginHostEndpoint(socket: pair.0, output: -1, kind: .thread)
        case .process:
            let opened: (output: (Int32, Int32), threads: Int32)
            do { opened = (try Descriptors.socketPair(), try countThreads()) } catch {
                Descriptors.close(pair.0, pair.1)
                throw error
            }
            let (output, threads) = opened
            defer { Descriptors.close(pair.1, output.1, threads) }
            let folder = spec.folder.map { ["--folder", $0] } ?? []
            let arguments = [executable, "--memory-bytes", String(spec.memoryBytes)] + folder + [spec.path]
            do {
                let pid = try Spawn.run(arguments, socket: pair.1, library: image.descriptor, threads: threads, output: output.1)
                Descriptors.makeNonBlocking(pair.0)
                Descriptors.makeNonBlocking(output.0)
                return PluginHostEndpoint(socket: pair.0, output: output.0, kind: .process(pid))
            } catch {
                Descriptors.close(pair.0, output.0)
                throw error
            }
        }
    }

    /// Starts the thread that bounds the threads of a process (`PluginLimits.threads`). It ends with the process, or with the socket.
    /// - Returns: the socket for the process. The caller closes it.
    private static func countThreads() throws(SluiceError) -> Int32 {
        let (ours, theirs) = try Descriptors.socketPair()
        do throws(SluiceError) {
            try Threads.start {
                let asked = sluice_threads_take_over(ours)
                Descriptors.close(ours)
                guard asked >= 0 else { return }
                sluice_threads_count(asked, PluginLimits.threads)
                Descriptors.close(asked)
            }
        } catch {
            Descriptors.close(ours, theirs)
            throw error
        }
        return theirs
    }

    /// Ends the peer and waits for its end. A thread ends by itself once its current call returns.
    /// - Parameter lastWords: Receives the remaining output.
    /// - Returns: the end of the process.
    func end(lastWords: ([UInt8]) -> Void) -> End {
        defer { Descriptors.close(socket, output) }
        guard case .process(let pid) = kind else { return End(text: "its socket was closed") }
        // If the process has ended already, the signal has no effect and its own status remains.
        kill(pid, SIGKILL)
        var status: Int32 = 0
        while unsafe waitpid(pid, &status, 0) < 0, errno == EINTR {}
        // Bounded, because descendants of the plugin might keep writing.
        for _ in 0..<16 {
            guard case .bytes(let bytes) = Descriptors.read(output) else { break }
            lastWords(bytes)
        }
        let signal = status & 0x7F
        if signal == 0 { return End(text: "exit status \((status >> 8) & 0xFF)") }
        return End(text: "signal \(signal) (\(Self.name(ofSignal: signal)))", overran: signal == ProcessorWatch.signal)
    }

    var processID: pid_t? { if case .process(let pid) = kind { pid } else { nil } }

    /// The time used by the thread that runs the hooks; nil in process and for an ended process.
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
