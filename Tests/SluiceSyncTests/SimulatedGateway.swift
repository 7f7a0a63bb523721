import Foundation
import TestSupport
import SluiceCore
import SluiceMerge
import SluiceWire

@testable import SluicePipeline

func make<M>(_ message: M, _ fill: (inout M) -> Void) -> M {
    var message = message
    fill(&message)
    return message
}

/// A gateway in memory that keeps the protocol's promises and knows nothing of the client's code. The gateway's own session machine decides
/// on the order of messages, on bootstraps, acknowledgements and barriers. One call handles one message; what it answers waits in
/// `Session.outgoing`.
struct SimulatedGateway {
    struct Session {
        var client: UInt64 = 0
        /// The gateway's own machine.
        var machine = SessionMachine()
        var stores: Set<String> = []
        /// What the client has: rows of these stores as all commits below `before` left them, or newer.
        var held: (stores: Set<String>, before: UInt64)?
        /// The commit that its file shows, until its first bootstrap.
        var applied: UInt64?
        /// What the client has put aside of a bootstrap that did not come to its end.
        var aside: Aside?
        /// The items of which it has writes that it has yet to upload, as its last Subscribe said.
        var pending: Set<Int64> = []
        /// A bootstrap that has been asked for and not been made.
        var wanted: WantedBootstrap?
        var outgoing: [PBServerMessage] = []

        var isOpen: Bool { machine.phase == .open }
        var isClosed: Bool { machine.isClosed }
    }

    struct Client {
        var changeset: UInt64 = 0
        var changesetTime: UInt64 = 0
        var ingest: UInt64 = 0
        var compensations: [(id: UInt64, writes: [PBRejectedWrite])] = []
        var lastCompensation: UInt64 = 0
        /// No changeset of it that is yet to come has an older base.
        var position: UInt64 = 0
        /// The one that may write: the last to say Hello.
        var session: UInt64 = 0
    }

    var random: SplitMix64
    var items: [Int64: Item] = [:]
    /// The commit that wrote an item last.
    var writtenAt: [Int64: UInt64] = [:]
    /// How many items were told by their keys alone, how many of these were put aside of an interrupted bootstrap, how many sessions went
    /// on from the log, and how often it ended without notice.
    var keptCount = 0
    var asideCount = 0
    var resumedCount = 0
    private(set) var crashCount = 0
    /// The items that each commit changed, and in which stores they were before.
    var log: [(lsn: UInt64, key: Int64, store: String?)] = []
    /// What became of the value of each item: by which commit, and who wrote it, or deleted the item, when; nil for SQL.
    var history: [Int64: [(lsn: UInt64, value: String?, stamp: WriteStamp?)]] = [:]
    var lsn: UInt64 = 100
    /// Beside the rows: who wrote what, and when a row was written last.
    var clocks: [Int64: ObjectClocks] = [:]
    var rowTimes: [Int64: Int64] = [:]
    /// The latest time of a client's write.
    var writeTime = HybridTime.zero
    /// What its clock says, milliseconds since 1970.
    var wall: Int64 = 1_770_000_000_000
    var clients: [UInt64: Client] = [:]
    var sessions: [UInt64: Session] = [:]
    var validToken = "token-0"
    /// The changeset that is being committed.
    var writing: (client: UInt64, changeset: UInt64)?
    /// How often each changeset took effect.
    var effects: [String: Int] = [:]
    var readings: [Int64: Int] = [:]
    /// Writes outside of the view: a correct client makes none.
    var outside: [String] = []
    var violations: [String] = []
    /// What is wrong with it on purpose.
    var defect: SimulatedDefect?
    /// The items as they once were.
    var earlier: [Int64: Item] = [:]

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    /// Whether a defect shows itself now. Without one no number is drawn, so that a seed is the same run as ever.
    mutating func has(_ defect: SimulatedDefect, _ percent: Int) -> Bool { self.defect == defect && chance(percent) }

    // MARK: Messages

