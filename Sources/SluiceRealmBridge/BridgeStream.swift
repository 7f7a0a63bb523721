import DequeModule
import SluiceCore
import SluicePorts
import SluiceRealm
import SluiceWire

/// The translation of a file's session into the events of its views, as pure code.
///
/// ```
///              end of a view that the client takes
///   behind ─────────────────────────────────────────▶ in step
///      ▲                                                 │
///      └─────────────────────────────────────────────────┘
///              end of a view that the client does not take
/// ```
///
/// While the stream is behind, the session sends another view than the client has. Its commits are dropped: a bootstrap follows.
///
/// Not copyable: a call for a copyable structure that an actor stores copies its references, forty for each message.
struct BridgeStream: ~Copyable {
    /// A subscription set of the hidden session.
    struct Subscription {
        var query: RealmQuerySet
        /// The request of the connection; nil if the bridge itself subscribes.
        var request: Request?
        /// `true` if the session was told to forget the client's rows.
        var forgets: Bool
        var isComplete = false
    }

    /// A view that the connection asked for.
    struct Request {
        /// The number of the request.
        var number: UInt64
        var view: RealmViewRequest
    }

    /// The state before a view that the client may not take.
    struct Fallback {
        var content: BridgeContent
        var replica: BridgeReplica
        var request: Request
        var uncertain: UInt64
        /// The version of the view.
        var version: UInt64
        /// `true` if the client receives the view in several parts. It may have some of them.
        var isCut = false
    }

    var content: BridgeContent
    var steps: BridgeSteps
    var replica: BridgeReplica
    /// The last state that was stored.
    var kept: StoredState
    /// The objects that the client has made since then, with the numbers of their changesets. At most `BridgeReplica.mostObjects`.
    var created: [ObjectKey: UInt64] = [:]
    let environment: any Environment
    let bounds: BridgeBounds
    /// Shared with the streams of other files.
    private let commits: SharedCommits
    var isBehind = true
    /// `true` if the session's view record names rows that the client does not have.
    var isRecordStale = false
    var subscriptions: [UInt64: Subscription] = [:]
    /// The version of the last hidden set.
    private(set) var newest: UInt64 = 0
    var collection: BridgeCollection?
    /// The estimated number of rows in the bootstrap; 0 if unknown.
    var expected: UInt64 = 0
    /// The content before the last view that was yielded. It returns if the client does not take the view.
    var fallback: Fallback?
    /// The state that is stored with the last view.
    var viewState: StoredState?
    /// The large bootstrap whose first slices were yielded.
    var slices: Slices?
    /// The objects in parts of bootstraps that did not end; nil if they are too many.
    var leftovers: Set<ObjectKey>?
    var own: [UInt64: OwnChangeset] = [:]
    /// The numbers in `own`, in the order of the uploads. One upload may have very many.
    var ownOrder: Deque<UInt64> = []
    /// The acknowledgements that the stream has not reached: a number, and a position at or after its commit.
    var acknowledgements: Deque<(number: UInt64, lsn: LSN)> = []
    /// The last changeset that the stream has passed; 0 before the first.
    var lastPassed: UInt64 = 0
    /// The version of the stream before each changeset of the file took effect in it.
    var boundaries: [UInt64: UInt64] = [:]
    /// The version of the client and the passed changeset up to which the records of lists were confirmed.
    var listsConfirmed = (version: UInt64(0), passed: UInt64(0))
    /// The events of changesets that the stream has just passed.
    var passed: [RealmViewEvent] = []
    /// The objects that the client must receive again.
    var repairs: [ObjectKey: Repair] = [:]
    var compensations: [Compensation] = []
    /// The rows that are read to put objects right; nil for none.
    var reading: Reading?
    /// The compensating writes that are in the stored stream, with the versions of their entries.
    let reported: [ReportedChangeset: UInt64]
    /// The changeset up to which asymmetric objects were ingested in earlier sessions.
    private(set) var ingested: UInt64 = 0
    /// The objects that were put right, with the versions of entries that the client has not confirmed.
    var repaired: [ObjectKey: UInt64] = [:]
    /// The last version with which the session's view record has changed; 0 once the client has confirmed it. The connection may drop it,
    /// as the part of a view that a newer request has replaced.
    var refreshed: UInt64 = 0
    /// The number of the last request of the connection that was answered.
    var finished: UInt64 = 0
    /// The time of the last changeset of the file.
    var uploadTime: HybridTime
    /// The number of the last request of the connection.
    var wanted: UInt64 = 0
    /// `true` while the connection waits for a view. It drops the entries that come meanwhile, because the view covers them.
    var isBuilding: Bool { wanted > finished }
    /// The set that the bridge must subscribe to; nil for none.
    var needed: Subscription?

