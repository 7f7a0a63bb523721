import Foundation
import GatewayTestSupport
import RealmTestClient
import RealmTestSupport
import SluiceCore
import SluicePorts
import SluiceRealm
import SluiceReplica
import TestSupport
import Testing

/// An app with a Realm SDK: its file, its connection, and what its user may see. One task uses it.
///
/// It reads what the gateway sends while it waits for something, so a connection can lag behind for a while.
final class OracleRealmClient {
    /// Keeps the play clear of the known limits in docs/realm-protocol.md, which a session that ends during an upload has:
    ///
    /// 1. A client creates an object with a key that others use too. It may keep the object although it is gone, or lack another one.
    /// 2. A client edits a list in several changesets while others edit it too. It may receive code 212.
    ///
    /// While it is `true`, clients create objects with keys of their own only, and edit a list once until the server has confirmed the
    /// edit. They recover from code 212 as from any other client reset, and give up what is rejected again. `SLUICE_ORACLE_CARELESS` plays
    /// without this care.
    static let isCareful = ProcessInfo.processInfo.environment["SLUICE_ORACLE_CARELESS"] == nil

    let app: OracleApp
    private(set) var role: OracleApp.Role
    /// A keeper's zone.
    private(set) var zone: String
    /// The queries of the newest set.
    private(set) var queries: [OracleQuery] = []
    private let gateways: [RunningGateway]
    private let account: RunningGateway.Account
    private let client: RealmTestClient
    private var isOnline = false
    private var recovery: OracleRecovery?
    /// `true` from the writes of a recovery until all is uploaded.
    private var isRecovering = false
    private(set) var resets = 0
    /// The next key of its own, if `isCareful`.
    private var nextKey: Int
    /// Its own, so that its choices, which depend on the moment, do not change those of others.
    private var random: SplitMix64
    /// Errors that no app should ever have to see in this play.
    private var errors: [String] = []

    var name: String { role == .keeper ? "Realm keeper of \(zone)" : "Realm \(role)" }

    /// - Parameter number: The client's number in its play.
    init(
        _ gateways: [RunningGateway], _ app: OracleApp, _ role: OracleApp.Role, _ number: Int, _ random: SplitMix64
    ) async throws {
        (self.gateways, self.app, self.role, self.random) = (gateways, app, role, random)
        (zone, nextKey) = (self.random.pick(OracleApp.zones), 100 * (number + 1))
        account = try await gateways[0].account(customData: OracleDevice.data(role, zone))
        client = RealmTestClient(app.schema)
        try client.commit(RealmSchema.instructions(of: app.schema))
        try await comeBack()
        try await subscribe()
    }

    func stop() { client.disconnect() }

    // MARK: Connection

    func goOffline() {
        guard isOnline else { return }
        OracleTests.trace("\(name) goes offline")
        client.disconnect()
        isOnline = false
    }

    func comeBack() async throws {
        if isOnline { return }
        let gateway = random.pick(gateways)
        OracleTests.trace("\(name) goes online at \(gateway.url)")
        try await client.connect(gateway.url, app: gateway.app, token: account.token)
        isOnline = true
    }

    /// Ends the app, and begins it again with its file.
    func restart() async throws {
        goOffline()
        client.file.reopen()
        try await comeBack()
    }

    /// Reads until the server has all writes of the client, and the client all that was committed before.
    ///
    /// A session that ends for a moment, as after TRUNCATE, begins again. After a client reset, it begins with an empty file.
    func catchUp() async throws {
        guard isOnline else { return }
        OracleTests.trace("\(name) catches up")
        for _ in 0..<20 {
            try await receiveAll()
            guard let error = client.file.error else { return }
            OracleTests.trace("the session of \(name) ended with \(error.code): \(error.message)")
            goOffline()
            if error.action.isReset { try reset(error) }
            guard error.action.isReset || error.action == .transient else { break }
            try await comeBack()
        }
        errors.append("no session lasts: \(client.file.error.map { "\($0)" } ?? "resets")")
    }

    /// Reads until all is done, or the session has ended with an error.
    private func receiveAll() async throws {
        if let recovery {
            try await client.receive { $0.isQueryComplete || $0.error != nil }
            if client.file.error != nil { return }
            let instructions = recovery.instructions(client.file.objects)
            OracleTests.trace("\(name) recovers \(instructions)")
            (self.recovery, isRecovering) = (nil, true)
            if !instructions.isEmpty { try await client.write(instructions) }
        }
        try await client.receive { $0.isUploaded || $0.error != nil }
        if client.file.error != nil { return }
        isRecovering = false
        try await client.send(client.file.mark())
        try await client.receive { $0.isMarkReached || $0.error != nil }
    }

