import RealmTestSupport
import SluiceCore
import SluiceRealm
import TestSupport

/// The views of files by group, and the refusal of one number.
struct GroupRules: RealmViewRules {
    static let refused: Int64 = 13
    /// The groups of each file's query.
    var groups: [UInt64: Set<Int64>] = [:]

    func isInView(_ object: ObjectKey, _ values: [String: Value], of file: UInt64) -> Bool {
        guard case .int(let group) = values["group"] ?? .int(0) else { return false }
        return groups[file]?.contains(group) ?? false
    }

    func permits(_ object: ObjectKey, from before: [String: Value]?, to after: [String: Value]?, by file: UInt64) -> Bool {
        after?["number"] != .int(Self.refused)
    }
}

/// Clients with an integration between them. Each has a stream of entries that it has not received.
struct IntegrationPlay {
    static let schema = Schema([
        ObjectType(
            name: "Task",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "group", type: .int),
                Property(id: 3, name: "number", type: .int), Property(id: 4, name: "count", type: .int),
                Property(id: 5, name: "items", type: .int, collection: .list),
                Property(id: 6, name: "marks", type: .int, collection: .dictionary),
                Property(id: 7, name: "tags", type: .int, collection: .set),
            ])
    ])

    static func key(_ number: Int) -> ObjectKey { ObjectKey(type: "Task", key: .int(Int64(number))) }
    static func path(_ number: Int, _ field: String, _ steps: [RealmStep] = []) -> RealmPath { RealmPath(key(number), field, steps) }

    var server: RealmIntegration
    var rules = GroupRules()
    var clients: [SimulatedClient] = []
    private(set) var streams: [[RealmDelivery]] = []
    private(set) var rejections: [RealmRejection] = []
    var now: UInt64 = 1_000

    init(clients count: Int, bounds: RealmIntegrationBounds = RealmIntegrationBounds()) throws {
        server = RealmIntegration(bounds: bounds)
        for index in 0..<count { try join(UInt64(index + 2), groups: [0, 1, 2]) }
    }

    mutating func join(_ file: UInt64, groups: Set<Int64>) throws {
        clients.append(SimulatedClient(file, Self.schema))
        streams.append([])
        server.add(file)
        try query(clients.count - 1, groups)
    }

    /// Changes a client's query. With `isResend`, the entries on their way are lost and the whole view is sent.
    mutating func query(_ index: Int, _ groups: Set<Int64>, isResend: Bool = false) throws {
        let file = clients[index].file
        rules.groups[file] = groups
        if isResend { streams[index] = [] }
        guard let delivery = server.bootstrap(file, rules: rules, now: now, isResend: isResend) else { return }
        streams[index].append(delivery)
    }

    mutating func commit(_ index: Int, _ instructions: [RealmInstruction], at time: UInt64? = nil) throws {
        try clients[index].commit(instructions, at: time ?? now)
    }

    /// Uploads one changeset, or nothing.
    @discardableResult
    mutating func upload(_ index: Int) throws -> RealmIntegrationResult? {
        guard let upload = clients[index].nextUpload() else { return nil }
        guard let result = try server.integrate(upload, rules: rules, now: now) else { return nil }
        for other in clients.indices {
            if let delivery = result.deliveries[clients[other].file] { streams[other].append(delivery) }
        }
        rejections += result.rejected.values
        return result
    }

    /// Receives the next entry, or nothing.
    mutating func receive(_ index: Int) throws {
        guard !streams[index].isEmpty else { return }
        try clients[index].receive(streams[index].removeFirst())
    }

    /// Uploads and receives until nothing is on its way.
    mutating func settle() throws {
        for index in clients.indices { while clients[index].hasUploads { try upload(index) } }
        for index in clients.indices { while !streams[index].isEmpty { try receive(index) } }
    }

    /// Returns the first difference between a client, a fresh client with its query, and the server's objects. Nil if all are equal.
    mutating func difference() throws -> String? {
        for index in clients.indices {
            let client = clients[index]
            let expected = expected(client.file)
            if client.objects != expected { return "file \(client.file) has \(client.objects), the server \(expected)" }
            var copy = self
            try copy.join(1_000, groups: rules.groups[client.file] ?? [])
            try copy.receive(copy.clients.count - 1)
            let fresh = copy.clients[copy.clients.count - 1].objects
            if fresh != expected { return "a fresh client has \(fresh), the server \(expected)" }
        }
        return nil
    }

    private func expected(_ file: UInt64) -> [ObjectKey: [String: Value]] {
        let empty = RealmModel.empty(Self.schema.types[0])
        return server.objects.filter { rules.isInView($0.key, $0.value.values, of: file) }
            .mapValues { empty.merging($0.values) { $1 } }
    }
}

