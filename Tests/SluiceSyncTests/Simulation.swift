import TestSupport
import SluiceCore
import SluiceReplica
import SluiceSync
import SluiceWire

/// Clients and a gateway on a network that loses connections, with everything decided by one seed.
struct Simulation {
    struct Client {
        var file = SimulatedFile()
        var machine: SyncStateMachine
        /// Inputs that the shell owes the machine.
        var inbox: [SyncInput] = []
        /// Messages under way, per connection of the machine: to the gateway, and from it.
        var upstream: [[UInt8]] = []
        var downstream: [[UInt8]] = []
        /// What the gateway has taken of the open connection.
        var delivered: [[UInt8]] = []
        /// The gateway's number of the open connection.
        var session: UInt64?
        var connection: UInt64 = 0
        var token = "token-0"
        var finished: [UInt64: SluiceError?] = [:]
        var waits: UInt64 = 0
        /// What the app last wrote to keys that only it writes.
        var own: [Int64: Item?] = [:]
        var nextKey: Int64
        var problems: [Problem] = []
        /// The file as it was at a time when nothing waited in it.
        var backup: SimulatedFile?
        /// How far its clock is from the gateway's, milliseconds.
        var skew: Int64 = 0
        /// What it put into the list that all share, and what it took out.
        var inserted: Set<String> = []
        var removed: Set<String> = []
        /// What the app saw last: it never sees something older.
        var seen = AppliedPosition(lsn: .zero, version: 0)
        var seenPair: Int64 = 0

        mutating func note(_ promise: Promise, _ what: String) { problems.append(Problem(promise: promise, what: what)) }
    }

    /// Items that SQL writes together.
    static let pair: [Int64] = [50, 51]
    /// A counter and a list that all work on.
    static let counter: Int64 = 60
    /// Items that apps write together.
    static let twins: [Int64] = [52, 53]
    static let list: Int64 = 61
    /// Items whose value all write, over each other.
    static let contested: [Int64] = [54, 55]

    static let stores = ["north", "south", "east"]
    /// One possible fault in so many happens.
    let calm: Int
    var isCalm = false
    var random: SplitMix64
    var gateway: SimulatedGateway
    var clients: [Client] = []
    var now: UInt64 = 1_000
    var nextSession: UInt64 = 1
    var tokens = 0
    var nextReading: Int64 = 1
    var pairs: Int64 = 0
    /// How often the latest value of an item was the device's own, and how often another's.
    var latestOwn = 0
    var latestOfOthers = 0
    private(set) var restoredCount = 0
    private(set) var fullCount = 0
    /// All that was added to the counter.
    var added: Int64 = 0
    /// Messages of connections that the clients have given up, still on their way.
    var late: [(session: UInt64, messages: [[UInt8]])] = []

    init(seed: UInt64, clients count: Int, defect: SimulatedDefect? = nil) {
        random = SplitMix64(seed: seed)
        calm = [1, 3, 10][Int.random(in: 0..<3, using: &random)]
        gateway = SimulatedGateway(seed: seed &+ 1)
        gateway.defect = defect
        writePair()
        for key in [Simulation.counter, Simulation.list] + Simulation.twins + Simulation.contested {
            gateway.commit(key, Item(store: "north", value: "shared"))
        }
        for index in 0..<count {
            var client = Client(machine: Simulation.machine(), nextKey: Int64(index + 1) * 100_000)
            client.file.defect = defect
            client.skew = [0, -86_400_000, 86_400_000, Int64(below(172_800_000)) - 86_400_000][below(4)]
            clients.append(client)
            feed(index, .start(token: "token-0"))
        }
    }

    static func machine() -> SyncStateMachine {
        SyncStateMachine(configuration: SyncConfiguration(url: "ws://gateway", app: "app"), schema: clientTypes)
    }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    // MARK: One step