    /// Replaces the file by an empty one, which receives the app's own changes after its view.
    private func reset(_ error: RealmServerError) throws {
        resets += 1
        if error.code != .badClientFileIdent, !(Self.isCareful && error.code == .badChangeset) { errors.append("\(error)") }
        let old = client.file
        // The defects can reject the recovered writes as well. They are given up then.
        if Self.isCareful, isRecovering { recovery = nil } else { recovery = try recovery ?? OracleRecovery(old, app.schema) }
        client.file = RealmTestFile(app.schema)
        try client.commit(RealmSchema.instructions(of: app.schema))
        client.file.subscribe(old.query.queries)
    }

    // MARK: What the app does

    func subscribe() async throws {
        // The protocol has one text for each class.
        queries = app.classes.filter { _ in random.chance(70) }.map {
            OracleQuery(type: $0.name, text: app.query(&random, on: $0), options: .init())
        }
        if queries.isEmpty { queries = [OracleQuery(type: app.classes[0].name, text: app.plainQuery(&random), options: .init())] }
        OracleTests.trace("\(name) subscribes to \(queries)")
        try await client.sendSubscriptions(Dictionary(uniqueKeysWithValues: queries.map { ($0.type, $0.text) }))
    }

    /// The user's custom data change: another role, with other objects and fields, or another zone.
    func changeRole() async throws {
        (role, zone) = (random.pick([.keeper, .keeper, .everybody, .guest]), random.pick(OracleApp.zones))
        OracleTests.trace("a user becomes \(name)")
        try await random.pick(gateways).setCustomData(OracleDevice.data(role, zone), of: account.id)
    }

    /// A transaction of some changes.
    func write() async throws {
        let open = app.classes.filter { type in queries.contains { $0.type == type.name } }
        var draft = RealmModel(app.schema, client.file.objects)
        let pending = Self.isCareful ? Set(try client.file.pending().compactMap { $0.path.map(Field.init) }) : []
        var instructions: [RealmInstruction] = []
        for _ in 0...random.below(3) {
            let changes = change(random.pick(open), draft.objects).filter { change in
                !(change.path.map { pending.contains(Field($0)) && isWithLists($0) } ?? false)
            }
            try draft.apply(changes)
            instructions += changes
        }
        guard !instructions.isEmpty else { return }
        OracleTests.trace("\(name) writes \(instructions)")
        try await client.write(instructions)
    }

    private struct Field: Hashable {
        let object: ObjectKey
        let name: String
        init(_ path: RealmPath) { (object, name) = (path.object, path.field) }
    }

    /// `true` if the property's value can have a list.
    private func isWithLists(_ path: RealmPath) -> Bool {
        guard let property = app.schema[path.object.type]?[path.field] else { return false }
        if case .embedded = property.type { return true }
        return property.collection == .list || property.type == .mixed
    }

    private func change(_ type: ObjectType, _ objects: [ObjectKey: [String: Value]]) -> [RealmInstruction] {
        let held = objects.keys.filter { $0.type == type.name }.sorted { "\($0.key)" < "\($1.key)" }
        guard let object = random.chance(25) ? nil : held.randomElement(using: &random) else { return create(type, objects) }
        let property = type.properties[1 + random.below(type.properties.count - 1)]
        let place = OracleRealmPlace(object, property)
        let value = objects[object]?[property.name] ?? .null
        switch random.below(12) {
        case 0: return [.eraseObject(object)]
        case 1...3 where property.type == .int && property.collection == .none && value != .null:
            return [.addInteger(place.path, Int64(random.below(7)) - 3)]
        case 4, 5: return place.replace(value, by: place.draw(app, &random))
        default: return place.edit(value, app, &random)
        }
    }

    private func create(_ type: ObjectType, _ objects: [ObjectKey: [String: Value]]) -> [RealmInstruction] {
        nextKey += 1
        let object = ObjectKey(type: type.name, key: OracleApp.key(Self.isCareful ? nextKey : random.below(12), type))
        guard objects[object] == nil else { return [] }
        let given = type.properties.dropFirst().filter { $0.name == "zone" || random.chance(70) }
        let places = given.map { OracleRealmPlace(object, $0) }
        return OracleRealmPlace.create(object, type) + places.flatMap { $0.fill($0.draw(app, &random)) }
    }

    // MARK: What it shows

    /// The objects of the file by class and key.
    var rows: [String: [Value: [String: Value]]] {
        var rows: [String: [Value: [String: Value]]] = [:]
        for (object, values) in client.file.objects { rows[object.type, default: [:]][object.key] = values }
        return rows
    }

    /// Errors that no app should ever have to see in this play.
    var failures: [String] { errors + client.file.queryErrors.map { "query error: \($0.message)" } }
}
