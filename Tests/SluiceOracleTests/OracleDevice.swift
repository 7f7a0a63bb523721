import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceReplica
import SluiceSync
import SluiceValues
import Synchronization
import TestSupport
import Testing

/// An app's replica: its file, the engine that keeps it in step, and what its user may see. One task uses it.
final class OracleDevice {
    let app: OracleApp
    private(set) var role: OracleApp.Role
    /// A keeper's zone.
    private(set) var zone: String
    /// What the user has been since the last barrier.
    private var held: [(role: OracleApp.Role, zone: String)]
    let schema: Schema
    private let gateways: [RunningGateway]
    /// The one that it finds, of those there are.
    private var gateway: RunningGateway
    private let path: String
    private let account: RunningGateway.Account
    /// Kept over restarts, as apps keep it.
    private var token: String { account.token }
    private(set) var replica: Replica
    /// What the app has of the file, where it is one with objects; it goes before the file does.
    private var objects: OracleObjects?
    private var engine: SyncEngine
    private var running: Task<Void, Never>
    private let reports: Reports
    /// The queries of the newest set, by class.
    private(set) var queries: [OracleQuery] = []
    /// Seconds on its clock, by which subscriptions end.
    private var clock: Int64 = 0
    /// The fields that it has written, none where it deleted.
    private var written: [ObjectKey: Set<String>] = [:]

    var name: String { role == .keeper ? "keeper of \(zone)" : "\(role)" }

    init(
        _ gateways: [RunningGateway], _ app: OracleApp, _ role: OracleApp.Role, folder: String, _ random: inout SplitMix64
    ) async throws {
        self.gateways = gateways
        gateway = random.pick(gateways)
        self.app = app
        self.role = role
        zone = random.pick(OracleApp.zones)
        held = [(role, zone)]
        account = try await gateway.account(customData: OracleDevice.data(role, zone))
        let hasObjects = app.isDeclared && role == .everybody
        schema = hasObjects ? OracleObjects.schema : OracleDevice.part(of: app.schema, &random)
        path = "\(folder)/\(UUID().uuidString).replica"
        reports = Reports()
        replica = try Replica(path: path, schema: schema)
        objects = hasObjects ? try OracleObjects(replica, of: app) : nil
        (engine, running) = OracleDevice.begin(replica, gateway, account.token, reports)
    }

    /// An app may know less of a class than the server does.
    private static func part(of schema: Schema, _ random: inout SplitMix64) -> Schema {
        Schema(
            schema.types.map { type in
                if type.kind == .embedded { return type }
                let properties = type.properties.enumerated().filter { $0.offset < 2 || !random.chance(10) }.map(\.element)
                return ObjectType(name: type.name, properties: properties)
            })
    }

    static func data(_ role: OracleApp.Role, _ zone: String) -> String {
        switch role {
        case .everybody: "{}"
        case .keeper: #"{ "zone": "\#(zone)" }"#
        case .guest: #"{ "isGuest": true }"#
        }
    }

    private static func begin(
        _ replica: Replica, _ gateway: RunningGateway, _ token: String, _ reports: Reports
    ) -> (SyncEngine, Task<Void, Never>) {
        let engine = SyncEngine(
            configuration: SyncConfiguration(url: gateway.url, app: gateway.app), replica: replica,
            refresh: { () throws(SluiceError) in token },
            onReport: { report in
                reports.note(report)
                return true
            })
        engine.start()
        return (engine, Task { await engine.run() })  // Unstructured because: an app's engine lives as long as the app; `stop` ends it.
    }

    func stop() async {
        running.cancel()
        await running.value
    }

    /// The app ends, at any point of what it was doing, and begins again with the file.
    func restart(_ random: inout SplitMix64) async throws {
        OracleTests.trace("\(name) begins again")
        await stop()
        gateway = random.pick(gateways)
        let hadObjects = objects.take() != nil
        replica = try Replica(path: path, schema: schema)
        if hadObjects { objects = try OracleObjects(replica, of: app) }
        (engine, running) = OracleDevice.begin(replica, gateway, token, reports)
    }

    func goOffline() {
        OracleTests.trace("\(name) goes offline")
        engine.pause()
    }

    func goOnline() {
        OracleTests.trace("\(name) goes online")
        engine.start()
    }