/// A random play of clients with offline phases.
struct RandomPlay {
    var play: IntegrationPlay
    var random: SplitMix64
    private var isOffline: [Bool]
    private var next: Int64 = 100
    /// The greatest step back of a clock.
    let skew: Int

    init(seed: UInt64, skew: Int) throws {
        play = try IntegrationPlay(clients: 3)
        random = SplitMix64(seed: seed)
        isOffline = [false, false, false]
        self.skew = skew
    }

    mutating func run(steps: Int) throws {
        for _ in 0..<steps { try step() }
        try play.settle()
    }

    private mutating func step() throws {
        play.now += UInt64(random.below(3))
        let index = random.below(3)
        switch random.below(20) {
        case 0: isOffline[index].toggle()
        case 1 where !isOffline[index]:
            try play.query(index, Set((0..<3).filter { _ in random.chance(60) }), isResend: random.chance(30))
        case 2..<9: try commit(index)
        case 9..<14: if !isOffline[index] { try play.upload(index) }
        default: if !isOffline[index] { try play.receive(index) }
        }
    }

    private mutating func commit(_ index: Int) throws {
        var changeset: [RealmInstruction] = []
        var copy = play.clients[index]
        for _ in 0..<(1 + random.below(3)) {
            let instructions = instructions(copy.objects)
            try copy.commit(instructions, at: 0)
            changeset += instructions
        }
        let time = play.now + UInt64(index * 2) - UInt64(random.below(skew + 1))
        try play.commit(index, changeset, at: time)
    }

    private mutating func instructions(_ objects: [ObjectKey: [String: Value]]) -> [RealmInstruction] {
        let number = random.below(4)
        let key = IntegrationPlay.key(number)
        next += 1
        guard let values = objects[key] else {
            let group = RealmInstruction.update(IntegrationPlay.path(number, "group"), .value(.int(Int64(random.below(3)))))
            return [.createObject(key), group]
        }
        func path(_ field: String) -> RealmPath { IntegrationPlay.path(number, field) }
        switch random.below(16) {
        case 0: return [.eraseObject(key)]
        case 1: return [.eraseObject(key), .createObject(key), .update(path("number"), .value(.int(next)))]
        case 2: return [.update(path("group"), .value(.int(Int64(random.below(3)))))]
        case 3: return [.update(path("number"), .value(.int(random.chance(25) ? GroupRules.refused : next)))]
        case 4: return [.update(path("count"), .value(.int(next)), isDefault: random.chance(20))]
        case 5, 6: return [.addInteger(path("count"), Int64(1 + random.below(5)))]
        case 7: return keyed(number, values)
        default:
            guard case .list(let items)? = values["items"] else { return [] }
            return list(path("items"), items.count)
        }
    }

    private mutating func keyed(_ number: Int, _ values: [String: Value]) -> [RealmInstruction] {
        let key = String(random.below(3))
        let member = Value.int(Int64(random.below(3)))
        switch random.below(7) {
        case 0: return [.clear(IntegrationPlay.path(number, "marks"), .dictionary)]
        case 1: return [.clear(IntegrationPlay.path(number, "tags"), .set)]
        case 2: return [.setErase(IntegrationPlay.path(number, "tags"), .value(member))]
        case 3: return [.setInsert(IntegrationPlay.path(number, "tags"), .value(member))]
        default: return [.update(IntegrationPlay.path(number, "marks", [.key(key)]), .value(.int(next)))]
        }
    }

    private mutating func list(_ path: RealmPath, _ count: Int) -> [RealmInstruction] {
        guard count > 0, random.chance(60) else {
            return [.arrayInsert(path, at: random.below(count + 1), .value(.int(next)), priorSize: count)]
        }
        let index = random.below(count)
        switch random.below(8) {
        case 0: return [.clear(path, .list)]
        case 1...2: return [.arrayErase(path, at: index, priorSize: count)]
        case 3...4: return [.arrayUpdate(path, at: index, .value(.int(next)), priorSize: count)]
        default:
            let to = random.below(count)
            return to == index ? [] : [.arrayMove(path, from: index, to: to, priorSize: count)]
        }
    }
}