    /// - Parameter cursor: The version that the client has.
    init(
        _ stored: StoredRealmClient, _ replica: BridgeReplica, _ schema: BridgeSchema, _ environment: any Environment,
        _ bounds: BridgeBounds = BridgeBounds(), _ commits: SharedCommits = SharedCommits(), cursor: UInt64 = 0
    ) throws(SluiceError) {
        (self.replica, self.commits) = (replica, commits)
        kept = StoredState(replica: replica, view: stored.record.view?.serverVersion ?? 0)
        (self.environment, self.bounds, leftovers) = (environment, bounds, replica.parts)
        uploadTime = .zero
        steps = BridgeSteps(newest: replica.writeTime)
        let received = max(ClientStream(stored).lastVersion, cursor)
        let version = max(received, replica.version)
        content = BridgeContent(stored.record.file, schema, sentSchema: replica.schema, forgotten: version)
        content.last = version
        content.isExact = replica.objects != nil
        content.memory.view = replica.objects ?? []
        content.restore(replica.barriers, received: cursor, except: Set(stored.entries.map(\.serverVersion)))
        content.lists = replica.lists
        // The client did not receive what the stored stream lacks.
        content.lists.forget(after: version)
        repairs = replica.repairs
        var reported: [ReportedChangeset: UInt64] = [:]
        for compensation in stored.record.compensations + stored.entries.compactMap(\.compensation) {
            let isAsymmetric = compensation.rejected.first.map { schema.app.schema[$0.table]?.kind == .asymmetric } ?? false
            let changeset = ReportedChangeset(number: compensation.clientVersion, isAsymmetric: isAsymmetric)
            reported[changeset] = compensation.serverVersion
        }
        self.reported = reported
        for entry in stored.entries {
            let isNew = entry.serverVersion > replica.version
            try content.restore(
                entry, isNew: isNew, hasNewLists: entry.serverVersion > max(replica.version, replica.listed),
                isReceived: entry.serverVersion <= cursor)
        }
        // A position older than the stream does not describe the client: only the log can bring it up to date.
        isOlder = received > replica.version
        // The write times up to the stored version are known, and the client has seen no later ones. Without this step, its pending
        // changesets would count as later than what the log brings next.
        if replica.version > 0, !isOlder {
            steps.restore(replica.steps)
            if replica.version > steps.end { steps.add(replica.version, replica.lsn, time: replica.writeTime) }
        }
    }

    /// The version of an entry that makes up for an older state, if the client may not have it; 0 for none. Until then, the content may
    /// name objects that the client lacks.
    var uncertain: UInt64 = 0
    /// `true` if the content may lack changes that the stream had.
    var isOlder = false
    /// `true` if changesets took effect of which the content may lack what they made.
    var hasMade = false

    var schema: Schema { content.schema }
    /// The objects that the client holds, as far as they are known.
    var held: Set<ObjectKey> { content.memory.view }

