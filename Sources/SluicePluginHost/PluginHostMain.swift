import Glibc

/// The program `sluice-plugin-host`: hosts the plugin named by its last argument, speaking to the gateway on descriptor 3.
package enum PluginHostMain {
    /// Serves until the gateway hangs up or dies.
    package static func run() {
        guard fcntl(3, F_GETFD) >= 0 else {
            print("sluice-plugin-host is started by the gateway and is of no use by itself.")
            exit(64)
        }
        endWithParent()
        closeInherited()
        limit(RLIMIT_CORE, to: 0)
        let bytes = memoryBytes(CommandLine.arguments)
        // A sanitizer maps terabytes: a build with one runs without the limit.
        if bytes > 0, unsafe dlsym(nil, "__sanitizer_print_stack_trace") == nil { limit(RLIMIT_DATA, to: bytes) }
        PluginServer.run(descriptor: 3)
        exit(0)
    }

    private static func memoryBytes(_ arguments: [String]) -> UInt64 {
        guard let index = arguments.firstIndex(of: "--memory-bytes"), index + 1 < arguments.count else { return 0 }
        return UInt64(arguments[index + 1]) ?? 0
    }

    /// Has the kernel end this process when the gateway's thread that started it ends, however that comes.
    private static func endWithParent() {
        // prctl is variadic, which Swift does not import; with integer arguments a fixed signature has the same calling
        // convention on Linux.
        typealias Prctl = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32
        let setParentDeathSignal: Int32 = 1
        guard let address = unsafe dlsym(nil, "prctl") else { return }
        _ = unsafe unsafeBitCast(address, to: Prctl.self)(setParentDeathSignal, UInt(SIGKILL), 0, 0, 0)
    }

    /// Closes the gateway's descriptors that were not marked to be closed on exec, before the plugin could use them.
    private static func closeInherited() {
        // close_range is a GNU extension, which Swift's Glibc module leaves out.
        typealias CloseRange = @convention(c) (UInt32, UInt32, Int32) -> Int32
        guard let address = unsafe dlsym(nil, "close_range") else { return }
        _ = unsafe unsafeBitCast(address, to: CloseRange.self)(4, .max, 0)
    }

    private static func limit(_ resource: __rlimit_resource, to bytes: UInt64) {
        var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: rlim_t(bytes))
        _ = unsafe setrlimit(__rlimit_resource_t(resource.rawValue), &limit)
    }
}