    mutating func step() throws {
        let index = below(clients.count)
        switch below(94) {
        case 0..<20: for _ in 0...below(4) { try deliverUp(index) }
        case 20..<40: for _ in 0...below(6) { deliverDown(index) }
        case 40..<55: for _ in 0...below(4) where !clients[index].inbox.isEmpty { feed(index, clients[index].inbox.removeFirst()) }
        case 55..<60: gatewayWork()
        case 60..<63: pass(UInt64(below(3_000)))
        case 63..<67: appWrites(index)
        case 67: appAdds(index)
        case 68: appEdits(index)
        case 69, 81, 82: appSubscribes(index)
        case 70..<73: write(key: Int64(below(40)), Item(store: store(), value: "sql \(below(1_000))"))
        case 73: gateway.commit(Int64(below(40)), nil)
        case 74: appIngests(index)
        case 75: appWaits(index)
        case 76, 79, 80: writePair()
        case 77: try deliverLate()
        case 78: appWritesTwins(index)
        case 83, 84: restore(index)
        case 88..<94: appContends(index)
        default: if below(calm) == 0 { try fault(index) }
        }
        check(index)
        if clients[index].backup == nil, isUploaded(clients[index].file) { clients[index].backup = clients[index].file }
    }

    /// What is on its way to a gateway that is gone arrives nowhere; what it has sent still does.
    private mutating func crashGateway() {
        gateway.crash()
        late = []
        for index in clients.indices where clients[index].session != nil {
            clients[index].upstream = []
            clients[index].delivered = []
            if below(2) == 0 { drop(index) }
        }
    }

    private mutating func fault(_ index: Int) throws {
        switch below(13) {
        case 0..<5: drop(index)
        case 5: crash(index)
        case 6: expireTokens()
        case 7: sessionError(index)
        case 8: pause(index)
        case 9: feed(index, .reconnect)
        case 10: crashGateway()
        default: pass(UInt64(below(80_000)))
        }
    }

    private func isUploaded(_ file: SimulatedFile) -> Bool {
        file.identity != nil && file.pending.isEmpty && file.readings.isEmpty && file.batches.isEmpty
    }

    /// The device gets its backup back. The gateway has everything that was written since; nothing of that may be lost, nor what is
    /// written from here on.
    private mutating func restore(_ index: Int) {
        guard var file = clients[index].backup, isUploaded(clients[index].file) else { return }
        restoredCount += 1
        // What the app was told it remembers.
        file.told = clients[index].file.told
        file.isRestored = true
        // A backup is older than clocks are wrong.
        file.clock = clients[index].file.clock
        file.refusedObjects = clients[index].file.refusedObjects
        clients[index].backup = nil
        clients[index].file = file
        clients[index].own = [:]
        clients[index].seen = file.applied
        clients[index].seenPair = 0
        crash(index)
    }

    mutating func store() -> String { Simulation.stores[below(3)] }

    mutating func write(key: Int64, _ item: Item) { gateway.commit(key, item) }

    /// One transaction of SQL: whoever sees one half of it sees the other.
    private mutating func writePair() {
        pairs += 1
        gateway.commit(Simulation.pair.map { ($0, Item(store: "north", value: "\(pairs)")) })
    }

    private mutating func gatewayWork() {
        let open = gateway.sessions.keys.sorted()
        if !open.isEmpty { gateway.bootstrap(open[below(open.count)]) }
    }

    mutating func pass(_ milliseconds: UInt64) {
        now += milliseconds
        gateway.wall += Int64(milliseconds)
        for index in clients.indices where clients[index].machine.nextDeadline ?? .max <= now { feed(index, .tick) }
    }

    mutating func pause(_ index: Int) {
        feed(index, .pause)
        clients[index].inbox.append(.start(token: nil))
    }

    // MARK: The network

    private mutating func deliverUp(_ index: Int) throws {
        guard !clients[index].upstream.isEmpty, let session = clients[index].session else { return }
        let message = clients[index].upstream.removeFirst()
        try gateway.handle(message, session: session)
        if gateway.sessions[session]?.isClosed == false { clients[index].delivered.append(message) }
        // It can end between what it has done and what it says.
        if !isCalm, below(300 * calm) == 0 { return crashGateway() }
        try collect(index)
    }

    mutating func collect(_ index: Int) throws {
        for index in clients.indices {
            guard let session = clients[index].session, let outgoing = gateway.sessions[session]?.outgoing else { continue }
            gateway.sessions[session]?.outgoing = []
            for message in outgoing { clients[index].downstream.append(try WireProtocol.encode(message)) }
        }
    }