    mutating func handle(_ bytes: [UInt8], session id: UInt64) throws {
        guard sessions[id]?.isClosed == false else { return }
        let message = try WireProtocol.decode(PBClientMessage.self, from: bytes)
        do throws(SluiceError) {
            switch message.kind {
            case .hello(let hello):
                try feed(id, .received(.hello))
                open(hello, id)
            case .subscribe(let set):
                try feed(id, .received(.subscribe))
                try subscribe(set, id)
            case .upload(let upload):
                try feed(id, .received(.upload))
                try self.upload(upload, id)
            case .ingest(let batch):
                try feed(id, .received(.ingest))
                ingest(batch, id)
            case .mark(let mark):
                try feed(id, .received(.mark))
                try feed(id, .barrier(mark.id))
            case .refreshToken: try feed(id, .received(.refreshToken))
            case .reportError: try feed(id, .received(.reportError))
            case nil: violation("an empty message", id)
            }
        } catch {
            violation(error.message, id)
        }
    }

    /// It ends without notice, and another begins: what is in the database stays, and nobody hears what was not sent.
    mutating func crash() {
        crashCount += 1
        sessions = [:]
    }

    mutating func violation(_ what: String, _ id: UInt64) {
        violations.append(what)
        fail(id, .badMessageOrder, .applicationBug)
    }

    mutating func send(_ id: UInt64, _ kind: PBServerMessage.OneOf_Kind) { sessions[id]?.outgoing.append(PBServerMessage(kind)) }

    mutating func fail(_ id: UInt64, _ code: ErrorCode, _ action: SessionAction) {
        send(id, .error(PBSessionError(SluiceError(code, "made up"), action: action, fatal: true)))
        _ = sessions[id]?.machine.handle(.disconnected)
    }

    private mutating func open(_ hello: PBHello, _ id: UInt64) {
        guard hello.accessToken == validToken else { return fail(id, .tokenExpired, .refreshUser) }
        var client = hello.client
        if client == 0 {
            client = UInt64(clients.count + 1)
            clients[client] = Client(position: lsn)
        } else if clients[client] == nil || Array(hello.secret) != [UInt8(truncatingIfNeeded: client)] {
            return fail(id, .badClientFile, .clientReset)
        }
        sessions[id]?.client = client
        _ = sessions[id]?.machine.handle(.opened(changeset: clients[client]?.changeset ?? 0))
        clients[client]?.session = id
        note(hello.oldestBase, of: client)
        if hello.hasHeld {
            sessions[id]?.held = (Set(hello.held.types.map(\.name)), hello.held.transaction)
            sessions[id]?.applied = hello.appliedLsn
        }
        sessions[id]?.aside = Aside(hello.checkpoint)
        var welcome = PBWelcome()
        welcome.protocol = 1
        welcome.client = client
        welcome.secret = .init([UInt8(truncatingIfNeeded: client)])
        welcome.schema = serverTypes.messages
        welcome.changeset = clients[client]?.changeset ?? 0
        welcome.changesetTime = clients[client]?.changesetTime ?? 0
        welcome.ingest = clients[client]?.ingest ?? 0
        welcome.ingestTaken = welcome.ingest
        welcome.time = wall
        send(id, .welcome(welcome))
        for open in clients[client]?.compensations ?? [] {
            send(
                id,
                .compensation(
                    make(PBCompensation()) {
                        $0.id = open.id
                        $0.writes = open.writes
                    }))
        }
    }

    private mutating func subscribe(_ set: PBSubscribe, _ id: UInt64) throws(SluiceError) {
        try feed(id, .requested(version: set.version))
        if set.queries.contains(where: { $0.text == "bad" }) {
            return send(id, .queryError(PBQueryError(version: set.version, SluiceError(.querySyntax, "bad"))))
        }
        try feed(id, .accepted(SubscriptionSet(set), View(version: set.version, types: [], partitions: [])))
        sessions[id]?.pending = []
        for key in set.pending.flatMap(\.keys) { if case .int(let key)? = try? Value(key) { sessions[id]?.pending.insert(key) } }
        if chance(50) { bootstrap(id) }
    }