    /// Goes online again, at another gateway should it find one.
    func comeBack(_ random: inout SplitMix64) async throws {
        let found = random.pick(gateways)
        guard found.url != gateway.url else { return goOnline() }
        OracleTests.trace("\(name) goes online at \(found.url)")
        await stop()
        gateway = found
        (engine, running) = OracleDevice.begin(replica, gateway, token, reports)
    }

    /// Errors that no app should ever have to see in this play.
    var failures: [String] { reports.failures }

    /// The user's custom data change: another role, with other objects and fields, or another zone.
    func changeRole(_ random: inout SplitMix64) async throws {
        (role, zone) = (random.pick([.keeper, .keeper, .everybody, .guest]), random.pick(OracleApp.zones))
        OracleTests.trace("a user becomes \(name)")
        held.append((role, zone))
        try await random.pick(gateways).setCustomData(OracleDevice.data(role, zone), of: account.id)
    }

    /// Everything is as the user's role says now.
    func passBarrier() { held = [(role, zone)] }

    // MARK: What the app does

    func subscribe(_ random: inout SplitMix64) throws {
        queries = app.classes.flatMap { type in (0..<random.below(3)).map { _ in OracleQuery(type, in: app, &random) } }
        if queries.isEmpty { queries = [OracleQuery(app.classes[0], in: app, &random)] }
        OracleTests.trace("\(name) subscribes to \(queries)")
        let now = Timestamp(seconds: clock)
        _ = try replica.addSubscriptionSet(
            queries.enumerated().map { number, query in
                StoredSubscription(
                    id: StoredSubscription.unnumbered, name: "s\(number)", type: query.type, query: query.text, created: now, updated: now,
                    options: query.options)
            })
    }

    /// Time passes, and the subscriptions go whose time is over: by what the file says, as the SDK has it.
    func expire(_ random: inout SplitMix64) throws {
        clock += Int64(random.below(100))
        let now = Timestamp(seconds: clock)
        let set = try replica.currentSubscriptionSet().subscriptions
        let rest = set.filter { $0.expires.map { now < $0 } ?? true }
        guard rest.count < set.count, !rest.isEmpty else { return }
        OracleTests.trace("\(set.count - rest.count) subscriptions of \(name) end")
        queries = rest.map { OracleQuery(type: $0.type, text: $0.query, options: $0.options) }
        _ = try replica.addSubscriptionSet(rest)
    }

    /// A transaction of some changes.
    func write(_ random: inout SplitMix64) throws {
        func isNamed(_ index: Int) -> Bool { queries.contains { $0.type == schema.types[index].name } }
        // What comes along may be changed as well.
        let isMore = queries.contains { !$0.options.includes.isEmpty }
        let open = schema.types.indices.filter { isNamed($0) || isMore && schema.types[$0].kind == .topLevel }
        guard !open.isEmpty else { return }
        if let objects {
            let named = open.filter(isNamed).map { schema.types[$0] }
            // What objects alone have no way to say: that a class cannot be written is the end of an app that tries.
            guard !named.isEmpty else { return }
            return try objects.write(named, &random) { object, fields in written[object, default: []].formUnion(fields) }
        }
        let transaction = try replica.beginWrite()
        for _ in 0...random.below(4) {
            let index = random.pick(open)
            do {
                try change(transaction, index, &random)
            } catch let error as SluiceError where error.code == .noSubscriptionForWrite && !isNamed(index) {
                OracleTests.trace("which nothing brings along, or is new")
            }
        }
        if random.chance(5) { return transaction.cancel() }
        try transaction.commit()
    }

