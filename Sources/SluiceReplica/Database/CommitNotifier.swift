import Dispatch
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Notifies the processes that have one file open of each other's commits: a small file beside it, written after each commit and watched.
///
/// The file carries no data; receivers read the database. If it cannot be created or watched, other processes' commits are seen once this
/// process begins its next write.
final class CommitNotifier: Sendable {
    private let note: Int32
    private let path: String
    private let watch = Mutex<Watch?>(nil)

    // Sendable because: a dispatch source may be cancelled from any thread, and no other use is made of it.
    private struct Watch: @unchecked Sendable {
        let source: any DispatchSourceProtocol
    }

    init?(path: String) {
        self.path = path + ReplicaFile.noteEnding
        note = open(self.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if note < 0 { return nil }
    }

    deinit { close(note) }

    func ring(_ version: UInt64) {
        _ = withUnsafeBytes(of: version) { pwrite(note, $0.baseAddress, $0.count, 0) }
    }

    /// Calls the body on the queue after commits, also those of this process. One call may cover many commits.
    func start(on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
        guard let source = CommitNotifier.watch(path, note, on: queue) else { return }
        source.setEventHandler {
            CommitNotifier.drain(source)
            body()
        }
        source.activate()
        let watch = Watch(source: source)
        self.watch.withLock { $0 = watch }
    }

    func stop() {
        watch.withLock { watch in
            watch?.source.cancel()
            watch = nil
        }
    }

    #if os(Linux)
        private static func watch(_ path: String, _: Int32, on queue: DispatchQueue) -> (any DispatchSourceRead)? {
            let events = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
            guard events >= 0 else { return nil }
            guard inotify_add_watch(events, path, UInt32(IN_MODIFY)) >= 0 else {
                close(events)
                return nil
            }
            let source = DispatchSource.makeReadSource(fileDescriptor: events, queue: queue)
            source.setCancelHandler { close(events) }
            return source
        }

        private static func drain(_ source: any DispatchSourceRead) {
            var bytes = [UInt8](repeating: 0, count: 4_096)
            while read(Int32(source.handle), &bytes, bytes.count) > 0 {}
        }
    #else
        private static func watch(_: String, _ note: Int32, on queue: DispatchQueue) -> (any DispatchSourceFileSystemObject)? {
            DispatchSource.makeFileSystemObjectSource(fileDescriptor: note, eventMask: .write, queue: queue)
        }

        private static func drain(_: any DispatchSourceFileSystemObject) {}
    #endif
}
