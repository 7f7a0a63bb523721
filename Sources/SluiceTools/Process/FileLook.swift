import SluiceGateway

#if canImport(Glibc)
    import Glibc
#endif

extension FileFindings.Fact {
    /// Looks at a file or folder.
    package init(lookingAt path: String, option: String, use: Use) {
        var system = statvfs()
        let free = use == .folder && statvfs(path, &system) == 0 ? Int64(clamping: UInt64(system.f_bavail) * UInt64(system.f_frsize)) : nil
        self.init(
            path: path, option: option, use: use, mode: FileStatus(at: path)?.mode,
            isAccessible: access(path, use == .folder ? W_OK | X_OK : R_OK) == 0, freeBytes: free)
    }
}
