import DequeModule
import SluiceCore
import SluicePorts

/// What waits to be stored, by file. It decides for `RealmStoreBuffer`.
///
/// One call at a time is under way for a file. If what waited cannot be stored, every later call of its session fails: a newer entry or
/// state would hide the gap. A file without anything to store takes no memory.
struct RealmStoreQueue {
    /// What a call stores before it does its own work.
    struct Work: Sendable {
        let session: RealmFileSession
        let entries: [RealmStreamEntry]
        let progress: RealmUploadProgress?
        /// The number of the last confirmation in `progress`, and the event that counts those that are stored.
        let ticket: UInt64
        let stored: AsyncEvent?
    }

    enum Turn {
        case begun(Work?)
        /// The event fires at the end of the call that is under way. The number is its count so far.
        case busy(AsyncEvent, UInt64)
    }

    private struct File {
        var session: RealmFileSession
        var entries: [RealmStreamEntry] = []
        var progress: RealmUploadProgress?
        /// The number of the last confirmation.
        var ticket: UInt64 = 0
        /// Counts the confirmations that are stored.
        var stored: AsyncEvent?
        /// Fires at the end of each call.
        var ended: AsyncEvent?
        var isBusy = false
        /// The reason why what waited could not be stored. It stays until the file is opened again.
        var error: (any Error)?

        var waits: Bool { !entries.isEmpty || progress != nil }
        /// `true` if nothing needs the file's memory.
        var isIdle: Bool { !isBusy && !waits && error == nil }
    }

    /// The failed files that are remembered. Beyond, the oldest are forgotten: their sessions have ended long ago.
    static let mostFailed = 10_000

    private var files: [UInt64: File] = [:]
    private var failed: Deque<UInt64> = []
    /// The bytes of the entries that wait.
    private(set) var bytes = 0
    private var isScheduled = false

    /// The files of which something waits, in no order.
    var waiting: [UInt64] { files.filter { $0.value.waits }.map(\.key) }
    /// The number of files that take memory.
    var count: Int { files.count }

    /// Begins the delay of what waits.
    /// - Returns: `false` if it has begun already.
    mutating func begin() -> Bool {
        defer { isScheduled = true }
        return !isScheduled
    }

    /// Ends the delays if nothing waits.
    mutating func isOver() -> Bool {
        isScheduled = files.values.contains(where: \.waits)
        return !isScheduled
    }

    // MARK: What waits

    /// Adds entries behind those that wait.
    /// - Throws: The error of an earlier call, or `resync` for a session that another one has replaced.
    mutating func add(_ entries: [RealmStreamEntry], _ session: RealmFileSession) throws {
        let isAdded = change(session) { file in
            if file.error == nil { file.entries += entries }
            return file.error == nil
        }
        if isAdded != true {
            var file = try file(of: session)
            file.entries += entries
            files[session.file] = file
        }
        bytes += entries.reduce(0) { $0 + $1.cost }
    }

    /// Adds a confirmation, and drops the entries that it confirms.
    /// - Returns: An event that counts the confirmations that are stored, and the number of this one.
    mutating func add(
        _ progress: RealmUploadProgress, _ session: RealmFileSession, _ event: () -> AsyncEvent
    ) throws -> (AsyncEvent, UInt64) {
        drop(upTo: progress.serverVersion, session)
        var file = try file(of: session)
        file.progress = RealmUploadProgress(
            clientVersion: max(progress.clientVersion, file.progress?.clientVersion ?? 0),
            serverVersion: max(progress.serverVersion, file.progress?.serverVersion ?? 0))
        file.ticket += 1
        let stored = file.stored ?? event()
        file.stored = stored
        files[session.file] = file
        return (stored, file.ticket)
    }

