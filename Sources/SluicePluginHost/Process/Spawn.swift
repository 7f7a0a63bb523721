import Glibc
import SluiceCore

/// Starts programs.
enum Spawn {
    /// The variables of the gateway's environment that a plugin's process inherits. Secrets are not among them.
    private static let inherited = [
        "PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SWIFT_BACKTRACE", "ASAN_OPTIONS",
    ]

    /// Starts a program in a process group of its own, with default signals.
    /// Its descriptor 3 is `socket`, 4 is `library`, 5 is `threads`, and its standard output and error are `output`. The program closes
    /// other inherited descriptors (`PluginHostMain`).
    /// - Throws: `pluginUnavailable`, with the program's path.
    static func run(
        _ arguments: [String], socket: Int32, library: Int32, threads: Int32, output: Int32
    ) throws(SluiceError) -> pid_t {
        // Duplicate to high numbers first, so that no dup2 overwrites the source of another.
        let sources = (
            fcntl(socket, F_DUPFD_CLOEXEC, 16), fcntl(output, F_DUPFD_CLOEXEC, 16), fcntl(library, F_DUPFD_CLOEXEC, 16),
            fcntl(threads, F_DUPFD_CLOEXEC, 16)
        )
        defer { Descriptors.close(sources.0, sources.1, sources.2, sources.3) }
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_adddup2(&actions, sources.1, 1)
        unsafe posix_spawn_file_actions_adddup2(&actions, sources.1, 2)
        unsafe posix_spawn_file_actions_adddup2(&actions, sources.0, 3)
        unsafe posix_spawn_file_actions_adddup2(&actions, sources.2, 4)
        unsafe posix_spawn_file_actions_adddup2(&actions, sources.3, 5)
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        var all = sigset_t()
        unsafe sigemptyset(&none)
        unsafe sigfillset(&all)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setsigdefault(&attributes, &all)
        // A group of its own: Ctrl-C in a terminal reaches only the gateway, which then ends the program.
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
        var pid: pid_t = 0
        let result = unsafe withStrings(arguments) { argv in
            unsafe withStrings(environment()) { environ in
                unsafe posix_spawn(&pid, arguments[0], &actions, &attributes, argv, environ)
            }
        }
        guard result == 0 else {
            throw SluiceError(
                .pluginUnavailable, "the plugin host \(arguments[0]) cannot be started",
                fix: "Install sluice-plugin-host beside sluice.", cause: Descriptors.cause(result))
        }
        return pid
    }

    private static func environment() -> [String] {
        var variables: [String] = []
        for name in inherited {
            if let value = unsafe getenv(name) { variables.append("\(name)=\(unsafe String(cString: value))") }
        }
        // The runtime's backtraces take seconds, so a crash would look like a hang.
        if unsafe getenv("SWIFT_BACKTRACE") == nil { variables.append("SWIFT_BACKTRACE=enable=no") }
        return variables
    }

    /// Calls `body` with the strings as a null-terminated array of C strings.
    private static func withStrings<R>(_ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> R) -> R {
        var pointers = unsafe strings.map { unsafe strdup($0) }
        defer { unsafe pointers.forEach { unsafe free($0) } }
        unsafe pointers.append(nil)
        return unsafe pointers.withUnsafeBufferPointer { unsafe body($0.baseAddress!) }
    }
}