    // MARK: Writes

    /// Changes an item as one transaction and tells every session.
    mutating func commit(_ key: Int64, _ item: Item?) { commit([(key, item)]) }

    /// Changes items as one transaction.
    /// - Parameters:
    ///   - times: what is sent of the clocks of each; nothing for SQL.
    ///   - time: that a client's writes merge with.
    mutating func commit(_ writes: [(key: Int64, item: Item?)], times: [Int64: WriteTimes] = [:], time: HybridTime = .zero) {
        lsn += 1
        let before = items
        if has(.stale, 5) { earlier = before }
        for (key, item) in writes {
            log.append((lsn, key, before[key]?.store))
            items[key] = item
            writtenAt[key] = lsn
            rowTimes[key] = wall
            note(key, item, times[key])
        }
        for id in sessions.keys.sorted() {
            guard let session = sessions[id], session.machine.views.isInStep, !session.isClosed else { continue }
            let changes: [PBViewChange] =
                has(.eyes, 3) ? [] : writes.compactMap { change($0.key, before[$0.key], $0.item, session, times[$0.key]) }
            // What was there before it came into the view may be later than the commit that brings it.
            let bringsOld = changes.contains { $0.event == .entered } && writes.contains { before[$0.key] != nil && $0.item != nil }
            tell(id, changes, bringsOld ? max(time, writeTime) : time)
        }
    }

    private mutating func note(_ key: Int64, _ item: Item?, _ times: WriteTimes?) {
        let last = history[key]?.last
        var stamp = item == nil ? times?.deletion?.stamp : times?.properties[SimulatedGateway.value]?.stamp
        // What SQL leaves as it is, and what a client does not write, is as old as before.
        if stamp == nil, last?.value == item?.value { stamp = last?.stamp }
        history[key, default: []].append((lsn, item?.value, stamp?.client == .server ? nil : stamp))
    }

    /// The number of the value's property.
    static let value: UInt32 = 13

    /// What a session is told of an item's change.
    private func change(_ key: Int64, _ before: Item?, _ item: Item?, _ session: Session, _ times: WriteTimes?) -> PBViewChange? {
        var change = PBViewChange()
        change.type = "Item"
        if let times, item == nil || session.stores.contains(item?.store ?? "") { change.times = Data(times.encoded) }
        let was = before.map { session.stores.contains($0.store) } ?? false
        if let item, session.stores.contains(item.store) {
            change.event = was ? .updated : .entered
            change.row = row(key, items)
            return change
        }
        guard was else { return nil }
        change.event = item == nil ? .deleted : .leftQuery
        change.primaryKey = PBValue(.int(key))
        return change
    }

    mutating func tell(_ id: UInt64, _ changes: [PBViewChange], _ time: HybridTime = .zero) {
        let (lsn, wall, first) = (lsn, wall, chance(20))
        let changeset = writing.flatMap { sessions[id]?.client == $0.client ? $0.changeset : nil }
        let commit = make(PBCommit()) {
            $0.lsn = lsn
            $0.changeset = changeset ?? 0
            $0.commitTime = wall * 1_000
            $0.writeTime = time.rawValue
            $0.changes = changes
        }
        if first { send(id, .commits(make(PBCommits()) { $0.more = true })) }
        send(
            id,
            .commits(
                make(PBCommits()) {
                    $0.lsn = lsn
                    if !changes.isEmpty { $0.commits = [commit] }
                }))
    }

    private mutating func ingest(_ batch: PBIngest, _ id: UInt64) {
        guard let client = sessions[id]?.client else { return }
        if batch.number > clients[client]?.ingest ?? 0 {
            clients[client]?.ingest = batch.number
            for object in batch.objects {
                if let change = try? ObjectChange(object, schema: serverTypes), case .int(let key) = change.object.key {
                    readings[key, default: 0] += 1
                }
            }
        }
        send(id, .ingestAck(make(PBIngestAck()) { $0.number = batch.number }))
    }
}