    /// Records the answer to Hello.
    /// - Parameter progress: The stored version of the client up to which its changesets took effect.
    mutating func take(_ welcome: PBWelcome, progress: UInt64) {
        (replica.client, replica.secret) = (welcome.client, Array(welcome.secret))
        content.client = max(welcome.changeset, progress)
        content.lists.resume(at: content.client)
        // The client may hold what these changesets made, unless an entry has taken it since. It sends the other changesets again.
        let made = replica.created.filter { $0.value <= welcome.changeset }.keys
        for object in made { compare(object) }
        // By a crash, the stored state can be older than changesets that the client knows to have taken effect.
        hasMade = welcome.changeset > replica.changeset || !made.isEmpty
        ingested = welcome.ingestTaken
        uploadTime = HybridTime(rawValue: welcome.changesetTime)
    }

    mutating func adopt(_ schema: BridgeSchema) { content.adopt(schema) }

    // MARK: Subscriptions

    /// Records a subscription set before it is sent.
    /// - Returns: The version of the hidden set.
    mutating func subscribe(_ subscription: Subscription) -> UInt64 {
        newest += 1
        subscriptions[newest] = subscription
        // Sets before the last complete one get no answer any more.
        subscriptions = subscriptions.filter { $0.key + 64 > newest || $0.value.isComplete }
        needed = nil
        return newest
    }

    /// `true` once the first set is answered, with which a session resumes.
    var hasResumed: Bool { subscriptions[1]?.isComplete ?? (newest > 64) }
    /// `true` if the next set must make the session forget the client's rows.
    var mustForget: Bool { isRecordStale || isOlder }

    // MARK: Messages

    /// Decodes and handles a message.
    /// - Throws: `badClientFile` for a client that leaves too much unconfirmed; the errors of the session and of messages.
    mutating func handle(_ bytes: [UInt8]) throws(SluiceError) -> [RealmViewEvent] {
        guard content.lists.count <= BridgeContent.mostLists else {
            throw SluiceError(
                .badClientFile, "Client file \(content.file) has left \(content.lists.count) lists unconfirmed.",
                fix: "The client replaces its file and recovers its changes. No action is needed.")
        }
        guard content.memory.barriers.count <= BridgeContent.mostBarriers else {
            throw SluiceError(
                .badClientFile, "Client file \(content.file) has left \(content.memory.barriers.count) erasures unconfirmed.",
                fix: "The client replaces its file and recovers its changes. No action is needed.")
        }
        let codec = content.bridgeSchema.codec
        switch try commits.decode(bytes, content.bridgeSchema) {
        case .bootstrapBegin(let version, let rows): begin(version, rows: rows)
        case .rows(let rows):
            guard let rows else { return [] }
            try collection?.add(rows, codec[rows.type], content.writer)
            return try cut()
        case .bootstrapEnd(let end): return try self.end(end)
        case .commits(let commits, let lsn, let witness, let more): return try take(commits, lsn, witness, more: more)
        case .uploadAck(let number, let lsn):
            acknowledge(number, lsn)
            return takePassed()
        case .compensation(let number, let writes): compensate(number, writes)
        case .queryError(let version, let error): return try refuse(version, error)
        case .error(let error): throw error
        case .welcome, .ingestAck, .other: break
        }
        return []
    }

    /// Removes and returns the events of the changesets that were passed. They precede the entries after them.
    mutating func takePassed() -> [RealmViewEvent] {
        defer { passed = [] }
        return passed
    }

    var now: Int64 { environment.wallMilliseconds() }

    // MARK: Commits

