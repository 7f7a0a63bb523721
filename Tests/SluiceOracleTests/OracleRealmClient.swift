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
    let app: OracleApp
    let role: OracleApp.Role
    let zone: String
    private let gateways: [RunningGateway]
    private let account: RunningGateway.Account
    private let client: RealmTestClient
    private var isOnline = false
    /// The queries of the newest set.
    private(set) var queries: [OracleQuery] = []

    var name: String { role == .keeper ? "Realm keeper of \(zone)" : "Realm \(role)" }

    init(_ gateways: [RunningGateway], _ app: OracleApp, _ role: OracleApp.Role, _ random: inout SplitMix64) async throws {
        (self.gateways, self.app, self.role, zone) = (gateways, app, role, random.pick(OracleApp.zones))
        account = try await gateways[0].account(customData: OracleDevice.data(role, zone))
        client = RealmTestClient(app.schema)
        try client.commit(RealmSchema.instructions(of: app.schema))
        try await comeBack(&random)
        try await subscribe(&random)
    }

    // MARK: Connection

    func goOffline() {
        OracleTests.trace("\(name) goes offline")
        client.disconnect()
        isOnline = false
    }

    func comeBack(_ random: inout SplitMix64) async throws {
        if isOnline { return }
        let gateway = random.pick(gateways)
        OracleTests.trace("\(name) goes online at \(gateway.url)")
        try await client.connect(gateway.url, app: gateway.app, token: account.token)
        isOnline = true
    }

    /// Reads until the server has all writes of the client, and the client all that was committed before. A session that ends for a moment,
    /// as after TRUNCATE, begins again.
    func catchUp(_ random: inout SplitMix64) async throws {
        guard isOnline else { return }
        OracleTests.trace("\(name) catches up")
        for _ in 0..<20 {
            try await client.receive { $0.isUploaded || $0.error != nil }
            if client.file.error == nil {
                try await client.send(client.file.mark())
                try await client.receive { $0.isMarkReached || $0.error != nil }
            }
            guard let error = client.file.error else { return }
            OracleTests.trace("the session of \(name) ended: \(error.message)")
            guard error.action == .transient else { return }
            goOffline()
            try await comeBack(&random)
        }
    }

    // MARK: What the app does

    func subscribe(_ random: inout SplitMix64) async throws {
        // The protocol has one text for each class.
        queries = app.classes.filter { _ in random.chance(70) }.map {
            OracleQuery(type: $0.name, text: app.query(&random, on: $0), options: .init())
        }
        if queries.isEmpty { queries = [OracleQuery(type: app.classes[0].name, text: app.plainQuery(&random), options: .init())] }
        OracleTests.trace("\(name) subscribes to \(queries)")
        try await client.sendSubscriptions(Dictionary(uniqueKeysWithValues: queries.map { ($0.type, $0.text) }))
    }

    /// A transaction of some changes.
    func write(_ random: inout SplitMix64) async throws {
        let open = app.classes.filter { type in queries.contains { $0.type == type.name } }
        var draft = RealmModel(app.schema, client.file.objects)
        var instructions: [RealmInstruction] = []
        for _ in 0...random.below(3) {
            let type = random.pick(open)
            let object = ObjectKey(type: type.name, key: OracleApp.key(random.below(12), type))
            let changes = change(object, type, draft.objects[object], &random)
            try draft.apply(changes)
            instructions += changes
        }
        guard !instructions.isEmpty else { return }
        OracleTests.trace("\(name) writes \(instructions)")
        try await client.write(instructions)
    }

    private func change(
        _ object: ObjectKey, _ type: ObjectType, _ values: [String: Value]?, _ random: inout SplitMix64
    ) -> [RealmInstruction] {
        guard let values else {
            let given = type.properties.dropFirst().filter { $0.name == "zone" || random.chance(70) }
            return [.createObject(object)] + given.flatMap { fill(RealmPath(object, $0.name), $0, app.value($0, &random)) }
        }
        let property = type.properties[1 + random.below(type.properties.count - 1)]
        let path = RealmPath(object, property.name)
        let value = values[property.name] ?? .null
        switch random.below(10) {
        case 0: return [.eraseObject(object)]
        case 1 where property.type == .int && property.collection == .none && value != .null:
            return [.addInteger(path, Int64(random.below(7)) - 3)]
        case 2, 3: return empty(path, property, value) + fill(path, property, app.value(property, &random))
        default: return edit(path, property, value, &random)
        }
    }

    // MARK: Instructions

    /// Returns the instructions that give a value to a place that is empty.
    private func fill(_ path: RealmPath, _ property: Property, _ value: Value) -> [RealmInstruction] {
        switch (property.collection, value) {
        case (.list, .list(let elements)):
            return elements.enumerated().flatMap { insert($0.element, property, path, at: $0.offset, size: $0.offset) }
        case (.set, .list(let members)): return members.map { .setInsert(path, payload($0, property)) }
        case (.dictionary, .dictionary(let entries)):
            return entries.sorted { $0.key < $1.key }.map { .update(path.inner(.key($0.key)), payload($0.value, property)) }
        case (.none, .dictionary(let fields)):
            let inner = OracleApp.place.properties.flatMap { field in
                fill(path.inner(.key(field.name)), field, fields[field.name] ?? field.emptyValue)
            }
            return [.update(path, .container(.object))] + inner
        case (.none, .list(let elements)):
            return [.update(path, .container(.list))]
                + elements.enumerated().map { .arrayInsert(path, at: $0.offset, .value($0.element), priorSize: $0.offset) }
        default: return [.update(path, payload(value, property))]
        }
    }

    /// Returns the instructions that empty a place. A scalar needs none.
    private func empty(_ path: RealmPath, _ property: Property, _ value: Value) -> [RealmInstruction] {
        if property.collection != .none { return [.clear(path, property.collection)] }
        switch value {
        case .list, .dictionary: return [.update(path, .value(.null))]
        default: return []
        }
    }

    private func payload(_ value: Value, _ property: Property) -> RealmPayload {
        if case .link(let type) = property.type, value != .null { return .value(.link(type: type, key: value)) }
        return .value(value)
    }

    private func insert(_ value: Value, _ property: Property, _ path: RealmPath, at index: Int, size: Int) -> [RealmInstruction] {
        [.arrayInsert(path, at: index, payload(value, property), priorSize: size)]
    }

    /// Returns the instructions of a change inside of a value, so that what others change beside it stays.
    private func edit(_ path: RealmPath, _ property: Property, _ value: Value, _ random: inout SplitMix64) -> [RealmInstruction] {
        switch (property.collection, value) {
        case (.list, .list(let elements)): return edit(path, property, elements, &random)
        case (.set, _):
            let member = payload(app.element(property, &random, isElement: true), property)
            return [random.chance(60) ? .setInsert(path, member) : .setErase(path, member)]
        case (.dictionary, .dictionary(let entries)):
            let key = random.pick(["a", "é", "z"])
            if entries[key] != nil, random.chance(30) { return [.update(path.inner(.key(key)), .erased)] }
            return [.update(path.inner(.key(key)), payload(app.element(property, &random, isElement: true), property))]
        case (.none, .dictionary(let fields)):
            let field = random.pick(OracleApp.place.properties)
            let (place, old) = (path.inner(.key(field.name)), fields[field.name] ?? field.emptyValue)
            if case .list(let elements) = old { return edit(place, field, elements, &random) }
            return fill(place, field, app.value(field, &random))
        default: return empty(path, property, value) + fill(path, property, app.value(property, &random))
        }
    }

    private func edit(
        _ path: RealmPath, _ property: Property, _ elements: [Value], _ random: inout SplitMix64
    ) -> [RealmInstruction] {
        let (size, element) = (elements.count, app.element(property, &random, isElement: true))
        let at = random.below(max(size, 1))
        switch size == 0 ? 0 : random.below(10) {
        case 0...3: return insert(element, property, path, at: random.below(size + 1), size: size)
        case 4, 5: return [.arrayErase(path, at: at, priorSize: size)]
        case 6, 7: return [.arrayUpdate(path, at: at, payload(element, property), priorSize: size)]
        case 8:
            let to = random.below(size)
            return to == at ? [] : [.arrayMove(path, from: at, to: to, priorSize: size)]
        default: return [.clear(path, .list)]
        }
    }

    // MARK: What it shows

    /// The objects of the file by class and key.
    var rows: [String: [Value: [String: Value]]] {
        var rows: [String: [Value: [String: Value]]] = [:]
        for (object, values) in client.file.objects { rows[object.type, default: [:]][object.key] = values }
        return rows
    }

    /// Errors that no app should ever have to see in this play.
    var failures: [String] {
        client.file.queryErrors.map { "query error: \($0.message)" } + (client.file.error.map { ["\($0.code): \($0.message)"] } ?? [])
    }

    func stop() { client.disconnect() }
}

extension RealmPath {
    fileprivate func inner(_ step: RealmStep) -> RealmPath { RealmPath(object, field, steps + [step]) }
}
