import CSluiceSandbox
import Glibc

/// Shuts the host's process in: no network, no other processes, no files but those of the plugin's own folder.
///
/// What the kernel has no means for is told to the gateway, which says so in its log and metrics.
struct HostSandbox {
    private let folder: String?
    private var lacks: UInt32

    /// Before the plugin is loaded: from here on files can be read where libraries are, and in the plugin's folder.
    static func enter(folder: String?) -> HostSandbox {
        let paths = libraryPaths() + (folder.map { [$0] } ?? [])
        // Never freed: once in the life of a process.
        let pointers = unsafe paths.map { unsafe UnsafePointer(strdup($0)) }
        let lacks = unsafe pointers.withUnsafeBufferPointer { unsafe sluice_sandbox_enter($0.baseAddress, $0.count) }
        return HostSandbox(folder: folder, lacks: lacks)
    }

    /// After the plugin was loaded: from here on its folder is all that can be read.
    mutating func seal() {
        if let folder { lacks |= unsafe sluice_sandbox_seal(folder) } else { lacks |= sluice_sandbox_seal(nil) }
    }

    /// What the kernel lacks.
    var missing: [String] {
        let parts = [
            (SLUICE_SANDBOX_SECCOMP, "seccomp"), (SLUICE_SANDBOX_LANDLOCK, "landlock"), (SLUICE_SANDBOX_PRIVILEGES, "privileges"),
        ]
        return parts.filter { lacks & UInt32($0.0) != 0 }.map(\.1)
    }

    /// Where a library finds those that it needs, beside the folders where this program found its own.
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
