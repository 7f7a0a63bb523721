import SluiceCore
import SluicePorts

/// What waits to be stored, by file. It decides for `RealmStoreBuffer`.
///
/// One call at a time is under way for a file. A file without anything to store takes no memory.
struct RealmStoreQueue {
    /// What a call stores before it does its own work.
    struct Work: Sendable {
        let session: RealmFileSession
        let entries: [RealmStreamEntry]
        let progress: RealmUploadProgress?
        /// The number of the last confirmation in `progress`.
        let ticket: UInt64
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
        /// The reason why what waited could not be stored, until the session knows it.
        var error: (any Error)?

        var waits: Bool { !entries.isEmpty || progress != nil }
    }

    private var files: [UInt64: File] = [:]
    /// The bytes of the entries that wait.
    private(set) var bytes = 0
    private var isScheduled = false

    /// The files of which something waits, in no order.
    var waiting: [UInt64] { files.filter { $0.value.waits }.map(\.key) }

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
        try open(session)
        files[session.file]?.entries += entries
        bytes += entries.reduce(0) { $0 + $1.cost }
    }

    /// Adds a confirmation, and drops the entries that it confirms.
    /// - Returns: An event that counts the confirmations that are stored, and the number of this one.
    mutating func add(
        _ progress: RealmUploadProgress, _ session: RealmFileSession, _ event: () -> AsyncEvent
    ) throws -> (AsyncEvent, UInt64) {
        try open(session)
        drop(upTo: progress.serverVersion, session)
        guard var file = files[session.file] else { throw Self.replaced(session) }
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
        guard let file = files[session.file], file.session == session else { return }
        let rest = file.entries.drop { $0.serverVersion <= version }
        guard rest.count < file.entries.count else { return }
        bytes -= file.entries.prefix(file.entries.count - rest.count).reduce(0) { $0 + $1.cost }
        files[session.file]?.entries = Array(rest)
    }

    private mutating func open(_ session: RealmFileSession) throws {
        guard let file = files[session.file], file.session.number >= session.number else {
            // What waits of an earlier session was stored before the file was opened again.
            forget(session.file)
            files[session.file, default: File(session: session)].session = session
            return
        }
        guard file.session == session else { throw Self.replaced(session) }
        if file.error != nil { throw takeError(of: session) }
    }

    private static func replaced(_ session: RealmFileSession) -> SluiceError {
        SluiceError(.resync, "Client file \(session.file) has been opened again.")
    }

    /// Removes and returns the error of a file.
    mutating func takeError(of session: RealmFileSession) -> any Error {
        let error = files[session.file]?.error ?? Self.replaced(session)
        files[session.file]?.error = nil
        clean(session.file)
        return error
    }

    // MARK: Calls

    /// Begins a call for a file, and hands it what waits.
    mutating func take(_ id: UInt64, _ event: () -> AsyncEvent) -> Turn {
        var file = files[id] ?? File(session: RealmFileSession(file: id, number: 0))
        let ended = file.ended ?? event()
        file.ended = ended
        defer { files[id] = file }
        guard !file.isBusy else { return .busy(ended, ended.count) }
        file.isBusy = true
        guard file.waits else { return .begun(nil) }
        let work = Work(session: file.session, entries: file.entries, progress: file.progress, ticket: file.ticket)
        bytes -= file.entries.reduce(0) { $0 + $1.cost }
        (file.entries, file.progress) = ([], nil)
        return .begun(work)
    }

    /// Ends a call.
    /// - Parameter error: The reason why what had waited is not stored; nil if it is.
    /// - Returns: The events of the end, and of the confirmations.
    mutating func end(_ id: UInt64, _ error: (any Error)?) -> (ended: AsyncEvent?, stored: AsyncEvent?) {
        guard var file = files[id] else { return (nil, nil) }
        file.isBusy = false
        let events = (file.ended, file.stored)
        if let error {
            bytes -= file.entries.reduce(0) { $0 + $1.cost }
            (file.entries, file.progress, file.stored, file.error) = ([], nil, nil, error)
        }
        files[id] = file
        clean(id)
        return events
    }

    /// Drops what waits of a file, and its error. A call that is under way ends later.
    mutating func forget(_ id: UInt64) {
        guard var file = files[id] else { return }
        bytes -= file.entries.reduce(0) { $0 + $1.cost }
        (file.entries, file.progress, file.stored, file.error) = ([], nil, nil, nil)
        files[id] = file
        clean(id)
    }

    private mutating func clean(_ id: UInt64) {
        guard let file = files[id], !file.isBusy, !file.waits, file.error == nil else { return }
        files[id] = nil
    }
}
