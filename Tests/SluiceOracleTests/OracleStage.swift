import Foundation
import GatewayTestSupport
import SluiceCore
import SluicePostgres
import SluiceQuery
import SluiceReplica
import TestSupport
import Testing

/// The play while its gateways run.
struct OracleStage {
    let gateways: [RunningGateway]
    let app: OracleApp
    let comment: String
    /// The app directory, when its rules are edited.
    private let folder: Phone.Folder?
    private var edits = 0
    /// The zones that are open to others than keepers, by class, and those that were since the last barrier; all of a class not named.
    private var open: [String: Set<String>] = [:]
    private var wasOpen: [String: Set<String>] = [:]
    /// The classes of which guests do not see one field more, and of those the ones where it has been so since the last barrier.
    private var veils: Set<String> = []
    private var keptVeils: Set<String> = []
    var random: SplitMix64

    init(_ gateways: [RunningGateway], _ app: OracleApp, _ random: SplitMix64, _ comment: String, _ folder: Phone.Folder?) {
        self.folder = folder
        self.gateways = gateways
        self.app = app
        self.random = random
        self.comment = comment
    }

    mutating func play() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-oracle-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let connection = try await PostgresConnection.connect(gateways[0].conninfo)
        for _ in 0..<4 { await writeSQL(connection) }
        var devices: [OracleDevice] = []
        for role in OracleApp.Role.allCases {
            let device = try await OracleDevice(gateways, app, role, folder: folder.path, &random)
            try device.subscribe(&random)
            devices.append(device)
        }
        let clients = try await realmClients()
        for round in 0..<2 {
            let edited = random.below(30)
            for step in 0..<30 {
                var takesAway = false
                if step == edited { takesAway = try editRules() }
                if random.chance(35) {
                    await writeSQL(connection)
                } else if random.chance(25) {
                    try await act(random.pick(clients))
                } else if try await act(random.pick(devices)) {
                    takesAway = true
                }
                // At once, before anything that comes later can hide what it has left behind. It takes its time, so that few plays do.
                if takesAway, self.folder != nil, random.chance(25) {
                    try await barrier(devices, connection, "\(comment), round \(round), after step \(step), which takes rights away")
                }
                if random.chance(10) {
                    for device in devices { try device.expectNoLeak(open: wasOpen, veils: keptVeils, "\(comment), round \(round)") }
                }
            }
            try await barrier(devices, connection, "\(comment), round \(round)")
            try await barrier(clients, connection, "\(comment), round \(round)")
        }
        for device in devices { await device.stop() }
        for client in clients { client.stop() }
        await connection.close()
    }

    /// - Returns: whether it takes something away from what somebody may see.
    private mutating func act(_ device: OracleDevice) async throws -> Bool {
        switch random.below(20) {
        case 0: try device.subscribe(&random)
        case 1: if random.chance(50) { try device.expire(&random) } else { try device.subscribe(&random) }
        case 2: device.goOffline()
        case 3, 4: try await device.comeBack(&random)
        case 5: try await device.restart(&random)
        case 6: await device.waitForUpload(milliseconds: random.below(60))
        case 7, 8:
            let (role, before) = (device.role, zones(of: device))
            try await device.changeRole(&random)
            if role != .guest, device.role == .guest { return true }
            return zip(before, zones(of: device)).contains { before, after in
                guard let after else { return false }
                return before.map { !$0.isSubset(of: after) } ?? true
            }
        default: try device.write(&random)
        }
        return false
    }

    /// The zones of which a device's user may see the objects of each class, nil being all.
    private func zones(of device: OracleDevice) -> [Set<String>?] {
        app.classes.map { app.visible($0.name, to: device.role, zone: device.zone, open: open[$0.name]) }
    }

    /// Opens other zones of one class to those who are no keepers, or hides a field of it from guests, or shows it again.
    /// - Returns: whether that takes something away from what somebody may see.
    private mutating func editRules() throws -> Bool {
        guard let folder else { return false }
        let type = random.pick(app.classes).name
        if random.chance(40) {
            if veils.remove(type) == nil { veils.insert(type) } else { keptVeils.remove(type) }
            OracleTests.trace("rules of \(type) \(veils.contains(type) ? "veil" : "unveil") a field")
            edits += 1
            try folder.put(app.rules(type, open: open[type], isVeiled: veils.contains(type)), at: ShopApp.table(type, "rules"))
            return veils.contains(type)
        }
        let before = open[type]
        var zones = before
        while zones == open[type] { zones = Set(OracleApp.zones.filter { _ in random.chance(50) } + [random.pick(OracleApp.zones)]) }
        OracleTests.trace("rules of \(type) open \(zones?.sorted() ?? [])")
        wasOpen[type] = wasOpen[type]?.union(zones ?? [])
        open[type] = zones
        edits += 1
        try folder.put(app.rules(type, open: zones ?? [], isVeiled: veils.contains(type)), at: ShopApp.table(type, "rules"))
        return before.map { !$0.isSubset(of: zones ?? []) } ?? true
    }

    // MARK: SQL

    /// A transaction of another program. One that PostgreSQL refuses wrote nothing: that is part of the play.
    private mutating func writeSQL(_ connection: PostgresConnection) async {
        let statements = (0...random.below(4)).map { _ in statement() }
        let end = random.chance(10) ? "ROLLBACK" : "COMMIT"
        OracleTests.trace("SQL: \(statements.joined(separator: "; ")); \(end)")
        if (try? await connection.script("BEGIN;\(statements.joined(separator: ";"));\(end)")) == nil {
            _ = try? await connection.script("ROLLBACK")
        }
    }

    private mutating func statement() -> String {
        let type = random.pick(app.classes)
        let forms = type.properties.map { ColumnForm($0, in: app.schema) }
        let table = TableMapping(type).sqlName
        let columns = type.properties.map { "\"\($0.name)\"" }
        let key = literal(forms[0], OracleApp.key(random.below(12), type))
        switch random.below(12) {
        case 0: return "DELETE FROM \(table) WHERE \"_id\" = \(key)"
        case 1: return "UPDATE \(table) SET zone = '\(random.pick(OracleApp.zones))' WHERE zone = '\(random.pick(OracleApp.zones))'"
        case 2: return random.chance(20) ? "TRUNCATE \(table)" : "DELETE FROM \(table) WHERE zone = '\(random.pick(OracleApp.zones))'"
        case 3...6:
            let index = 1 + random.below(forms.count - 1)
            let value = literal(forms[index], app.value(type.properties[index], &random))
            return "UPDATE \(table) SET \(columns[index]) = \(value) WHERE \"_id\" = \(key)"
        default:
            let values = type.properties.indices.dropFirst().map { literal(forms[$0], app.value(type.properties[$0], &random)) }
            let updates = columns.dropFirst().map { "\($0) = EXCLUDED.\($0)" }
            return """
                INSERT INTO \(table) (\(columns.joined(separator: ", "))) VALUES (\(([key] + values).joined(separator: ", ")))
                ON CONFLICT ("_id") DO UPDATE SET \(updates.joined(separator: ", "))
                """
        }
    }

    private func literal(_ form: ColumnForm, _ value: Value) -> String {
        if case .binary(let bytes) = value, form.property.collection == .none, form.property.type == .binary {
            return "'\\x\(bytes.map { byte in String(byte >> 4, radix: 16) + String(byte & 15, radix: 16) }.joined())'"
        }
        return form.text(value).map { "'\($0.replacing("'", with: "''"))'" } ?? "NULL"
    }

    // MARK: Barrier

    private mutating func barrier(_ devices: [OracleDevice], _ connection: PostgresConnection, _ comment: String) async throws {
        for gateway in edits > 0 ? gateways : [] { try await gateway.untilMetric("sluice_rule_generation", is: Double(1 + edits)) }
        for device in devices { device.goOnline() }
        if gateways.count > 1 { try await tellUsers() }
        for device in devices { try await device.waitForUpload() }
        for device in devices { try await device.waitForDownload() }
        OracleTests.trace("barrier")
        let rows = try await table(connection)
        let graph = MemoryGraph(schema: app.schema, rows: rows.map { ($0.type.name, $0.row) })
        for device in devices {
            let expected = try expected(OracleViewer(device), rows, graph)
            let shown = try device.rows()
            for type in app.classes {
                let (want, have) = (expected[type.name] ?? [:], shown[type.name] ?? [:])
                let asked = device.queries.filter { $0.type == type.name || !$0.options.includes.isEmpty }
                let others = rows.filter { $0.type.name == type.name && $0.row[0].map { want[$0] == nil && have[$0] != nil } == true }
                #expect(
                    Set(want.keys) == Set(have.keys),
                    """
                    \(comment): \(device.name) of \(type.name), which asked for \(asked); shown besides: \
                    \(have.filter { want[$0.key] == nil }), in the table: \(others.map { row in (0..<row.type.properties.count).map { row.row[$0] ?? .null } })
                    """)
                for (key, values) in want {
                    for (name, value) in values where have[key] != nil && !isSame(have[key]?[name], value) {
                        Issue.record(
                            "\(comment): \(device.name) shows \(name) of \(type.name) \(key) as \(have[key]?[name] ?? .null), not \(value)")
                    }
                }
            }
            #expect(device.failures.isEmpty, "\(comment): \(device.name)")
            try device.expectObjects(comment)
            device.passBarrier()
            try device.expectFile(is: expected, open: open, veils: veils, comment)
        }
        (wasOpen, keptVeils) = (open, veils)
    }

    /// NaN is NaN here.
    func isSame(_ left: Value?, _ right: Value) -> Bool { left == right || left.map { "\($0)" } == "\(right)" }

    /// Waits until every gateway knows what the others have changed of users: the one that changes a user answers when its sessions know
    /// all changes so far.
    private func tellUsers() async throws {
        let somebody = try await gateways[0].account().id
        for gateway in gateways { try await gateway.setCustomData(#"{ "told": "\#(gateway.url)" }"#, of: somebody) }
    }

    /// All rows that PostgreSQL has.
    func table(_ connection: PostgresConnection) async throws -> [(type: ObjectType, row: Row)] {
        var rows: [(type: ObjectType, row: Row)] = []
        for type in app.classes {
            let forms = type.properties.map { ColumnForm($0, in: app.schema) }
            let columns = type.properties.map { "\"\($0.name)\"" }.joined(separator: ", ")
            let result = try await connection.query("SELECT \(columns) FROM \(TableMapping(type).sqlName)")
            for number in 0..<result.count {
                rows.append((type, try OracleStage.row(forms, forms.indices.map { result[number, $0] })))
            }
        }
        return rows
    }

    private static func row(_ forms: [ColumnForm], _ texts: [String?]) throws -> Row {
        var buffer = RowBuffer()
        buffer.beginRow()
        for (form, text) in zip(forms, texts) {
            var bytes = text.map { Array($0.utf8) }
            let cell = try bytes?.withUnsafeMutableBufferPointer { bytes in try form.decode(UnsafeBufferPointer(bytes), into: &buffer) }
            buffer.append(try cell ?? form.decode(nil, into: &buffer))
        }
        let place = buffer.endRow()
        return buffer.withView(place) { Row($0) }
    }

    /// What an app should show: the rows that one of its queries and its user's role let through, with the fields that they may
    /// see, of those that the app knows.
    func expected(
        _ device: OracleViewer, _ rows: [(type: ObjectType, row: Row)], _ graph: MemoryGraph
    ) throws -> [String: [Value: [String: Value]]] {
        var visible: [String: [Value: Row]] = [:]
        var masked: [String: Set<String>] = [:]
        for type in app.classes where device.role == .guest {
            masked[type.name] = app.masked(type.name, isVeiled: veils.contains(type.name))
        }
        for (type, row) in rows {
            let zones = app.visible(type.name, to: device.role, zone: device.zone, open: open[type.name])
            if let zones, !zones.contains(where: { row[1] == .string($0) }) { continue }
            // Their queries find nothing in what guests do not see.
            var seen = row
            for name in masked[type.name] ?? [] { if let index = type.index(of: name) { seen[index] = .null } }
            visible[type.name, default: [:]][row[0] ?? .null] = seen
        }
        let view = OracleView(schema: app.schema, visible: visible, graph: graph, masked: masked)
        let shown = try view.shown(device.queries)
        return Dictionary(
            uniqueKeysWithValues: app.classes.map { type in
                let keys = (shown[type.name] ?? []).filter { visible[type.name]?[$0] != nil }
                return (
                    type.name,
                    Dictionary(uniqueKeysWithValues: keys.map { ($0, values(of: visible[type.name]?[$0], type, device, masked)) })
                )
            })
    }

    /// The fields that the device's app knows, with what is shown for those that its user may not see.
    private func values(
        of row: Row?, _ type: ObjectType, _ device: OracleViewer, _ masked: [String: Set<String>]
    ) -> [String: Value] {
        var values: [String: Value] = [:]
        for property in device.schema[type.name]?.properties ?? [] {
            guard let index = type.index(of: property.name) else { continue }
            values[property.name] = masked[type.name]?.contains(property.name) == true ? property.emptyValue : row?[index] ?? .null
        }
        return values
    }
}

/// The facts that decide which objects an app shows.
struct OracleViewer {
    let role: OracleApp.Role
    /// A keeper's.
    let zone: String
    let queries: [OracleQuery]
    /// The classes and properties that the app knows.
    let schema: Schema

    init(_ device: OracleDevice) {
        (role, zone, queries, schema) = (device.role, device.zone, device.queries, device.schema)
    }

    init(_ client: OracleRealmClient) {
        (role, zone, queries, schema) = (client.role, client.zone, client.queries, client.app.schema)
    }
}
