package import SluiceCore
import Dispatch
import Synchronization

/// The local database of one user of one app: one SQLite file with what the server said, what the app wrote and the
/// server does not have yet, and the subscription sets (DESIGN section 6).
///
/// ```
/// <Class>                     what apps see: a table per class, a column per property
/// _sluice_server              server rows of objects that have pending writes, with their clocks; NULL: not in the view, not known
/// _sluice_pending             changesets until the file has applied the commit that holds them
/// _sluice_pending_change      their changes, one row each
/// _sluice_subscription_set, _sluice_subscription
/// _sluice_staging_<Class>     rows of a bootstrap under way
/// _sluice_earlier_<Class>     rows of the interrupted one that it goes on from
/// _sluice_ingest              asymmetric objects until they are acknowledged
/// _sluice_error               refusals that the app has not been told about
/// _sluice_link                links in collections, embedded objects and mixed values, by target
/// _sluice_link_dirty          rows whose links of this kind changed in a transaction under way
/// _sluice_inverse             the properties that _sluice_link covers
/// _sluice_commit              what the latest commits touched, for other processes; its last number is the state's version
/// _sluice_meta                format version, identity, position, counters, clock
/// ```
/// What apps see of an object = server row ⊕ its pending changes. All writing happens on one queue; reading goes through
/// `ReplicaReader`s, which never wait for it.
package final class Replica: Sendable {
    /// The file's path.
    package let path: String
    /// The classes in the order in which they were given; type indices of this replica refer to it.
    package let schema: Schema
    /// False for a file that no server knows: nothing is kept for upload, and no subscription is needed to write.
    package let isSynced: Bool
    let layouts: [TableLayout]
    let links: LinkIndex
    let options: ReplicaOptions
    /// All writing happens here.
    private let queue = DispatchQueue(label: "sluice.replica", qos: .userInitiated)
    let writer: Writer
    /// For questions that no writer is waited for with.
    let committed: CommittedState
    private let observers = Mutex(Observers())
    /// The versions that readers stand on.
    private let readers = Mutex<[ObjectIdentifier: UInt64]>([:])
    /// Of the database of a temporary file, see `ReplicaFile.number(of:)`.
    private let fileNumber: UInt64?
    /// Tells other processes of commits, and this one of theirs.
    private let bell: CommitBell?

    private struct Observers {
        var next: UInt64 = 1
        var changes: [UInt64: @Sendable (ReplicaChange) -> Void] = [:]
        var local: [UInt64: @Sendable () -> Void] = [:]
        var subscriptions: [UInt64: @Sendable () -> Void] = [:]
        var left: [UInt64: @Sendable ([LeftObject]) -> Void] = [:]
    }

    /// The version of the newest state that observers have been told of. It grows with each commit, of any process, that changes what
    /// apps see.
    package var version: UInt64 { shownVersion.load(ordering: .acquiring) }
    private let shownVersion = Atomic<UInt64>(0)

    /// Opens the file, making it when it is missing, and fits its tables to the schema. Several processes may have it open, with the same
    /// classes; they write one at a time.
    /// - Parameters:
    ///   - indexes: the properties, by class, that get an index for queries. Those that had one and are not named lose it.
    /// - Throws: `replicaVersion` when a newer release wrote the file, `replicaCorrupt` when it is no local file or
    ///   damaged, `invalidSchemaChange` when the schema cannot be stored, or is not that of a file opened for reading only.
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
        writer = Writer(
            connection: try Connection.open(path: path, options.isReadOnly ? .readOnly : .writer(isTemporary: options.isTemporary)),
            layouts: layouts, links: links, isSynced: isSynced, owner: options.owner, uploadBound: options.uploadBound,
            environment: environment)
        fileNumber = options.isTemporary ? ReplicaFile.number(of: path) : nil
        committed = CommittedState(path: path, isReadOnly: options.isReadOnly)
        if options.isReadOnly {
            try writer.openReadOnly()
            bell = nil
        } else {
            let indexes = PropertyIndexes(indexes, layouts: layouts)
            try options.isUnfitted ? writer.openUnfitted() : writer.open(indexes: indexes, shouldCompact: options.shouldCompact)
            bell = options.isTemporary ? nil : CommitBell(path: path)
        }
        shownVersion.store(writer.version, ordering: .releasing)
        bell?.start(on: queue) { [weak self] in self?.catchUp() }
    }

    deinit {
        bell?.stop()
        if options.isTemporary { ReplicaFile.remove(path, numbered: fileNumber) }
    }

    /// A connection of its own for reading, at the newest state.
    package func makeReader() throws(SluiceError) -> ReplicaReader { try ReplicaReader(of: self) }

    // MARK: Writer queue

    /// Runs the body on the writer queue, outside of a transaction.
    func onWriter<R: Sendable>(
        _ body: @escaping @Sendable (Writer) throws(SluiceError) -> R
    ) async throws(SluiceError) -> R {
        let result = await withCheckedContinuation { (continuation: CheckedContinuation<Result<R, SluiceError>, Never>) in
            queue.async { [writer] in
                continuation.resume(returning: Result { () throws(SluiceError) in try body(writer) })
            }
        }
        return try result.get()
    }

    /// Runs the body as one transaction on the writer queue and publishes what it did.
    func commit<R: Sendable>(
        isDurable: Bool = false, _ body: @escaping @Sendable (Writer) throws(SluiceError) -> R
    ) async throws(SluiceError) -> R {
        try await onWriter { writer throws(SluiceError) in
            let result = try writer.transaction(isDurable: isDurable) { () throws(SluiceError) in try body(writer) }
            self.publish(writer.takeNews())
            return result
        }
    }

    /// The same for callers that wait: it blocks until earlier transactions are done.
    func commitNow<R>(_ body: (Writer) throws(SluiceError) -> R) throws(SluiceError) -> R {
        try readNow { writer throws(SluiceError) in
            let result = try writer.transaction(isDurable: true) { () throws(SluiceError) in try body(writer) }
            publish(writer.takeNews())
            return result
        }
    }

    func readNow<R>(_ body: (Writer) throws(SluiceError) -> R) throws(SluiceError) -> R {
        let result = queue.sync { [writer] in Result { () throws(SluiceError) in try body(writer) } }
        return try result.get()
    }

    /// Begins a local write: blocks until the writer is free, and keeps it until `commit` or `cancel`. Waits up to 10 seconds for another
    /// process that is writing.
    /// - Throws: `writeNotAllowed` when the file was opened for reading only; `timeout`.
    package func beginWrite() throws(SluiceError) -> WriteTransaction {
        let turn = DispatchSemaphore(value: 0)
        let lease = WriterLease(lapses: false) { turn.signal() }
        queue.async { lease.hold() }
        turn.wait()
        // Nobody else has the lease, and it does not lapse.
        guard let transaction = try beginWrite(lease) else { throw SluiceError(.internalError, "The writer was not held.") }
        return transaction
    }

    /// Asks for the writer without waiting.
    /// - Parameter news: called once, on any thread: when the lease can be claimed by `beginWrite(_:)`, or is over.
    package func askForWriter(_ news: @escaping @Sendable () -> Void) -> WriterLease {
        let lease = WriterLease(lapses: true, news: news)
        queue.async { lease.hold() }
        return lease
    }

    /// Begins a local write with a lease that was asked for.
    /// - Parameter isDurable: see `WriteTransaction.commit`.
    /// - Returns: nil when the lease is over, or its time has not come.
    package func beginWrite(_ lease: WriterLease, isDurable: Bool = true) throws(SluiceError) -> WriteTransaction? {
        guard lease.claim() else { return nil }
        if options.isReadOnly {
            lease.release()
            throw SluiceError(.writeNotAllowed, "The local file was opened for reading only.", fix: "Open it without readOnly.")
        }
        do throws(SluiceError) {
            let transaction = try WriteTransaction(writer: writer, lease: lease, isDurable: isDurable) { [weak self] news in
                self?.publish(news)
            }
            // What others have committed is told on its own, before anything of this transaction.
            publish(writer.takeNews())
            return transaction
        } catch {
            lease.release()
            throw error
        }
    }

    /// Calls back when everything that has been committed is on the disk.
    package func waitForDisk(_ done: @escaping @Sendable (Result<Void, SluiceError>) -> Void) {
        queue.async { [writer] in done(Result { () throws(SluiceError) in try writer.connection.syncLog() }) }
    }

    // MARK: Versions that are read

    /// How many states the file keeps because somebody in this process reads one: from the oldest that is read to the newest.
    package var activeVersions: UInt64 {
        let newest = version
        return readers.withLock { readers in newest - min(readers.values.min() ?? newest, newest) + 1 }
    }

    /// A reader has moved to a version; nil: it is gone.
    func note(_ reader: ObjectIdentifier, at version: UInt64?) { readers.withLock { $0[reader] = version } }

    // MARK: Other processes

    /// On the writer queue, when another process may have committed.
    private func catchUp() {
        // What cannot be read now is read before the next transaction, whose error is its caller's.
        try? writer.catchUp()
        publish(writer.takeNews())
    }

    // MARK: Observation

    /// By whoever holds the writer, so that observers hear of versions in order.
    private func publish(_ news: WriterNews) {
        if news.isEmpty { return }
        var change: ReplicaChange?
        if !news.types.isEmpty {
            shownVersion.store(news.version, ordering: .releasing)
            change = ReplicaChange(version: news.version, types: news.types)
        }
        if news.isOwn { bell?.ring(news.version) }
        let listeners = observers.withLock { $0 }
        if let change { for listener in listeners.changes.values { listener(change) } }
        if news.local { for listener in listeners.local.values { listener() } }
        if news.subscriptions { for listener in listeners.subscriptions.values { listener() } }
        if !news.left.isEmpty { for listener in listeners.left.values { listener(news.left) } }
    }

    /// Calls the handler after each commit that changed what apps see, on the thread that committed: it must only pass
    /// the news on. - Returns: the number for `removeObserver`.
    package func observeChanges(_ handler: @escaping @Sendable (ReplicaChange) -> Void) -> UInt64 {
        observers.withLock { observers in
            defer { observers.next += 1 }
            observers.changes[observers.next] = handler
            return observers.next
        }
    }

    /// Calls the handler after each commit that gives the sync engine something to send: a changeset, asymmetric
    /// objects, a subscription set. The same conditions hold as for `observeChanges`.
    package func onLocalChange(_ handler: @escaping @Sendable () -> Void) -> UInt64 {
        observers.withLock { observers in
            defer { observers.next += 1 }
            observers.local[observers.next] = handler
            return observers.next
        }
    }

    /// Calls the handler after each change of a subscription set's state. The same conditions hold.
    package func observeSubscriptions(_ handler: @escaping @Sendable () -> Void) -> UInt64 {
        observers.withLock { observers in
            defer { observers.next += 1 }
            observers.subscriptions[observers.next] = handler
            return observers.next
        }
    }

    /// Calls the handler after each commit in which the server took objects off the device, with `LeftObject.most` of them at most. The same
    /// conditions hold.
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
