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
        /// The gateway's number of the open connection.
        var session: UInt64?
        var connection: UInt64 = 0
        var token = "token-0"
        var finished: [UInt64: SluiceError?] = [:]
        var waits: UInt64 = 0
        /// What the app last wrote to keys that only it writes.
        var own: [Int64: Item?] = [:]
        var nextKey: Int64
        var problems: [String] = []
        var refusedSets: Set<UInt64> = []
    }

    static let stores = ["north", "south", "east"]
    /// One possible fault in so many happens.
    let calm: Int
    var random: SplitMix64
    var gateway: SimulatedGateway
    var clients: [Client] = []
    var now: UInt64 = 1_000
    var nextSession: UInt64 = 1
    var tokens = 0
    var nextReading: Int64 = 1

    init(seed: UInt64, clients count: Int) {
        random = SplitMix64(seed: seed)
        calm = [1, 3, 10][Int.random(in: 0..<3, using: &random)]
        gateway = SimulatedGateway(seed: seed &+ 1)
        for index in 0..<count {
            clients.append(Client(machine: Simulation.machine(), nextKey: Int64(index + 1) * 100_000))
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
        switch below(80) {
        case 0..<20: for _ in 0...below(4) { try deliverUp(index) }
        case 20..<40: for _ in 0...below(6) { deliverDown(index) }
        case 40..<55: for _ in 0...below(4) where !clients[index].inbox.isEmpty { feed(index, clients[index].inbox.removeFirst()) }
        case 55..<60: gatewayWork()
        case 60..<63: pass(UInt64(below(3_000)))
        case 63..<69: appWrites(index)
        case 69: appSubscribes(index)
        case 70..<73: write(key: Int64(below(40)), Item(store: store(), value: "sql \(below(1_000))"))
        case 73: gateway.commit(Int64(below(40)), nil)
        case 74: appIngests(index)
        case 75: appWaits(index)
        default: if below(calm) == 0 { try fault(index) }
        }
        check(index)
    }

    private mutating func fault(_ index: Int) throws {
        switch below(12) {
        case 0..<5: drop(index)
        case 5: crash(index)
        case 6: expireTokens()
        case 7: sessionError(index)
        case 8: pause(index)
        case 9: feed(index, .reconnect)
        default: pass(UInt64(below(80_000)))
        }
    }

    mutating func store() -> String { Simulation.stores[below(3)] }

    mutating func write(key: Int64, _ item: Item) { gateway.commit(key, item) }

    private mutating func gatewayWork() {
        let open = gateway.sessions.keys.sorted()
        if !open.isEmpty { gateway.bootstrap(open[below(open.count)]) }
    }

    mutating func pass(_ milliseconds: UInt64) {
        now += milliseconds
        for index in clients.indices where clients[index].machine.nextDeadline ?? .max <= now { feed(index, .tick) }
    }

    // MARK: The app

    private mutating func appWrites(_ index: Int) {
        // Under a set that was refused the app goes on in the one before.
        let sets = clients[index].file.sets.filter { set in !set.subscriptions.contains { $0.query == "bad" } }
        let stores = sets.last?.subscriptions.map(\.query) ?? []
        guard !stores.isEmpty else { return }
        let item = Item(store: stores[below(stores.count)], value: below(12) == 0 ? "forbidden" : "v\(below(1_000_000))")
        let isOwn = below(2) == 0
        var key = Int64(below(40))
        if isOwn {
            clients[index].nextKey += 1
            key = clients[index].nextKey
            clients[index].own[key] = item
        }
        clients[index].file.write(key, !isOwn && below(10) == 0 ? nil : item)
        clients[index].inbox.append(.localChange)
    }

    private mutating func appSubscribes(_ index: Int) {
        var stores = Simulation.stores.filter { _ in below(2) == 0 }
        if below(8) == 0 { stores.append("bad") }
        clients[index].file.subscribe(stores)
        clients[index].inbox.append(.localChange)
    }

    private mutating func appIngests(_ index: Int) {
        clients[index].file.ingest(nextReading)
        nextReading += 1
        clients[index].inbox.append(.localChange)
    }

    private mutating func appWaits(_ index: Int) {
        clients[index].waits += 1
        feed(index, .wait(clients[index].waits, below(2) == 0 ? .download : .upload, deadline: nil))
    }

    private mutating func pause(_ index: Int) {
        feed(index, .pause)
        clients[index].inbox.append(.start(token: nil))
    }

    // MARK: The network

    private mutating func deliverUp(_ index: Int) throws {
        guard !clients[index].upstream.isEmpty, let session = clients[index].session else { return }
        try gateway.handle(clients[index].upstream.removeFirst(), session: session)
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
            if gateway.sessions[session]?.isClosed == true { drop(index) }
            return
        }
        let bytes = clients[index].downstream.removeFirst()
        let connection = clients[index].connection
        do {
            feed(index, .received(connection, try ServerMessage.decode(bytes, schema: clients[index].machine.serverSchema)))
        } catch {
            clients[index].problems.append("unreadable: \(error)")
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

    private mutating func hangUp(_ index: Int) {
        if let session = clients[index].session { gateway.sessions[session] = nil }
        clients[index].session = nil
        clients[index].upstream = []
        clients[index].downstream = []
    }

    /// The app ends without notice: the file stays, all else is gone.
    private mutating func crash(_ index: Int) {
        hangUp(index)
        clients[index].inbox = []
        clients[index].machine = Simulation.machine()
        clients[index].file.staged = nil
        clients[index].connection = 0
        for wait in stride(from: UInt64(1), through: clients[index].waits, by: 1) where clients[index].finished[wait] == nil {
            clients[index].finished[wait] = .some(SluiceError(.shuttingDown, "crashed"))
        }
        feed(index, .start(token: clients[index].token))
    }

    private mutating func expireTokens() {
        tokens += 1
        gateway.validToken = "token-\(tokens)"
        for session in gateway.sessions.keys where gateway.sessions[session]?.isOpen == true {
            gateway.fail(session, .tokenExpired, .refreshUser)
        }
    }

    private mutating func sessionError(_ index: Int) {
        guard let session = clients[index].session else { return }
        let errors: [(ErrorCode, SessionAction)] = [(.internalError, .transient), (.shuttingDown, .transient), (.resync, .transient)]
        let (code, action) = errors[below(errors.count)]
        gateway.fail(session, code, action)
    }

    // MARK: The shell

    mutating func feed(_ index: Int, _ input: SyncInput) {
        let actions = clients[index].machine.handle(input, now: now, random: random.next())
        for action in actions { perform(action, index) }
    }

    private mutating func perform(_ action: SyncAction, _ index: Int) {
        switch action {
        case .connect(let id):
            hangUp(index)
            clients[index].connection = id
            if below(5) == 0 {
                clients[index].inbox.append(.disconnected(id, SluiceError(.connectionFailed, "no route")))
            } else {
                clients[index].session = nextSession
                gateway.sessions[nextSession] = SimulatedGateway.Session()
                nextSession += 1
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
            if clients[index].finished.updateValue(error, forKey: id) != nil { clients[index].problems.append("wait \(id) ended twice") }
        case .report(.stopped(let error)), .report(.loggedOut(let error)), .report(.clientReset(let error)):
            clients[index].problems.append("stopped: \(error)")
        case .report(.setRefused(let version, _)): clients[index].refusedSets.insert(version)
        case .report: break
        default: performOnFile(action, index)
        }
    }

    private mutating func performOnFile(_ action: SyncAction, _ index: Int) {
        switch action {
        case .setIdentity(let identity): clients[index].file.identity = identity
        case .acknowledgeUpload(let number, let lsn): clients[index].file.acknowledge(number, lsn)
        case .acknowledgeIngest(let number, _): clients[index].file.batches.removeAll { $0.number <= number }
        case .compensate(let id, let writes): clients[index].file.compensate(id, writes)
        case .beginBootstrap: clients[index].file.beginBootstrap()
        case .stage(let rows): clients[index].file.stage(rows)
        case .endBootstrap(let version, let lsn, let types, let held): clients[index].file.endBootstrap(version, lsn, types, held)
        case .apply(let batch): clients[index].file.apply(batch)
        case .refuseSet(let version, let error): clients[index].file.refuse(version, error)
        default: clients[index].problems.append("an unexpected action \(action)")
        }
    }

    /// What the app wrote, and nobody else, never goes away or back, as long as its store is subscribed to.
    private mutating func check(_ index: Int) {
        let file = clients[index].file
        let active = file.sets.first { $0.version == file.applied.version }
        guard let active, active.version == file.latest.version else { return }
        let stores = Set(active.subscriptions.map(\.query))
        for (key, item) in clients[index].own where !file.refusedObjects.contains(key) {
            guard let item, stores.contains(item.store) else { continue }
            if file.shown(key) != item {
                clients[index].problems.append("\(key) shows \(String(describing: file.shown(key))), not \(item)")
            }
        }
    }

    // MARK: The end

    /// Lets everything settle, without faults.
    mutating func settle() throws {
        for index in clients.indices where below(2) == 0 { drop(index) }
        for index in clients.indices { feed(index, .start(token: clients[index].token)) }
        for _ in 0..<20_000 {
            if try isQuiet() { return }
            try round()
        }
        clients[0].problems.append("it does not settle: \(clients.map(\.machine.phase))")
    }

    private mutating func round() throws {
        for session in gateway.sessions.keys.sorted() { gateway.bootstrapUntilDone(session) }
        for index in clients.indices {
            while !clients[index].upstream.isEmpty, clients[index].session != nil { try deliverUp(index) }
            try collect(index)
            while !clients[index].downstream.isEmpty, clients[index].session != nil { deliverDown(index) }
            if let session = clients[index].session, gateway.sessions[session]?.isClosed == true { drop(index) }
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