    private func change(_ transaction: WriteTransaction, _ index: Int, _ random: inout SplitMix64) throws {
        let type = schema.types[index]
        let whole = app.schema[type.name] ?? type
        let key = OracleApp.key(random.below(12), whole)
        func wrote(_ fields: some Sequence<String>) { written[ObjectKey(type: type.name, key: key), default: []].formUnion(fields) }
        let kind = random.below(10)
        OracleTests.trace(
            "\(name) \(["deletes", "creates", "creates", "creates", "adds to", "edits", "edits"].dropFirst(kind).first ?? "sets") \(type.name) \(key)"
        )
        switch kind {
        case 0:
            wrote([])
            try transaction.delete(type: index, key: key)
        case 1...3:
            let given = type.properties.dropFirst().filter { $0.name == "zone" || random.chance(70) }
            let values = Dictionary(uniqueKeysWithValues: given.map { ($0.name, app.value($0, &random)) })
            wrote(values.keys)
            try transaction.create(type: index, key: key, values: values)
        case 5, 6:
            if let field = try edit(transaction, index, key, &random) { wrote([field]) }
        case 4:
            guard let counter = type.properties.firstIndex(where: { $0.type == .int && $0.collection == .none && $0.name != "_id" }) else {
                return
            }
            wrote([type.properties[counter].name])
            try transaction.add(type: index, key: key, property: counter, amount: Int64(random.below(7)) - 3)
        default:
            let property = 1 + random.below(type.properties.count - 1)
            wrote([type.properties[property].name])
            try transaction.set(type: index, key: key, property: property, app.value(type.properties[property], &random))
        }
    }

    // MARK: What it shows

    func waitForUpload() async throws { try await engine.wait(for: .upload, milliseconds: 180_000) }

    /// Lets the network have its way for a while: not long enough, and in vain when the device is offline.
    func waitForUpload(milliseconds: Int) async { try? await engine.wait(for: .upload, milliseconds: UInt64(milliseconds)) }

    func waitForDownload() async throws { try await engine.wait(for: .download, milliseconds: 180_000) }

    /// The rows of the file by class and key.
    func rows() throws -> [String: [Value: [String: Value]]] {
        let reader = try replica.makeReader()
        var rows: [String: [Value: [String: Value]]] = [:]
        for (index, type) in schema.types.enumerated() where type.kind == .topLevel {
            try reader.store.scan(type: index) { view in
                let row = Row(view)
                let values = type.properties.indices.map { (type.properties[$0].name, row[$0] ?? .null) }
                rows[type.name, default: [:]][row[0] ?? .null] = Dictionary(uniqueKeysWithValues: values)
            }
        }
        return rows
    }

    /// Holds what the app's objects say against the file.
    func expectObjects(_ comment: String) throws { objects?.expect(try rows(), "\(comment): the objects of \(name)") }

    /// Holds what is in the file at any moment against the user's rules since the last barrier.
    /// - Parameters:
    ///   - open: the zones that were open to others than keepers since then, by class; all of those not named.
    ///   - veils: the classes whose second field guests have not been shown since then.
    func expectNoLeak(open: [String: Set<String>], veils: Set<String>, _ comment: String) throws {
        try OracleFile(path, limits(open: open, veils: veils), "\(comment): the file of \(name)").read { try $0.expectNoLeak() }
    }

    /// Holds what is in the file at a barrier against what its user may see then, and asked for.
    func expectFile(
        is want: [String: [Value: [String: Value]]], open: [String: Set<String>], veils: Set<String>, _ comment: String
    ) throws {
        try OracleFile(path, limits(open: open, veils: veils), "\(comment): the file of \(name)").read { file in
            try file.expectNoLeak()
            try file.expect(want)
        }
    }

    private func limits(open: [String: Set<String>], veils: Set<String>) -> OracleLimits {
        var limits = OracleLimits(schema: schema, zones: [:], masked: [:], written: written)
        let isGuest = held.allSatisfy { $0.role == .guest }
        for type in schema.types where type.kind == .topLevel {
            let seen = held.map { app.visible(type.name, to: $0.role, zone: $0.zone, open: open[type.name]) }
            if !seen.contains(nil) { limits.zones[type.name] = Set(seen.flatMap { $0 ?? [] }) }
            if isGuest { limits.masked[type.name] = app.masked(type.name, isVeiled: veils.contains(type.name)) }
        }
        return limits
    }
}

/// What an engine said that it never should in this play.
private final class Reports: Sendable {
    private let lines = Mutex<[String]>([])

    var failures: [String] { lines.withLock { $0 } }

    func note(_ report: SyncReport) {
        OracleTests.trace("report: \(report)")
        switch report {
        case .stopped(let error), .loggedOut(let error), .clientReset(let error): lines.withLock { $0.append("\(report): \(error)") }
        case .setRefused(let version, let error, _): lines.withLock { $0.append("set \(version) was refused: \(error)") }
        default: break
        }
    }
}
