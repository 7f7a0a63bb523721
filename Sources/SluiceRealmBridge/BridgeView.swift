import DequeModule
import SluiceCore
import SluicePipeline
import SluicePorts
import SluiceRealm
import SluiceWire
import SwiftProtobuf
import Synchronization

/// The views of one client file: a session of the pipeline in this process, and the translation of its messages.
///
/// One task handles the connection's orders, and the connection's consumer the session's messages. Both run on this actor. It shares the
/// connection's executor: a change that passes from one to the other needs no switch of threads.
actor BridgeView: RealmClientView {
    /// The versions that a client may have beyond the end of the log, as entries without commits have the next free one.
    private static let versionsBeyondLog: UInt64 = 65_536
    /// The time for which a message of the session is awaited at once, milliseconds.
    private static let wait = 60_000
    /// The bytes of messages that are handled without a task. More would delay other sockets.
    private static let bytesAtOnce = 16 << 10

    private nonisolated let connection: any Actor
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe connection.unownedExecutor }
    nonisolated let newest: UInt64
    nonisolated let client: RealmViewClient
    nonisolated let channel: BridgeChannel
    nonisolated let orders = BridgeOrders()
    let shared: BridgeShared
    let session: Session
    nonisolated let completion = BridgeCompletion()
    /// The classes of the session's Hello.
    let classes: Set<String>
    var stream: BridgeStream
    /// The version of the client at the opening, which the connection reads without waiting.
    private nonisolated let openedAt = Atomic<UInt64>(0)
    let keep: @Sendable ([UInt8], UInt64) async throws -> Void
    private nonisolated let onClose: @Sendable (BridgeView) -> Void
    private(set) var events: Deque<RealmViewEvent> = []
    /// `true` while the connection may not have stored the last events.
    private var isUnconfirmed = false
    /// `true` if all that must precede the first event has been awaited.
    private var isPrepared = false
    /// The entries since the last state that was stored.
    var entriesSinceState = 0
    /// A request that waits until the session has resumed: the resumption tells what the client holds.
    private var held: BridgeStream.Request?
    private var isResuming = false
    private var marks: UInt64 = 0
    /// Counts up to the last changeset that the stream has passed.
    let passed: AsyncEvent
    /// The count of `passed`, without its lock.
    private var told: UInt64 = 0
    /// The steps of uploads whose turn in the orders has not come.
    var uploads: Deque<[BridgeUploadStep]> = []
    /// Counts the uploads that were added.
    let handed: AsyncEvent
    var handedUploads: UInt64 = 0
    private var sentUploads: UInt64 = 0
    private nonisolated let confirmations = BridgeConfirmations()

    /// - Parameters:
    ///   - connection: The actor whose executor the views share.
    ///   - newest: The end of the log.
    ///   - wake: Called when `next` may have an event.
    init(
        _ client: RealmViewClient, for connection: any Actor, _ shared: BridgeShared, newest: UInt64, wake: @escaping @Sendable () -> Void,
        keep: @escaping @Sendable ([UInt8], UInt64) async throws -> Void, onClose: @escaping @Sendable (BridgeView) -> Void
    ) throws(SluiceError) {
        (self.connection, self.shared) = (connection, shared)
        let schema = try shared.schema()
        let record = client.stored.record
        let replica = BridgeReplica(record.replica)
        guard replica != nil || record.view == nil else {
            throw SluiceError(
                .badClientFile, "The state of client file \(record.file.ident) cannot be read.", fix: "The client replaces its file.")
        }
        let environment = shared.services.environment
        channel = BridgeChannel(environment: environment, pace: shared.services.fanout.pace, onWake: wake)
        let services = shared.services.local(BridgeAuthenticator(user: client.user, users: shared.services.authenticator))
        session = Session(services: services, channel: channel, numbering: .increasing, completion: completion)
        let kept = replica ?? BridgeReplica(client: 0, secret: [])
        // A version far beyond the log is of another history: the connection refuses it.
        let cursor = client.cursor <= newest + Self.versionsBeyondLog ? client.cursor : 0
        stream = try BridgeStream(client.stored, kept, schema, environment, shared.bounds, shared.commits, cursor: cursor)
        classes = Set(schema.app.schema.types.map(\.name))
        (passed, handed) = (AsyncEvent(environment: environment), AsyncEvent(environment: environment))
        // The client may know versions a few bytes beyond the end of an idle log.
        self.newest = max(newest, stream.content.last)
        (self.client, self.keep, self.onClose) = (client, keep, onClose)
    }

    nonisolated var clientVersion: UInt64 { openedAt.load(ordering: .acquiring) }

    // MARK: Opening

    /// Begins the session.
    func start() async throws {
        orders.start { await self.work() }
        let (record, replica, canResume) = (client.stored.record, stream.replica, stream.canResume(client.stored.record))
        orders.put(.message(try WireProtocol.encode(PBClientMessage(.hello(try stream.hello(record, user: client.user))))))
        let welcome = try await welcome()
        stream.take(welcome, progress: record.upload.clientVersion)
        openedAt.store(stream.content.client, ordering: .releasing)
        // The stored state may be newer than the last entry. Uploads wait for versions that were yielded.
        if stream.content.last > 0 { events.append(.advanced(stream.content.last)) }
        if replica.client == 0 {
            // Changesets are counted by this identity, so it must be durable before the first one.
            try await store()
        }
        guard canResume else { return }
        isResuming = true
        orders.put(.subscribe(BridgeStream.Subscription(query: replica.query, request: nil, forgets: false)))
    }

    private func welcome() async throws -> PBWelcome {
        await channel.untilBegun()
        try Task.checkCancellation()
        guard let message = channel.take() else {
            throw channel.error ?? SluiceError(.shuttingDown, "The session of a client file was closed.")
        }
        guard case .welcome(let welcome) = try BridgeMessage.decode(message, stream.content.bridgeSchema.codec) else {
            throw channel.error ?? SluiceError(.internalError, "The session of a client file did not begin with a welcome.")
        }
        return welcome
    }

    func heldObjects() async throws -> [OutgoingOperation.Object] { try stream.held.map { try OutgoingOperation.Object($0) } }

    // MARK: Orders

    nonisolated func build(_ request: RealmViewRequest) { orders.build(request) }

    nonisolated func repeated(_ entries: [RealmUploadEntry]) { orders.put(.repeated(entries)) }

    nonisolated func expectUpload() { orders.put(.upload) }

    nonisolated func supersede(queryVersion: UInt64) { orders.supersede(queryVersion) }

    nonisolated func confirm(_ version: UInt64) -> Bool {
        if confirmations.add(version) { channel.wake() }
        return true
    }

    func newestVersion() async throws -> UInt64 {
        let lsn = try await shared.services.snapshots.currentLSN()
        // The session announces a position at or after this one.
        orders.put(.mark)
        return lsn.rawValue
    }

    nonisolated func close() {
        guard orders.close() else { return }
        channel.close(nil)
        passed.reach(.max)
        handed.reach(.max)
        onClose(self)
        // Unstructured because: the connection does not wait for it; the state has a deadline, and the session ends at once.
        Task { await self.end() }
    }

    private func end() async {
        let isWhole = stream.isStorable && !isUnconfirmed && !events.contains(where: \.hasEntries)
        for state in isWhole ? [stream.current] : stream.remainders {
            let bytes = state.replica.bytes
            // It fails if the file has been opened again. The state that is stored is older, and suffices.
            try? await shared.services.environment.within(milliseconds: 10_000) { [keep] in try await keep(bytes, state.view) }
        }
        // The last message may register the session, so the close comes behind it.
        await orders.ended()
        await session.closed()
    }

    private func work() async {
        while let order = orders.take() { await perform(order) }
    }

    private func perform(_ order: BridgeOrders.Order) async {
        // Each message may have an answer, so the views must take the earlier ones first.
        await channel.drained(below: Limits.outboxBytes)
        switch order {
        case .message(let bytes): await session.handle(bytes)
        case .upload: await sendUpload()
        case .repeated(let entries): meet(repeated: entries)
        case .build(let request):
            guard !(isResuming && stream.isOlder) else {
                held = request
                return
            }
            let forgets = request.view.isFull || stream.mustForget
            await subscribe(BridgeStream.Subscription(query: request.view.query, request: request, forgets: forgets))
        case .subscribe(let subscription):
            // A newer request of the connection replaces it.
            guard subscription.request.map({ $0.number == orders.wanted }) ?? true else { return }
            await subscribe(subscription)
        case .mark:
            marks += 1
            await send(.mark(PBMark.with { $0.id = marks }))
        case .reconsider(let user): await session.reconsider(user: user)
        }
    }

    private func subscribe(_ subscription: BridgeStream.Subscription) async {
        if subscription.forgets { await session.forgetRows() }
        let version = stream.subscribe(subscription)
        let texts = subscription.query.queries.sorted { $0.key < $1.key }.map { RealmQueryBody.Text($0.key, $0.value) }
        do throws(SluiceError) {
            // SORT, DISTINCT and LIMIT stand where the grammar of subscriptions has none, so they are found first.
            for text in texts { _ = try text.query() }
        } catch {
            return refuse(version, error)
        }
        await send(
            .subscribe(
                PBSubscribe.with { set in
                    set.version = version
                    set.queries = texts.map { text in PBQuery.with { ($0.type, $0.text) = (text.type, text.text) } }
                }))
    }

    private func refuse(_ version: UInt64, _ error: SluiceError) {
        stream.wanted = orders.wanted
        do throws(SluiceError) {
            events += try stream.refuse(version, error)
            // The session never learns of the set, and the next upload waits for its answer.
            channel.answered.reach(version)
            // Wakes the consumer.
            channel.wake()
        } catch {
            channel.close(error)
        }
    }

    /// Sends the next upload, once the view in which its changes were made is live.
    private func sendUpload() async {
        sentUploads += 1
        for (event, value) in [(handed, sentUploads), (channel.answered, stream.newest)] {
            while event.count < value, !orders.isClosed { await event.wait(until: value, milliseconds: Self.wait) }
        }
        guard !orders.isClosed, let steps = uploads.popFirst() else { return }
        var ingest: UInt64 = 0
        for step in steps {
            switch step {
            case .ingest(let batch):
                await session.ingest(batch.objects, number: batch.number)
                ingest = batch.number
            case .message(let message):
                // The commit of a changeset tells the client that all changesets before it took effect.
                while channel.ingested.count < ingest, !orders.isClosed {
                    await channel.ingested.wait(until: ingest, milliseconds: Self.wait)
                }
                guard !orders.isClosed, !channel.isClosed else { return }
                await session.handle(message)
            }
        }
    }

    private func send(_ kind: PBClientMessage.OneOf_Kind) async {
        do throws(SluiceError) {
            await session.handle(try WireProtocol.encode(PBClientMessage(kind)))
        } catch {
            channel.close(error)
        }
    }

    // MARK: Events

    func next() async throws -> RealmViewEvent? {
        while true {
            switch try ready(isTaken: true, isBrief: false) {
            case .event(let event): return event
            case .none:
                try Task.checkCancellation()
                return nil
            case .later: try await prepare()
            }
        }
    }

    nonisolated func nextNow(isTaken: Bool) throws -> RealmReadyEvent {
        guard channel.bufferedBytes <= Self.bytesAtOnce else { return .later }
        return try assumeIsolated { try $0.ready(isTaken: isTaken, isBrief: true) }
    }

    /// - Parameter isBrief: `true` to leave bootstraps for later. The end of one may encode or erase a million objects.
    private func ready(isTaken: Bool, isBrief: Bool) throws -> RealmReadyEvent {
        if isTaken { settle() }
        while !orders.isClosed {
            guard !isStateDue, !mustStoreRepairs else { return .later }
            // Lets the uploads be acknowledged whose changesets the stream has passed.
            if told < stream.lastPassed {
                told = stream.lastPassed
                passed.reach(told)
            }
            try takeConfirmation()
            if mustRead { return .later }
            if stream.reading != nil, stream.mayRepair {
                events += try stream.repair()
                if mustRead { return .later }
            }
            if let event = events.first {
                guard isPrepared || !event.mustBePrepared else { return .later }
                events.removeFirst()
                isPrepared = false
                if event.hasEntries { isUnconfirmed = true }
                if case .changes(let entries) = event { entriesSinceState += entries.count }
                return .event(event)
            }
            if isBrief, stream.collection != nil { return .later }
            guard let message = channel.take() else {
                guard !channel.isClosed else { break }
                return .none
            }
            try handle(message)
        }
        throw channel.error ?? SluiceError(.shuttingDown, "The session of a client file was closed.")
    }

    /// Records that the connection has taken the events that were yielded.
    private func settle() {
        isUnconfirmed = false
        stream.wanted = orders.wanted
        if stream.fallback != nil, events.isEmpty { stream.settleView(superseded: orders.superseded) }
    }

    /// Awaits what must precede the next event.
    private func prepare() async throws {
        if isStateDue { try await store() }
        if mustStoreRepairs { try await storeRepairs() }
        if mustRead { try await read(stream.unresolved) }
        guard let event = events.first else { return }
        switch event {
        case .part(let part): if !part.isLast { try await storeParts() }
        case .integrated(let changeset): await durable(changeset.clientVersion)
        case .changes, .refused, .advanced, .permissionsChanged: break
        }
        isPrepared = true
    }

    /// `true` if objects must be stored before uploads are acknowledged that need them: the client sends them no more, and a changeset
    /// without effect is in no log.
    private var mustStoreRepairs: Bool { told < stream.lastPassed && stream.hasNewRepairs }

    /// `true` if objects must be read that are to be put right.
    private var mustRead: Bool { stream.mayRepair && stream.reading == nil && !stream.unresolved.isEmpty }

    private func takeConfirmation() throws(SluiceError) {
        guard let version = confirmations.take() else { return }
        let compensation = stream.confirm(version)
        guard compensation > 0 else { return }
        orders.put(.message(try WireProtocol.encode(PBClientMessage(.upload(PBUpload.with { $0.compensation = compensation })))))
    }

    /// Waits until a changeset that the stream has passed is durable. Its acknowledgement is on its way.
    private func durable(_ changeset: UInt64) async {
        while channel.acknowledged.count < changeset, !Task.isCancelled {
            await channel.acknowledged.wait(until: changeset, milliseconds: Self.wait)
        }
    }

    private func handle(_ message: [UInt8]) throws(SluiceError) {
        stream.wanted = orders.wanted
        stream.adopt(try shared.schema())
        events += try stream.handle(message)
        confirmations.awaits(!stream.replica.compensations.isEmpty || stream.content.hasManyUnconfirmed)
        // Also if the resumption exceeds one entry: the view is built anew then.
        if isResuming, !stream.isBehind || stream.hasResumed { isResuming = false }
        if let request = held, !isResuming {
            held = nil
            if request.number == orders.wanted { orders.put(.build(request)) }
        }
        if let needed = stream.needed {
            stream.needed = nil
            orders.put(.subscribe(needed))
        }
    }

    /// Reads objects of which the client may have another state than the server.
    private func read(_ objects: Set<ObjectKey>) async throws {
        stream.reading = BridgeStream.Reading(objects: objects)
        let rows = try await session.visibleRows(of: objects)
        stream.take(rows, at: try await shared.services.snapshots.currentLSN())
        // The session announces a position at or after this one.
        orders.put(.mark)
    }
}

extension RealmViewEvent {
    /// `true` if the connection stores a part of the event.
    fileprivate var hasEntries: Bool {
        switch self {
        case .part, .changes: true
        case .refused, .advanced, .integrated, .permissionsChanged: false
        }
    }

    /// `true` if something must be durable before the event.
    fileprivate var mustBePrepared: Bool {
        switch self {
        case .part, .integrated: true
        case .changes, .refused, .advanced, .permissionsChanged: false
        }
    }
}
