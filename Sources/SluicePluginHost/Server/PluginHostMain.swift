import CSluiceSandbox
import Glibc

/// The program `sluice-plugin-host`. It hosts the plugin of its descriptor 4 and talks to the gateway on descriptor 3.
package enum PluginHostMain {
    /// Serves until the gateway closes the socket or dies.
    package static func run() {
        guard fcntl(3, F_GETFD) >= 0, fcntl(4, F_GETFD) >= 0 else {
            print("sluice-plugin-host is started by the gateway. It has no other use.")
            exit(64)
        }
        sluice_end_with_parent()
        let isCounted = sluice_threads_hand_over(5) == 0
        // Close inherited descriptors that lack the close-on-exec flag.
        sluice_close_from(5)
        limit(RLIMIT_CORE, to: 0)
        let bytes = option("--memory-bytes").flatMap { UInt64($0) } ?? 0
        // A sanitizer maps terabytes, so a build with one runs without the limit.
        if bytes > 0, unsafe dlsym(nil, "__sanitizer_print_stack_trace") == nil { limit(RLIMIT_DATA, to: bytes) }
        // Create the timer before the sandbox: the filter of system calls keeps a plugin from creating another.
        let watch = ProcessorWatch()
        PluginServer(descriptor: 3, library: 4, sandbox: HostSandbox.enter(folder: option("--folder"), isCounted: isCounted), watch: watch)
            .run()
        exit(0)
    }

    private static func option(_ name: String) -> String? {
        let arguments = CommandLine.arguments
        guard let index = arguments.firstIndex(of: name), index + 1 < arguments.count else { return nil }
        return arguments[index + 1]
    }

    private static func limit(_ resource: __rlimit_resource, to bytes: UInt64) {
        var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: rlim_t(bytes))
        _ = unsafe setrlimit(__rlimit_resource_t(resource.rawValue), &limit)
    }
}