    private mutating func deliverDown(_ index: Int) {
        try? collect(index)
        guard let session = clients[index].session else { return }
        guard !clients[index].downstream.isEmpty else {
            if gateway.sessions[session]?.isClosed != false { drop(index) }
            return
        }
        let bytes = clients[index].downstream.removeFirst()
        let connection = clients[index].connection
        do {
            feed(index, .received(connection, try ServerMessage.decode(bytes, schema: clients[index].machine.serverSchema)))
        } catch {
            clients[index].note(.noStall, "unreadable: \(error)")
            feed(index, .unreadable(connection, error))
        }
    }

    /// The connection is gone with everything that was under way.
    mutating func drop(_ index: Int) {
        guard let session = clients[index].session else { return }
        hangUp(index)
        clients[index].inbox.append(.disconnected(clients[index].connection, nil))
        _ = session
    }

    /// What was on its way to the gateway may still arrive, long after the client has come back; nobody hears the answers. And
    /// what has arrived may arrive once more, as a connection that somebody in between repeats.
    private mutating func hangUp(_ index: Int) {
        if let session = clients[index].session {
            if !isCalm, below(4) == 0, isOfKnownFile(clients[index].delivered) {
                late.append((openSession(), clients[index].delivered))
            }
            if below(2) == 0 {
                gateway.sessions[session] = nil
            } else {
                late.append((session, clients[index].upstream))
            }
        }
        clients[index].session = nil
        clients[index].upstream = []
        clients[index].downstream = []
        clients[index].delivered = []
    }

    /// The first connection of a file that has no number yet gets one: repeated it is that of another file.
    private func isOfKnownFile(_ messages: [[UInt8]]) -> Bool {
        guard let first = messages.first, let message = try? WireProtocol.decode(PBClientMessage.self, from: first),
            case .hello(let hello)? = message.kind
        else { return false }
        return hello.client > 0
    }

    private mutating func openSession() -> UInt64 {
        defer { nextSession += 1 }
        gateway.sessions[nextSession] = SimulatedGateway.Session()
        return nextSession
    }

    private mutating func deliverLate() throws {
        guard !late.isEmpty else { return }
        let index = below(late.count)
        let (session, messages) = late[index]
        if let message = messages.first {
            try gateway.handle(message, session: session)
            late[index].messages.removeFirst()
        }
        gateway.sessions[session]?.outgoing = []
        if messages.isEmpty || gateway.sessions[session]?.isClosed != false {
            gateway.sessions[session] = nil
            late.remove(at: index)
        }
    }

    /// The app ends without notice: the file stays, all else is gone.
    private mutating func crash(_ index: Int) {
        hangUp(index)
        clients[index].inbox = []
        clients[index].machine = Simulation.machine()
        clients[index].connection = 0
        for wait in stride(from: UInt64(1), through: clients[index].waits, by: 1) where clients[index].finished[wait] == nil {
            clients[index].finished[wait] = .some(SluiceError(.shuttingDown, "crashed"))
        }
        feed(index, .start(token: clients[index].token))
    }

    // MARK: The shell

    mutating func feed(_ index: Int, _ input: SyncInput) {
        let actions = clients[index].machine.handle(input, now: now, random: random.next())
        // An app can end between any two actions.
        let end = isCalm || below(300 * calm) > 0 ? nil : below(actions.count + 1)
        let onFile = actions.indices.filter { actions[$0].isOnFile }
        let full = isCalm || onFile.isEmpty || below(300 * calm) > 0 ? nil : onFile[below(onFile.count)]
        var failure: SluiceError?
        for (number, action) in actions.prefix(end ?? actions.count).enumerated() {
            // The disk is full from here on: the file takes nothing, the gateway hears nothing, and nobody that all is well.
            if number == full { failure = SluiceError(.deviceFull, "made up") }
            guard let failure else {
                perform(action, index)
                continue
            }
            switch action {
            case .finish(let id, let error): perform(.finish(id, error ?? failure), index)
            case .send: break
            default: if !action.isOnFile { perform(action, index) }
            }
        }
        if end != nil { return crash(index) }
        if let failure {
            fullCount += 1
            feed(index, .replicaFailed(failure))
        }
    }

