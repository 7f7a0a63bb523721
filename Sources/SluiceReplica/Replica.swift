package import SluiceCore
import Dispatch
import Synchronization

/// The local database of one user of one app. It has the server's state, the writes that the server does not have yet, and the
/// subscription sets. It is one SQLite file with these tables:
///
/// ```
/// <Class>                     the shown objects: a table per class, a column per property
/// _sluice_server              server rows of objects with pending writes, with their clocks; NULL: not in the view, or unknown
/// _sluice_pending             changesets until the replica has applied the commit that contains them
/// _sluice_pending_change      their changes, one row each
/// _sluice_subscription_set, _sluice_subscription
/// _sluice_staging_<Class>     rows of a bootstrap under way
/// _sluice_earlier_<Class>     staged rows of the interrupted bootstrap that is resumed
/// _sluice_ingest              asymmetric objects until they are acknowledged
/// _sluice_error               compensating writes that were not reported to the app
/// _sluice_link                links in collections, embedded objects and mixed values, by target
/// _sluice_link_dirty          rows whose links of this kind changed in the open transaction
/// _sluice_inverse             the properties that _sluice_link covers
/// _sluice_commit              the objects changed by the latest commits, for other processes; its last number is the state's version
/// _sluice_meta                format version, identity, position, counters, clock
/// ```
/// The shown state of an object is its server row merged with its pending changes. All writes run on one queue. Reads use
/// `ReplicaReader`s, which never wait for it.
package final class Replica: Sendable {
    /// The path of the file.
    package let path: String
    /// The classes in the given order. Type indices of this replica refer to it.
    package let schema: Schema
    /// `false` for a local file without a server: nothing is kept for upload, and writing needs no subscription.
    package let isSynced: Bool
    let layouts: [TableLayout]
    let links: LinkIndex
    let options: ReplicaOptions
    /// The writer queue. All writes run on it.
    private let queue = DispatchQueue(label: "sluice.replica", qos: .userInitiated)
    let parts: ReplicaParts
    /// Reads the committed state without waiting for the writer.
    let committed: CommittedState
    private let observers = Mutex(Observers())
    /// The versions that readers see.
    private let readers = Mutex<[ObjectIdentifier: UInt64]>([:])
    /// The inode of a temporary file, see `ReplicaFile.number(of:)`.
    private let fileNumber: UInt64?
    /// Notifies other processes of commits, and this one of theirs.
    private let bell: CommitNotifier?

    private struct Observers {
        var next: UInt64 = 1
        var changes: [UInt64: @Sendable (ReplicaChange) -> Void] = [:]
        var local: [UInt64: @Sendable () -> Void] = [:]
        var subscriptions: [UInt64: @Sendable () -> Void] = [:]
        var left: [UInt64: @Sendable ([LeftObject]) -> Void] = [:]
    }

    /// The version of the newest state that observers were notified of. It grows with each commit, of any process, that changes the shown
    /// objects.
    package var version: UInt64 { shownVersion.load(ordering: .acquiring) }
    private let shownVersion = Atomic<UInt64>(0)

    /// Opens the file, creates it if it is missing, and fits its tables to the schema. Several processes may open it with the same
    /// classes. They write one at a time.
    /// - Parameters:
    ///   - indexes: the properties, by class, that get an index for queries. Indexes of other properties are dropped.
    /// - Throws: `replicaVersion` if a newer release wrote the file, `replicaCorrupt` if it is damaged or no client replica. A schema that
    ///   cannot be stored, or that a file opened for reading only does not have, throws `invalidSchemaChange`.
    package init(
        path: String, schema: Schema, isSynced: Bool = true, indexes: [String: Set<String>] = [:],
        options: ReplicaOptions = ReplicaOptions(), environment: any Environment = SystemEnvironment()
    ) throws(SluiceError) {
        self.path = path
        self.schema = schema
        self.isSynced = isSynced
        self.options = options
        layouts = try TableLayout.all(of: schema)
        links = LinkIndex(schema, isFitted: !options.isReadOnly && !options.isUnfitted)
        let connection = try Connection.open(path: path, options.isReadOnly ? .readOnly : .writer(isTemporary: options.isTemporary))
        let database = ReplicaDatabase(connection: connection, layouts: layouts, links: links, isTemporary: options.isTemporary)
        parts = ReplicaParts(database, isSynced: isSynced, options: options, environment: environment)
        fileNumber = options.isTemporary ? ReplicaFile.number(of: path) : nil
        committed = CommittedState(path: path, isReadOnly: options.isReadOnly)
        let opening = ReplicaOpening(database: database, owner: options.owner)
        if options.isReadOnly {
            try opening.openReadOnly()
            bell = nil
        } else {
            let indexes = PropertyIndexes(indexes, layouts: layouts)
            try options.isUnfitted ? opening.openUnfitted() : opening.open(indexes: indexes, shouldCompact: options.shouldCompact)
            bell = options.isTemporary ? nil : CommitNotifier(path: path)
        }
        shownVersion.store(database.version, ordering: .releasing)
        bell?.start(on: queue) { [weak self] in self?.catchUp() }
    }

    deinit {
        bell?.stop()
        if options.isTemporary { ReplicaFile.remove(path, numbered: fileNumber) }
    }

    /// Returns a new connection for reading, at the newest state.
    package func makeReader() throws(SluiceError) -> ReplicaReader { try ReplicaReader(of: self) }

    // MARK: Writer queue

    /// Runs the body on the writer queue, outside of a transaction. It must not write.
    package func read<R: Sendable>(
        _ body: @escaping @Sendable (ReplicaParts) throws(SluiceError) -> R
    ) async throws(SluiceError) -> R {
        let result = await withCheckedContinuation { (continuation: CheckedContinuation<Result<R, SluiceError>, Never>) in
            queue.async { [parts] in
                continuation.resume(returning: Result { () throws(SluiceError) in try body(parts) })
            }
        }
        return try result.get()
    }

    /// Runs the body as one transaction on the writer queue, then publishes its changes. Transactions take effect in the order of the
    /// calls. One that throws has changed nothing.
    /// - Parameter isDurable: `true` to wait for the disk: the commit gives out a number or an identity that must not be given twice, or
    ///   drops writes. The server's data can be requested again.
    package func commit<R: Sendable>(
        isDurable: Bool, _ body: @escaping @Sendable (ReplicaParts) throws(SluiceError) -> R
    ) async throws(SluiceError) -> R {
        try await read { parts throws(SluiceError) in
            let result = try parts.database.transaction(isDurable: isDurable) { () throws(SluiceError) in try body(parts) }
            self.publish(parts.database.takeNews())
            return result
        }
    }

    /// Runs the body as one durable transaction. Blocks until earlier transactions are done.
    func commitNow<R>(_ body: (ReplicaParts) throws(SluiceError) -> R) throws(SluiceError) -> R {
        try readNow { parts throws(SluiceError) in
            let result = try parts.database.transaction(isDurable: true) { () throws(SluiceError) in try body(parts) }
            publish(parts.database.takeNews())
            return result
        }
    }

    func readNow<R>(_ body: (ReplicaParts) throws(SluiceError) -> R) throws(SluiceError) -> R {
        let result = queue.sync { [parts] in Result { () throws(SluiceError) in try body(parts) } }
        return try result.get()
    }

    /// Begins a local write. Blocks until the writer is free, and holds it until `commit` or `cancel`. Waits up to 10 seconds for a write
    /// of another process.
    /// - Throws: `writeNotAllowed` if the file was opened for reading only; `timeout`.
    package func beginWrite() throws(SluiceError) -> WriteTransaction {
        let turn = DispatchSemaphore(value: 0)
        let lease = WriterLease(lapses: false) { turn.signal() }
        queue.async { lease.hold() }
        turn.wait()
        // The lease is exclusive and does not lapse.
        guard let transaction = try beginWrite(lease) else { throw SluiceError(.internalError, "The write lock is not held.") }
        return transaction
    }

    /// Requests the writer without waiting.
    /// - Parameter news: called once, on any thread, when `beginWrite(_:)` can claim the lease or the lease is over.
    package func askForWriter(_ news: @escaping @Sendable () -> Void) -> WriterLease {
        let lease = WriterLease(lapses: true, news: news)
        queue.async { lease.hold() }
        return lease
    }

    /// Begins a local write with a requested lease.
    /// - Parameter isDurable: see `WriteTransaction.commit`.
    /// - Returns: `nil` if the lease is over or not granted yet.
    package func beginWrite(_ lease: WriterLease, isDurable: Bool = true) throws(SluiceError) -> WriteTransaction? {
        guard lease.claim() else { return nil }
        if options.isReadOnly {
            lease.release()
            throw SluiceError(.writeNotAllowed, "The local file was opened for reading only.", fix: "Open it without readOnly.")
        }
        do throws(SluiceError) {
            let transaction = try WriteTransaction(parts, lease: lease, isDurable: isDurable) { [weak self] news in
                self?.publish(news)
            }
            // Commits of other processes are published separately, before this transaction's changes.
            publish(parts.database.takeNews())
            return transaction
        } catch {
            lease.release()
            throw error
        }
    }

    /// Calls `done` on the writer queue once all commits are on the disk.
    package func waitForDisk(_ done: @escaping @Sendable (Result<Void, SluiceError>) -> Void) {
        queue.async { [parts] in done(Result { () throws(SluiceError) in try parts.database.syncLog() }) }
    }

    // MARK: Position and upload

    /// The position that the replica is complete for.
    package func appliedPosition() async throws(SluiceError) -> AppliedPosition {
        try await read { parts throws(SluiceError) in parts.server.applied }
    }

    /// Returns the size of the writes that are not acknowledged, in bytes.
    /// - Parameter limit: the cursor up to which changesets and asymmetric objects count. `nil` counts all.
    package func unsentBytes(upTo limit: UploadCursor? = nil) async throws(SluiceError) -> UInt64 {
        try await read { parts throws(SluiceError) in
            try parts.local.unsentBytes(upTo: limit?.changeset) + parts.ingest.unsentBytes(upTo: limit?.object)
        }
    }

    /// Returns the upload cursor of everything written so far.
    package func uploadMark() async throws(SluiceError) -> UploadCursor {
        try await read { parts throws(SluiceError) in
            UploadCursor(changeset: parts.local.lastChangeset, object: try parts.ingest.lastObject())
        }
    }

    // MARK: Versions in use

    /// The number of states that the file keeps for readers of this process, from the oldest one read to the newest.
    package var activeVersions: UInt64 {
        let newest = version
        return readers.withLock { readers in newest - min(readers.values.min() ?? newest, newest) + 1 }
    }

    /// Records the version that a reader sees. `nil` removes the reader.
    func note(_ reader: ObjectIdentifier, at version: UInt64?) { readers.withLock { $0[reader] = version } }

    // MARK: Other processes

    /// Publishes commits of other processes. Runs on the writer queue.
    private func catchUp() {
        // The next transaction repeats a failed read and reports its error.
        try? parts.database.catchUp()
        publish(parts.database.takeNews())
    }

    // MARK: Observation

    /// Notifies observers. Called by the holder of the writer, so that versions arrive in order.
    private func publish(_ news: CommitNews) {
        if news.isEmpty { return }
        var change: ReplicaChange?
        if !news.types.isEmpty {
            // Before the handlers run: they may ask for the version.
            shownVersion.store(news.version, ordering: .releasing)
            change = ReplicaChange(version: news.version, types: news.types)
        }
        if news.isOwn { bell?.ring(news.version) }
        // The handlers run without the lock: they may add and remove observers.
        let listeners = observers.withLock { $0 }
        if let change { for listener in listeners.changes.values { listener(change) } }
        if news.local { for listener in listeners.local.values { listener() } }
        if news.subscriptions { for listener in listeners.subscriptions.values { listener() } }
        if !news.left.isEmpty { for listener in listeners.left.values { listener(news.left) } }
    }

    /// Calls the handler after each commit that changed shown objects, on the committing thread. The handler must only forward the
    /// change. - Returns: the number for `removeObserver`.
    package func observeChanges(_ handler: @escaping @Sendable (ReplicaChange) -> Void) -> UInt64 {
        observers.withLock { observers in
            defer { observers.next += 1 }
            observers.changes[observers.next] = handler
            return observers.next
        }
    }

    /// Calls the handler after each commit that gives the sync engine something to send: a changeset, asymmetric objects, a subscription
    /// set. The conditions of `observeChanges` apply.
    package func onLocalChange(_ handler: @escaping @Sendable () -> Void) -> UInt64 {
        observers.withLock { observers in
            defer { observers.next += 1 }
            observers.local[observers.next] = handler
            return observers.next
        }
    }

    /// Calls the handler after each change of a subscription set's state. The conditions of `observeChanges` apply.
    package func observeSubscriptions(_ handler: @escaping @Sendable () -> Void) -> UInt64 {
        observers.withLock { observers in
            defer { observers.next += 1 }
            observers.subscriptions[observers.next] = handler
            return observers.next
        }
    }

    /// Calls the handler after each commit in which the server removed objects from the device, with at most `LeftObject.most` of them.
    /// The conditions of `observeChanges` apply.
    package func observeLeaving(_ handler: @escaping @Sendable ([LeftObject]) -> Void) -> UInt64 {
        observers.withLock { observers in
            defer { observers.next += 1 }
            observers.left[observers.next] = handler
            return observers.next
        }
    }

    package func removeObserver(_ number: UInt64) {
        observers.withLock { observers in
            observers.changes[number] = nil
            observers.local[number] = nil
            observers.subscriptions[number] = nil
            observers.left[number] = nil
        }
    }
}

/// The parts that change a replica's file, over one database. Each call of a part runs in the caller's transaction.
package struct ReplicaParts: Sendable {
    let database: ReplicaDatabase
    package let local: LocalChanges
    package let server: ServerState
    package let subscriptions: SubscriptionStore
    package let ingest: IngestQueue

    init(_ database: ReplicaDatabase, isSynced: Bool, options: ReplicaOptions, environment: any Environment) {
        self.database = database
        let reports = CompensationReports(database: database)
        subscriptions = SubscriptionStore(database: database)
        ingest = IngestQueue(database: database, reports: reports)
        local = LocalChanges(
            database, reports, isSynced: isSynced, uploadBound: options.uploadBound, environment: environment)
        server = ServerState(database, local, subscriptions, ingest, owner: options.owner)
    }
}
