import DequeModule
package import SluiceCore
package import SluicePorts
import Synchronization

/// A store that gathers entries and confirmations of client files, and stores those of many files together.
///
/// A change to a thousand clients would otherwise be two thousand rows in PostgreSQL. Most clients confirm an entry before it is stored. It
/// then never is.
///
/// A crash loses the entries of the last `delay`. The client then names a version that the stored stream lacks, and the views continue from
/// the change log. Progress of uploads is never lost: a client learns of it once it is stored.
///
/// Every other call for a file first stores what waits for it.
package final class RealmStoreBuffer: RealmClientStore {
    /// The bounds of what waits.
    package struct Bounds: Hashable, Sendable {
        /// The time for which entries wait, milliseconds.
        package var delay: Int
        /// The bytes of the entries of all files. Beyond: entries are stored at once.
        package var bytes: Int
        /// The files that are stored at a time.
        package var width: Int
        /// The time after which the rest is given up, and its sessions end, milliseconds.
        package var deadline: Int

        package init(delay: Int = 500, bytes: Int = 64 << 20, width: Int = 256, deadline: Int = 30_000) {
            (self.delay, self.bytes, self.width, self.deadline) = (delay, bytes, width, deadline)
        }
    }

    private let store: any RealmClientStore
    private let environment: any Environment
    private let bounds: Bounds
    private let state = Mutex(RealmStoreQueue())

    package init(_ store: any RealmClientStore, environment: any Environment, bounds: Bounds = Bounds()) {
        (self.store, self.environment, self.bounds) = (store, environment, bounds)
    }

    /// The bytes of the entries that wait.
    package var bytes: Int { state.withLock(\.bytes) }

    // MARK: What waits

    package func appendLater(_ entries: [RealmStreamEntry], to session: RealmFileSession) throws -> Bool {
        let (isTaken, begins) = try state.withLock { state in
            guard state.bytes < bounds.bytes else { return (false, false) }
            try state.add(entries, session)
            return (true, state.begin())
        }
        if begins { storeLater() }
        return isTaken
    }

    package func confirmed(upTo serverVersion: UInt64, of session: RealmFileSession) {
        state.withLock { $0.drop(upTo: serverVersion, session) }
    }

    package func recordSoon(_ progress: RealmUploadProgress, of session: RealmFileSession) async throws {
        let (stored, ticket, begins) = try state.withLock { state in
            let (stored, ticket) = try state.add(progress, session) { AsyncEvent(environment: environment) }
            return (stored, ticket, state.begin())
        }
        if begins { storeLater() }
        // Ends with the deadline of the store at the latest.
        await stored.wait(until: ticket)
        try Task.checkCancellation()
        // The count is the highest possible one after an error.
        if stored.count == .max { throw state.withLock { $0.error(of: session) } }
    }

    /// Stores everything after the delay.
    private func storeLater() {
        Task {  // Unstructured because: it serves calls of many sessions. It ends with what waits.
            repeat {
                try? await environment.sleep(nanoseconds: UInt64(max(bounds.delay, 0)) * 1_000_000)
                try? await environment.within(milliseconds: bounds.deadline) { await self.storeAll() }
            } while !state.withLock({ $0.isOver() })
        }
    }

    /// Stores everything that waits, except of files with a call under way: that one may take long, and the next pass follows soon.
    package func storeAll() async {
        let files = state.withLock(\.waiting)
        await withDiscardingTaskGroup { group in
            for first in 0..<min(bounds.width, files.count) {
                group.addTask {
                    for index in stride(from: first, to: files.count, by: self.bounds.width) where !Task.isCancelled {
                        await self.flush(files[index])
                    }
                }
            }
        }
    }

    private func flush(_ file: UInt64) async {
        guard case .begun(let work)? = try? state.withLock({ try $0.take(file, nil) { AsyncEvent(environment: environment) } }) else {
            return
        }
        do {
            if let work { try await store(work) }
            end(file, work, nil)
        } catch {
            end(file, work, error)
        }
    }

    /// Stores what waits for a file, and then performs a call for it. Calls for one file follow each other.
    /// - Parameter session: The session of the call; nil for any.
    private func perform<Result: Sendable>(
        _ file: UInt64, _ session: RealmFileSession?, _ call: @Sendable () async throws -> Result
    ) async throws -> Result {
        let work = try await begin(file, session)
        do {
            if let work { try await finish(work) }
        } catch {
            end(file, work, error)
            throw error
        }
        defer { end(file, work, nil) }
        return try await call()
    }

    /// Stores work also if the caller is cancelled, which concerns its own call alone.
    private func finish(_ work: RealmStoreQueue.Work) async throws {
        // Unstructured because: the end of a connection cancels its calls. Awaited, with a deadline.
        try await Task { try await environment.within(milliseconds: bounds.deadline) { try await self.store(work) } }.value
    }

    private func end(_ file: UInt64, _ work: RealmStoreQueue.Work?, _ error: (any Error)?) {
        let ended = state.withLock { $0.end(file, work, error) }
        work?.stored?.reach(error == nil ? work?.ticket ?? 0 : .max)
        ended?.fire()
    }

    /// Waits until no other call for the file is under way, and begins one.
    private func begin(_ file: UInt64, _ session: RealmFileSession?) async throws -> RealmStoreQueue.Work? {
        while true {
            let turn = try state.withLock { try $0.take(file, session) { AsyncEvent(environment: environment) } }
            switch turn {
            case .begun(let work): return work
            case .busy(let ended, let seen):
                await ended.wait(after: seen, milliseconds: 1_000)
                try Task.checkCancellation()
            }
        }
    }

    private func store(_ work: RealmStoreQueue.Work) async throws {
        if !work.entries.isEmpty { try await store.append(work.entries, to: work.session) }
        if let progress = work.progress { try await store.record(progress, of: work.session) }
    }

    // MARK: Other calls

    package func allot(user: String) async throws -> RealmFileIdent { try await store.allot(user: user) }

    package func open(_ file: RealmFileIdent, user: String) async throws -> StoredRealmClient {
        // A failure concerns an earlier session alone.
        try? await perform(file.ident, nil) {}
        let stored = try await store.open(file, user: user)
        state.withLock { $0.opened(stored.session) }
        return stored
    }

    package func append(_ entries: [RealmStreamEntry], to session: RealmFileSession) async throws {
        try await perform(session.file, session) { [store] in try await store.append(entries, to: session) }
    }

    package func record(_ progress: RealmUploadProgress, of session: RealmFileSession) async throws {
        state.withLock { $0.drop(upTo: progress.serverVersion, session) }
        try await perform(session.file, session) { [store] in try await store.record(progress, of: session) }
    }

    package func beginBootstrap(queryVersion: UInt64, of session: RealmFileSession) async throws {
        try await perform(session.file, session) { [store] in try await store.beginBootstrap(queryVersion: queryVersion, of: session) }
    }

    package func completeBootstrap(_ view: RealmClientRecord.View, of session: RealmFileSession) async throws {
        try await perform(session.file, session) { [store] in try await store.completeBootstrap(view, of: session) }
    }

    package func cancelBootstrap(of session: RealmFileSession) async throws {
        try await perform(session.file, session) { [store] in try await store.cancelBootstrap(of: session) }
    }

    package func keep(replica: [UInt8], ofView view: UInt64, of session: RealmFileSession) async throws {
        try await perform(session.file, session) { [store] in try await store.keep(replica: replica, ofView: view, of: session) }
    }

    package func lose(_ session: RealmFileSession) async throws {
        try await perform(session.file, session) { [store] in try await store.lose(session) }
    }
}