    private mutating func perform(_ action: SyncAction, _ index: Int) {
        switch action {
        case .connect(let id):
            hangUp(index)
            clients[index].connection = id
            if below(5) == 0 {
                clients[index].inbox.append(.disconnected(id, SluiceError(.connectionFailed, "no route")))
            } else {
                clients[index].session = openSession()
                clients[index].inbox.append(.connected(id))
            }
        case .close(let id): if id == clients[index].connection { hangUp(index) }
        case .send(let id, let message):
            guard id == clients[index].connection, clients[index].session != nil else { return }
            if let bytes = try? WireProtocol.encode(message) { clients[index].upstream.append(bytes) }
        case .ping(let id): if clients[index].session != nil { clients[index].inbox.append(.traffic(id)) }
        case .load(let id): clients[index].inbox.append(.loaded(id, clients[index].file.local))
        case .read(let id, let query): clients[index].inbox.append(.pending(id, clients[index].file.read(query)))
        case .refreshToken:
            clients[index].token = gateway.validToken
            clients[index].inbox.append(.tokenRefreshed(gateway.validToken))
        case .finish(let id, let error):
            if clients[index].finished.updateValue(error, forKey: id) != nil { clients[index].note(.exactlyOnce, "wait \(id) ended twice") }
        case .report(.stopped(let error)), .report(.loggedOut(let error)), .report(.clientReset(let error)):
            clients[index].note(.noStall, "stopped: \(error)")
        case .report: break
        default: performOnFile(action, index)
        }
    }

    private mutating func performOnFile(_ action: SyncAction, _ index: Int) {
        switch action {
        case .renumber(let number, let time): clients[index].file.renumber(after: number, time: time)
        case .setIdentity(let identity): clients[index].file.identity = identity
        case .acknowledgeUpload(let number, let lsn, let futile): clients[index].file.acknowledge(number, lsn, futile)
        case .acknowledgeIngest(let number, _): clients[index].file.batches.removeAll { $0.number <= number }
        case .compensate(let id, let writes): clients[index].file.compensate(id, writes)
        case .beginBootstrap(_, let checkpoint): clients[index].file.beginBootstrap(checkpoint)
        case .stage(let rows): clients[index].file.stage(rows)
        case .endBootstrap(let version, let lsn, let types, let held, let taken):
            clients[index].file.endBootstrap(version, lsn, types, held, taken)
        case .observe(let milliseconds): clients[index].file.observe(milliseconds)
        case .apply(let batch): clients[index].file.apply(batch)
        case .refuseSet(let version, let error): clients[index].file.refuse(version, error)
        default: clients[index].note(.noStall, "an unexpected action \(action)")
        }
    }

    // MARK: The end

    /// Lets everything settle, without faults.
    mutating func settle() throws {
        isCalm = true
        while !late.isEmpty { try deliverLate() }
        for index in clients.indices where below(2) == 0 { drop(index) }
        for index in clients.indices { feed(index, .start(token: clients[index].token)) }
        for _ in 0..<20_000 {
            if try isQuiet() { return }
            try round()
        }
        clients[0].note(.noStall, "it does not settle: \(clients.map(\.machine.phase))")
    }

    private mutating func round() throws {
        for session in gateway.sessions.keys.sorted() { gateway.bootstrapUntilDone(session) }
        for index in clients.indices {
            while !clients[index].upstream.isEmpty, clients[index].session != nil { try deliverUp(index) }
            try collect(index)
            while !clients[index].downstream.isEmpty, clients[index].session != nil { deliverDown(index) }
            if let session = clients[index].session, gateway.sessions[session]?.isClosed != false { drop(index) }
            while !clients[index].inbox.isEmpty { feed(index, clients[index].inbox.removeFirst()) }
        }
        pass(1_000)
    }

    private mutating func isQuiet() throws -> Bool {
        for client in clients {
            guard client.machine.phase == .open, client.inbox.isEmpty, client.upstream.isEmpty, client.downstream.isEmpty else {
                return false
            }
            guard client.file.pending.isEmpty, client.file.batches.isEmpty, client.file.readings.isEmpty else { return false }
            guard client.finished.count == client.waits else { return false }
            guard let session = client.session, gateway.sessions[session]?.outgoing.isEmpty == true,
                gateway.sessions[session]?.wanted == nil
            else { return false }
            let last = client.file.sets.last { set in !set.subscriptions.contains { $0.query == "bad" } }
            guard last?.version == client.file.applied.version else { return false }
        }
        return true
    }
}

extension SyncAction {
    /// Whether it reads or writes the local file.
    fileprivate var isOnFile: Bool {
        switch self {
        case .connect, .close, .send, .ping, .refreshToken, .report, .finish: false
        default: true
        }
    }
}
