import CSluiceSandbox
import Glibc

/// Confines the host's process: no network, no other processes, no files but those of the plugin's own folder.
///
/// The gateway receives the parts that the kernel does not support and reports them in its log and metrics.
struct HostSandbox {
    private let folder: String?
    private var lacks: UInt32

    /// Enters the first stage, before the plugin is loaded. From here on only library folders and the plugin's folder are readable.
    /// - Parameter isCounted: `true` if the gateway counts the threads.
    static func enter(folder: String?, isCounted: Bool) -> HostSandbox {
        let paths = libraryPaths() + (folder.map { [$0] } ?? [])
        // Never freed: it runs once in the life of a process.
        let pointers = unsafe paths.map { unsafe UnsafePointer(strdup($0)) }
        var lacks = unsafe pointers.withUnsafeBufferPointer { unsafe sluice_sandbox_enter($0.baseAddress, $0.count) }
        // Without seccomp there is no filter that could ask.
        if !isCounted, lacks & UInt32(SLUICE_SANDBOX_SECCOMP) == 0 { lacks |= UInt32(SLUICE_SANDBOX_THREADS) }
        return HostSandbox(folder: folder, lacks: lacks)
    }

    /// Enters the second stage, after the plugin was loaded. From here on only its folder is readable.
    mutating func seal() {
        if let folder { lacks |= unsafe sluice_sandbox_seal(folder) } else { lacks |= sluice_sandbox_seal(nil) }
    }

    /// The names of the parts that the kernel lacks.
    var missing: [String] {
        let parts = [
            (SLUICE_SANDBOX_SECCOMP, "seccomp"), (SLUICE_SANDBOX_LANDLOCK, "landlock"), (SLUICE_SANDBOX_PRIVILEGES, "privileges"),
            (SLUICE_SANDBOX_THREADS, "threads"),
        ]
        return parts.filter { lacks & UInt32($0.0) != 0 }.map(\.1)
    }

    /// Returns the folders in which a library's dependencies may be found, including this program's own search path.
    private static func libraryPaths() -> [String] {
        var paths = [
            "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/dev/null", "/dev/urandom",
        ]
        if let search = unsafe getenv("LD_LIBRARY_PATH") {
            paths += unsafe String(cString: search).split(separator: ":").map(String.init)
        }
        return paths
    }
}
