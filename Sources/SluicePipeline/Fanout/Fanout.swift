package import Logging
package import SluiceCore
import SluiceMatch
package import SluicePorts
import SluiceQuery
import SluiceWire

/// Matches released commits against the views of all sessions and sends each session its part.
///
/// Every change is decoded once and every distinct message is encoded once: sessions with equal changes share one frame. A session with
/// more than `Limits.outboxBytes` queued is disconnected with `slow-client` and returns by bootstrap. It never delays the others.
package actor Fanout {
    typealias SubscriberID = UInt32

    /// A reference to a subscriber that may outlive it. `turn` detects that the number belongs to another subscriber.
    package struct Handle: Hashable, Sendable {
        fileprivate let id: SubscriberID
        fileprivate let turn: UInt32
    }

    private let authority: any SchemaAuthority
    private let frames: any FrameMaker
    private let environment: any Environment
    private let logger: Logger
    private var schema: AppSchema
    private var index: PredicateIndex
    private var subscribers: [Subscriber?] = []
    private var free: [SubscriberID] = []
    /// The number of times that each subscriber number has been freed.
    private var turns: [UInt32] = []
    private var delivered = DeliveredTransactions()
    private var result = MatchResult()
    private var decoder: ChangeDecoder
    private var touched: [SubscriberID] = []
    /// Subscribers with a position to report. Some may have received it already or be gone.
    private var wanting: [SubscriberID] = []
    private let advanced: AsyncEvent
    /// Records what the sessions in this process have taken.
    package nonisolated let pace: LocalPace
    private let marks: WALHeartbeatWriter?
    private let observer: any SessionObserver
    private var uploads: TracedUploads?
    package private(set) var watermark: LSN = .zero
    /// A transaction that identifies the watermark.
    private var witness: HistoryAnchor?
    /// The latest time of a client's write up to the watermark.
    private var writeTime = HybridTime.zero
    /// The time of the newest delivered commit of a class with subscribers, in microseconds since 1970; for the lag metric.
    package private(set) var lastCommitTime: Int64 = 0

    /// - Parameter marks: Writes WAL heartbeats for awaited positions; nil waits for the next commit.
    package init(
        authority: any SchemaAuthority, frames: any FrameMaker, environment: any Environment, logger: Logger,
        marks: WALHeartbeatWriter? = nil,
        observer: any SessionObserver = NoSessionObserver(), tracer: (any UploadTracer)? = nil
    ) {
        self.marks = marks
        self.observer = observer
        uploads = tracer.map(TracedUploads.init)
        self.authority = authority
        self.frames = frames
        self.environment = environment
        self.logger = logger
        let schema = authority.current()
        self.schema = schema
        index = PredicateIndex(indexedProperties: Fanout.indexedProperties(schema), seed: environment.random())
        decoder = ChangeDecoder(schema: schema.schema)
        advanced = AsyncEvent(environment: environment)
        pace = LocalPace(environment: environment)
    }

    private static func indexedProperties(_ schema: AppSchema) -> [Int?] {
        schema.schema.types.map { schema.fields.indexedProperty(of: $0) }
    }

    /// Adopts a new schema version. Classes are only appended, so entries of the index stay valid.
    private func refreshSchema() {
        let current = authority.current()
        guard current.version != schema.version else { return }
        schema = current
        index.setIndexedProperties(Fanout.indexedProperties(current))
        decoder = ChangeDecoder(schema: current.schema)
    }

    // MARK: Sessions

    /// Adds a subscriber. A staged one collects changes until `activate`; a live one receives them at once.
    package func add(_ channel: any SessionChannel, view: View, staged: Bool, client: ClientID? = nil) -> Handle {
        refreshSchema()
        // Reuse numbers, so that the array of subscribers stays dense.
        let id = free.popLast() ?? SubscriberID(subscribers.count)
        let subscriber = Subscriber(channel: channel, view: view, client: client, staged: staged ? StagedChanges() : nil)
        if Int(id) == subscribers.count {
            subscribers.append(subscriber)
            turns.append(0)
        } else {
            subscribers[Int(id)] = subscriber
        }
        // A staged subscriber is matched like a live one: its changes are staged from here on.
        for type in view.types {
            let entries = type.predicate.indexForm(indexedProperty: schema.fields.indexedProperty(of: schema.schema.types[type.type]))
            index.add(subscriber: id, type: type.type, entries: entries)
        }
        return Handle(id: id, turn: turns[Int(id)])
    }

    /// Removes a subscriber. Does nothing if it has already been removed.
    /// - Returns: the position that the subscriber still has to be notified of.
    @discardableResult
    package func remove(_ handle: Handle) -> LSN? {
        guard let id = number(of: handle) else { return nil }
        let wanted = subscribers[Int(id)]?.wanted
        remove(id)
        return wanted
    }

    private func remove(_ id: SubscriberID) {
        index.remove(subscriber: id)
        subscribers[Int(id)] = nil
        // Invalidates handles before the number is reused.
        turns[Int(id)] &+= 1
        free.append(id)
    }

    private func number(of handle: Handle) -> SubscriberID? { turns[Int(handle.id)] == handle.turn ? handle.id : nil }

    /// The extent of the delivery now.
    var mark: DeliveredTransactions.Mark { delivered.mark }

    /// Returns `true` if a snapshot misses a transaction delivered before the snapshot was requested. It must be taken again then.
    /// - Parameter mark: The extent before the snapshot. For a staged subscriber it is taken after `add`, because staging covers later
    ///   changes.
    func contradicts(_ snapshot: TransactionSnapshot, at mark: DeliveredTransactions.Mark) -> Bool {
        delivered.contradict(snapshot, at: mark)
    }

    /// Completes a bootstrap: sends the changes that the snapshot lacks, then the end, and puts the subscriber live in place of `old`.
    /// The actor does not suspend in between, so no commit can pass.
    /// - Parameters:
    ///   - beginning: The unsent frames of the bootstrap.
    ///   - taken: The number up to which the snapshot contains the client's changesets.
    ///   - pending: The objects whose write times the client requested.
    /// - Returns: `false` if the subscriber is gone, too much was staged, or the snapshot misses a truncation. The bootstrap must start
    ///   again then.
    func activate(
        _ handle: Handle, replacing old: Handle?, after beginning: [Frame], snapshot: TransactionSnapshot, rows: UInt64, held: PBHeld,
        taken: UInt64, pending: PendingObjects = PendingObjects()
    ) -> Bool {
        guard let id = number(of: handle), let subscriber = subscribers[Int(id)], let staged = subscriber.staged else { return false }
        guard !staged.requiresAnother(than: snapshot) else { return false }
        activate(
            id, subscriber, replacing: old, after: beginning, staged.unseen(by: snapshot),
            BootstrapEnd(
                rows: rows, types: subscriber.view.types.map { schema.schema.types[$0.type].name }, held: held,
                taken: max(taken, staged.changeset)), pending)
        return true
    }

    /// Completes a resumption: sends the log's changes and the staged ones, then the end. The client keeps all other objects.
    /// - Returns: `false` if the subscriber is gone, too much was staged, a class was truncated, or the watermark is behind the log's
    ///   part.
    func activate(
        _ handle: Handle, replacing old: Handle?, after beginning: [Frame], tail: LogTail, held: PBHeld,
        pending: PendingObjects = PendingObjects()
    ) -> Bool {
        guard let id = number(of: handle), let subscriber = subscribers[Int(id)], let staged = subscriber.staged else { return false }
        guard watermark >= tail.reached, let words = staged.words(after: tail) else { return false }
        activate(
            id, subscriber, replacing: old, after: beginning, words,
            BootstrapEnd(rows: 0, types: nil, held: held, taken: max(tail.changeset, staged.changeset)), pending)
        return true
    }

    private func activate(
        _ id: SubscriberID, _ subscriber: Subscriber, replacing old: Handle?, after beginning: [Frame], _ late: [StagedChanges.Change],
        _ end: BootstrapEnd, _ pending: PendingObjects
    ) {
        var (subscriber, end, messages) = (subscriber, end, beginning)
        let frames = frames(of: subscriber)
        for message in BootstrapMessages.late(late, schema: schema.schema, pending) {
            messages.append(frames.frame(message.bytes))
            end.rows += message.rows
        }
        // The end and the view record carry the current watermark: every change up to it was read, is in the tail or was staged.
        end.held.lsn = watermark.rawValue
        end.held.position = witness
        messages.append(frames.frame(BootstrapMessages.end(end, version: subscriber.view.version, lsn: watermark, writeTime: writeTime)))
        subscriber.staged = nil
        // The new subscriber inherits the position that the old one still had to report.
        let replaced = old.flatMap(number)
        if let replaced, let wanted = subscribers[Int(replaced)]?.wanted {
            subscriber.wanted = wanted
            wanting.append(id)
        }
        subscribers[Int(id)] = subscriber
        // Remove the old one in the same step, so that each commit reaches exactly one of the two.
        if let replaced { remove(replaced) }
        subscriber.channel.send(messages)
    }

    /// Notifies the client once delivery has passed `lsn`, even if no change concerned it.
    /// - Parameter isCommit: `true` if a commit is at or just before `lsn`, so that the position advances without a heartbeat in general.
    /// - Returns: `false` if the subscriber is gone; no notification follows then.
    package func announce(_ lsn: LSN, isCommit: Bool, to handle: Handle) -> Bool {
        guard let id = number(of: handle), let subscriber = subscribers[Int(id)] else { return false }
        if watermark >= lsn {
            sendPosition(id)
        } else {
            subscribers[Int(id)]?.wanted = max(subscriber.wanted ?? .zero, lsn)
            // The local copy has the state before the assignment: append only once.
            if subscriber.wanted == nil { wanting.append(id) }
            // A commit moves the watermark by itself, mostly up to this position. Any other position may need a heartbeat at once.
            if isCommit { marks?.want(commit: lsn) } else { marks?.want(lsn) }
        }
        return true
    }

    /// Waits until everything up to `lsn` has been delivered.
    /// - Throws: `timeout` after `milliseconds`, `CancellationError`.
    package func passed(_ lsn: LSN, milliseconds: Int) async throws {
        if watermark >= lsn { return }
        marks?.want(lsn)
        // The wait also ends on cancellation and at the deadline.
        await advanced.wait(until: lsn.rawValue, milliseconds: milliseconds)
        try Task.checkCancellation()
        guard watermark >= lsn else {
            throw SluiceError(
                .timeout, "The log has not reached \(lsn) after \(milliseconds) ms; its watermark is \(watermark).",
                fix: "Check that a gateway holds the replication slot and Kafka answers (metrics sluice_publisher, sluice_slot_bytes).")
        }
    }

    private func frames(of subscriber: Subscriber) -> any FrameMaker { subscriber.channel.isLocal ? MessageFrames() : frames }

    private func sendPosition(_ id: SubscriberID) {
        guard let subscriber = subscribers[Int(id)] else { return }
        // Cleared at once, so that the position is reported once. An earlier request may await a later position.
        if let wanted = subscriber.wanted, wanted <= watermark { subscribers[Int(id)]?.wanted = nil }
        var writer = CommitsWriter()
        subscriber.channel.send([frames(of: subscriber).frame(writer.finish(watermark, witness: witness))])
    }

    // MARK: Commits

    /// Delivers one step of the watermark to every session. Sends before it publishes the watermark to waiters.
    package func deliver(_ batch: ReleasedBatch) {
        uploads?.begin(environment)
        refreshSchema()
        match(batch)
        // Set the watermark before sending: the frames carry it.
        watermark = batch.watermark
        witness = batch.witness ?? witness
        writeTime = max(writeTime, batch.writeTime)
        // Before sending: a session with a gap must not receive the changes after it.
        resynchronise(batch.resync)
        send(batch)
        tellPositions()
        marks?.passed(watermark)
        advanced.reach(watermark.rawValue)
        uploads?.end(environment)
    }

    private func match(_ batch: ReleasedBatch) {
        // The buffers serve one batch. Tokens refer to them until `send` has encoded the frames.
        decoder.removeAll()
        touched.removeAll(keepingCapacity: true)
        for (recordIndex, record) in batch.records.enumerated() {
            // Also for classes without subscribers: a bootstrap may start for them next.
            delivered.insert(record.xid)
            guard let change = decoder.decode(record.bytes, needed: { index.hasSubscribers(type: $0) }) else { continue }
            lastCommitTime = max(lastCommitTime, change.commitTime)
            if change.operation == .truncate {
                truncate(change.type, by: record.xid)
                continue
            }
            decoder.withRows(change) { before, after in
                index.match(type: change.type, before: before, after: after, into: &result)
            }
            for match in result { note(match, recordIndex, change, record) }
            if !result.isEmpty { uploads?.note(change) }
        }
    }

    /// Queues one match for a live subscriber, or stages it.
    private func note(_ match: MatchResult.Element, _ recordIndex: Int, _ change: DecodedChange, _ record: PendingRecord) {
        let id = match.subscriber
        var event = ViewEvent(transition: match.transition, operation: change.operation)
        // The match knows only that the row left; the view knows if the rules hide it.
        if event == .leftQuery { event = reason(id, change) }
        guard subscribers[Int(id)]?.staged == nil else {
            stage(id, event, change, record)
            return
        }
        // Once a batch: the first token of a subscriber.
        if subscribers[Int(id)]?.tokens.isEmpty == true { touched.append(id) }
        subscribers[Int(id)]?.tokens.append(Token(record: recordIndex, event: event, change: change.index))
        if subscribers[Int(id)]?.changeset(of: change) ?? 0 > 0 { subscribers[Int(id)]?.hasOwn = true }
    }

    /// Returns the reason why an existing object left the view.
    private func reason(_ id: SubscriberID, _ change: DecodedChange) -> ViewEvent {
        guard let type = subscribers[Int(id)]?.view.type(change.type) else { return .leftQuery }
        return decoder.withRows(change) { _, after in after.map { type.reason(after: $0) } ?? .leftQuery }
    }

    private func stage(_ id: SubscriberID, _ event: ViewEvent, _ change: DecodedChange, _ record: PendingRecord) {
        guard let type = subscribers[Int(id)]?.view.type(change.type) else { return }
        // Encode now, because the decoder reuses its buffers for the next batch.
        let row = event.hasRow ? decoder.row(of: change, mask: type.mask) : nil
        let changeset = subscribers[Int(id)]?.changeset(of: change) ?? 0
        subscribers[Int(id)]?.staged?.append(
            .init(
                transaction: .init(xid: record.xid, changeset: changeset, commitTime: change.commitMilliseconds), type: change.type,
                key: decoder.key(of: change), row: row, position: record.position, leaving: event.hasRow ? nil : event,
                times: event.hasRow ? decoder.times(of: change, in: record.bytes, type) : []))
    }

    /// Handles a truncation. Live sessions with the class return by difference bootstrap, because the gateway does not track the objects
    /// of each session.
    private func truncate(_ type: Int, by xid: UInt32) {
        for id in subscribers.indices {
            guard let subscriber = subscribers[id], subscriber.view.type(type) != nil else { continue }
            if subscriber.staged != nil {
                // The snapshot decides later if the bootstrap must start again.
                subscribers[id]?.staged?.truncated(by: xid)
            } else {
                drop(
                    SubscriberID(id),
                    SluiceError(.resync, "All objects of class \(schema.schema.types[type].name) were truncated."))
            }
        }
    }

    /// Disconnects the sessions that read partitions with lost records.
    private func resynchronise(_ partitions: Set<LogPartition>) {
        guard !partitions.isEmpty else { return }
        for id in subscribers.indices {
            guard let subscriber = subscribers[id], !partitions.isDisjoint(with: subscriber.view.partitions) else { continue }
            drop(SubscriberID(id), SluiceError(.resync, "The log lost records of a partition that this session reads."))
        }
    }

    private func drop(_ id: SubscriberID, _ error: SluiceError) {
        // Removed first, so that the rest of this step sends it nothing.
        guard let subscriber = subscribers[Int(id)] else { return }
        remove(id)
        // A client that reads nothing would not read the error either.
        if error.code != .slowClient { subscriber.channel.send([frames(of: subscriber).frame(SessionMessages.error(error))]) }
        subscriber.channel.close(error)
    }

    /// Sends the queued changes. Sessions with equal tokens share one frame.
    private func send(_ batch: ReleasedBatch) {
        if touched.isEmpty { return }
        var shared: [SharedKey: [Frame]] = [:]
        var (changes, oldest) = (0, Int64.max)
        for id in touched {
            // A truncation or a gap of this batch may have removed the subscriber.
            guard let subscriber = subscribers[Int(id)] else { continue }
            // Masked rows and a client's own changeset numbers differ by session, so those frames are not shared.
            let isOwn = subscriber.hasOwn || subscriber.view.types.contains { $0.mask != nil }
            let key = SharedKey(tokens: subscriber.tokens, alone: isOwn ? id : nil, isLocal: subscriber.channel.isLocal)
            changes += subscriber.tokens.count
            if let first = subscriber.tokens.first { oldest = min(oldest, decoder.change(first.change).commitTime) }
            var messages = shared[key]
            if messages == nil {
                let encoder = CommitsEncoder(
                    batch: batch, decoder: decoder, schema: schema.schema, frames: frames(of: subscriber), witness: witness)
                messages = encoder.encode(subscriber)
                shared[key] = messages
            }
            subscribers[Int(id)]?.tokens.removeAll(keepingCapacity: true)
            subscribers[Int(id)]?.hasOwn = false
            // The frame carries the watermark, so it also serves as the awaited notification.
            if let wanted = subscriber.wanted, wanted <= batch.watermark { subscribers[Int(id)]?.wanted = nil }
            subscriber.channel.send(messages ?? [])
            // Checked after sending, because these frames count too.
            if subscriber.channel.bufferedBytes > Limits.outboxBytes {
                drop(
                    id,
                    SluiceError(
                        .slowClient, "\(subscriber.channel.bufferedBytes) bytes wait for this client; the limit is \(Limits.outboxBytes)."))
            }
        }
        observer.delivered(changes: changes, commitTime: oldest)
    }

    /// Notifies subscribers whose awaited position has been reached.
    private func tellPositions() {
        guard !wanting.isEmpty else { return }
        let before = wanting
        wanting.removeAll(keepingCapacity: true)
        for id in before {
            // A frame of this step may have served as the notification, or the subscriber is gone.
            guard let wanted = subscribers[Int(id)]?.wanted else { continue }
            if wanted <= watermark { sendPosition(id) } else { wanting.append(id) }
        }
    }
}