    private mutating func take(
        _ commits: [BridgeCommit], _ lsn: LSN, _ witness: [UInt8], more: Bool
    ) throws(SluiceError) -> [RealmViewEvent] {
        var (events, entries) = ([RealmViewEvent](), [OutgoingEntry]())
        for commit in commits where commit.lsn > replica.lsn {
            var changeset = commit.changeset > 0 ? pass(upTo: commit.changeset) : nil
            if !passed.isEmpty {
                events += Self.events(entries) + takePassed()
                entries = []
            }
            // One commit is one entry. Only a commit over several messages needs more, with versions behind its own.
            let place = BridgeContent.Place(version: max(commit.lsn.rawValue, content.last + 1), time: commit.time / 1_000)
            let next: OutgoingEntry?
            if !isBehind, let shared = try content.takeShared(commit, place) {
                next = shared.isEmpty ? nil : entry(shared.changeset, shared.operations, place)
            } else {
                var piece = BridgePiece()
                if !isBehind { try piece.append(content.declarations(place)) }
                for change in commit.changes {
                    if !isBehind { try piece.append(try take(change, changeset, place)) }
                    changeset?.objects[change.object]?.isEchoed = true
                }
                if let changeset {
                    if !isBehind { try piece.append(content.prepareContainers(after: changeset, place)) }
                    settle(changeset)
                }
                next = piece.isEmpty ? nil : entry(piece, place)
            }
            for change in commit.changes { reading?.meet(change) }
            if let next {
                entries.append(next)
                content.last = place.version
            }
            // The slices have a version already, and the client has the commit with it.
            let version = slices == nil ? max(content.last, commit.lsn.rawValue) : content.last
            // The commit's time too: what SQL wrote has no other, and the client's clock may be behind.
            let time = max(commit.writeTime, RealmTime.bound(commit: commit.time))
            steps.add(version, commit.lsn, time: time)
        }
        events += Self.events(entries)
        let yielded = entries.last?.entry.serverVersion
        return more ? events : events + advance(to: lsn, witness, yielded: yielded)
    }

    func entry(_ piece: BridgePiece, _ place: BridgeContent.Place, _ compensation: RealmCompensation? = nil) -> OutgoingEntry {
        entry(piece.changeset, piece.operations, place, compensation)
    }

    private func entry(
        _ changeset: [UInt8], _ operations: [OutgoingOperation], _ place: BridgeContent.Place, _ compensation: RealmCompensation? = nil
    ) -> OutgoingEntry {
        BridgeContent.entry(
            changeset, operations, version: place.version, client: content.client, milliseconds: place.time, now: now,
            compensation: compensation)
    }

    private mutating func take(
        _ change: BridgeCommit.Change, _ changeset: OwnChangeset?, _ place: BridgeContent.Place
    ) throws(SluiceError) -> BridgeGroup {
        guard let changeset, let own = changeset.objects[change.object] else { return try content.take(change, place) }
        // An erasure that the client received meanwhile has voided its own change.
        if content.discards(change.object, own, changeset.writer) { return try content.take(change, place) }
        let isConflict = content.isTouched(change.object, after: changeset.writer.base)
        return try content.takeOwn(change, own, of: changeset.number, isConflict: isConflict, place)
    }

    /// Cuts entries into events of bounded size.
    private static func events(_ entries: [OutgoingEntry]) -> [RealmViewEvent] {
        var events: [RealmViewEvent] = []
        var (batch, bytes) = ([OutgoingEntry](), 0)
        for entry in entries {
            if !batch.isEmpty, bytes + entry.entry.cost > Limits.stagedBytes {
                events.append(.changes(batch))
                (batch, bytes) = ([], 0)
            }
            batch.append(entry)
            bytes += entry.entry.cost
        }
        return batch.isEmpty ? events : events + [.changes(batch)]
    }

    /// - Parameter yielded: The version of the last entry that was yielded with the position; nil for none.
    private mutating func advance(to lsn: LSN, _ witness: [UInt8], yielded: UInt64?) -> [RealmViewEvent] {
        if lsn > replica.lsn { (replica.lsn, replica.witness) = (lsn, witness) }
        passAcknowledged()
        let before = takePassed()
        guard !isBehind, lsn.rawValue >= content.last else { return before }
        // The entries that put objects right have this version or the next, so that a mark waits for them.
        guard unresolved.isEmpty else { return before }
        // The last entry tells it.
        if before.isEmpty, let yielded, yielded == content.last { return [] }
        return before + advanced(to: lsn)
    }

    /// Yields a position that has no entry of its own.
    mutating func advanced(to lsn: LSN) -> [RealmViewEvent] {
        if lsn.rawValue > content.last {
            content.last = lsn.rawValue
            steps.add(content.last, lsn, time: .zero)
        }
        return [.advanced(content.last)]
    }
}