    /// Drops entries that the client has confirmed.
    mutating func drop(upTo version: UInt64, _ session: RealmFileSession) {
        let dropped = change(session) { file -> (bytes: Int, isIdle: Bool)? in
            let confirmed = file.entries.prefix { $0.serverVersion <= version }
            guard !confirmed.isEmpty else { return nil }
            let bytes = confirmed.reduce(0) { $0 + $1.cost }
            file.entries.removeFirst(confirmed.count)
            return (bytes, file.isIdle)
        }
        guard let (dropped, isIdle) = dropped ?? nil else { return }
        bytes -= dropped
        if isIdle { files[session.file] = nil }
    }

    /// Changes the file of a session in place; nil if it has none. Each change of each client comes here, and a copy would cost more.
    private mutating func change<Result>(_ session: RealmFileSession, _ body: (inout File) -> Result) -> Result? {
        guard let index = files.index(forKey: session.file) else { return nil }
        return { (file: inout File) in file.session == session ? body(&file) : nil }(&files.values[index])
    }

    /// Returns the file of a session, or a new one.
    private mutating func file(of session: RealmFileSession) throws -> File {
        guard let file = files[session.file], file.session.number >= session.number else {
            opened(session)
            return files[session.file] ?? File(session: session)
        }
        guard file.session == session else { throw Self.replaced(session) }
        if let error = file.error { throw error }
        return file
    }

    private static func replaced(_ session: RealmFileSession) -> SluiceError {
        SluiceError(.resync, "Client file \(session.file) has been opened again.")
    }

    /// Returns the error of a session.
    func error(of session: RealmFileSession) -> any Error {
        guard let file = files[session.file], file.session == session, let error = file.error else { return Self.replaced(session) }
        return error
    }

    /// Records that a session has opened its file. What waits of an earlier one is dropped, and so is its error.
    mutating func opened(_ session: RealmFileSession) {
        guard var file = files[session.file], file.session.number < session.number else { return }
        bytes -= file.entries.reduce(0) { $0 + $1.cost }
        file.stored?.reach(.max)
        (file.session, file.entries, file.progress, file.stored, file.error) = (session, [], nil, nil, nil)
        files[session.file] = file
        clean(session.file)
    }

    // MARK: Calls

    /// Begins a call for a file, and hands it what waits.
    /// - Parameter session: The session of the call; nil for any.
    /// - Throws: The error of an earlier call of the session, or `resync`.
    mutating func take(_ id: UInt64, _ session: RealmFileSession?, _ event: () -> AsyncEvent) throws -> Turn {
        var file =
            if let session { try self.file(of: session) } else { files[id] ?? File(session: RealmFileSession(file: id, number: 0)) }
        let ended = file.ended ?? event()
        file.ended = ended
        defer { files[id] = file }
        guard !file.isBusy else { return .busy(ended, ended.count) }
        file.isBusy = true
        guard file.waits else { return .begun(nil) }
        let work = Work(
            session: file.session, entries: file.entries, progress: file.progress, ticket: file.ticket, stored: file.stored)
        bytes -= file.entries.reduce(0) { $0 + $1.cost }
        (file.entries, file.progress) = ([], nil)
        return .begun(work)
    }

    /// Ends a call.
    /// - Parameter error: The reason why `work` is not stored; nil if it is.
    /// - Returns: The event of the end.
    mutating func end(_ id: UInt64, _ work: Work?, _ error: (any Error)?) -> AsyncEvent? {
        guard var file = files[id] else { return nil }
        file.isBusy = false
        if let error, let work, work.session == file.session {
            bytes -= file.entries.reduce(0) { $0 + $1.cost }
            file.stored?.reach(.max)
            (file.entries, file.progress, file.stored, file.error) = ([], nil, nil, error)
            failed.append(id)
        }
        files[id] = file
        clean(id)
        if failed.count > Self.mostFailed, let oldest = failed.popFirst(), files[oldest]?.error != nil {
            files[oldest]?.error = nil
            clean(oldest)
        }
        return file.ended
    }

    private mutating func clean(_ id: UInt64) {
        if files[id]?.isIdle ?? false { files[id] = nil }
    }
}
