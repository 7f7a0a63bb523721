import SluiceCore
import SluiceValues
import TestSupport
import Testing

@testable import SluiceReplica

/// What a replica's file may hold.
struct OracleLimits {
    /// The classes and fields that the device's app knows.
    let schema: Schema
    /// The zones whose objects its user may see, by class; all of those not named.
    var zones: [String: Set<String>]
    /// The fields that its user is not shown, by class.
    var masked: [String: Set<String>]
    /// What the device wrote itself: it is its own for as long as it is pending.
    let written: [ObjectKey: Set<String>]

    var classes: [ObjectType] { schema.types.filter { $0.kind == .topLevel } }

    func keys(_ type: String, writing field: String? = nil) -> [Value] {
        written.filter { $0.key.type == type && (field.map($0.value.contains) ?? true) }.map(\.key.key)
    }
}

/// A replica's file as SQLite finds it, without the SDK's reader: all tables that hold rows, fields or keys of objects. Only those that
/// hold the words of the app itself are left out, and the log of commits, which names what left the view to other processes.
struct OracleFile {
    private let file: SQLiteLibrary
    private let limits: OracleLimits
    private let comment: String

    private static let lists = ["_sluice_link_dirty", "_sluice_staged_removal", "_sluice_staged_kept"]
    private static let others: Set = [
        "_sluice_meta", "_sluice_property", "_sluice_schema", "_sluice_inverse", "_sluice_commit", "_sluice_subscription_set",
        "_sluice_subscription", "_sluice_pending", "_sluice_ingest", "sqlite_sequence",
    ]

    init(_ path: String, _ limits: OracleLimits, _ comment: String) throws {
        file = try SQLiteLibrary(reading: path)
        self.limits = limits
        self.comment = comment
        try file.run("PRAGMA busy_timeout = 30000")
    }

    /// Lends one state of the file: a bootstrap that ends in between would take its tables away.
    func read(_ body: (OracleFile) throws -> Void) throws {
        try file.run("BEGIN")
        defer { _ = try? file.run("COMMIT") }
        try body(self)
    }

    // MARK: At any moment

    /// No row and no field is there that the limits do not allow, and no table that nobody thought of.
    func expectNoLeak() throws {
        var known = OracleFile.others.union(
            OracleFile.lists + ["_sluice_server", "_sluice_pending_change", "_sluice_staged_times", "_sluice_error", "_sluice_link"])
        for type in limits.classes {
            known.formUnion(tables(of: type))
            for table in try tables(of: type).filter(exists) { try expectNoLeak(table, type) }
            try expectNoLeakOfLinks(type)
        }
        let tables = try file.rows("SELECT name FROM sqlite_master WHERE type = 'table'").map { strings($0)[0] }
        #expect(known.isSuperset(of: tables), "\(comment) has tables of which this test does not know what they hold")
        try expectNoLeakOfServerRows()
    }

    private func tables(of type: ObjectType) -> [String] { [type.name, "_sluice_staging_\(type.name)", "_sluice_earlier_\(type.name)"] }

    private func exists(_ table: String) throws -> Bool {
        try file.run("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?", [.string(table)]) != [0]
    }

    private func expectNoLeak(_ table: String, _ type: ObjectType) throws {
        // What is staged is the server's word; what is shown has the pending changes in it.
        let isShown = table == type.name
        let key = keyColumn(type)
        if let zones = limits.zones[type.name] {
            let isForeign = isShown ? "\(key) NOT IN (SELECT key FROM _sluice_pending_change WHERE type = ?) AND " : ""
            let rows = try count(
                "\"\(table)\" WHERE \(isForeign)coalesce(zone, '') NOT IN (\(places(zones.count)))",
                (isShown ? [.string(type.name)] : []) + zones.map { .string($0) })
            #expect(rows == 0, "\(comment) has \(rows) rows of other zones than \(zones) in \(table)")
        }
        for property in masked(type) {
            let own = isShown ? limits.keys(type.name, writing: property.name) : []
            let isOwn = "\(key) IN (SELECT key FROM _sluice_pending_change WHERE type = ?) AND \(key) IN (\(places(own.count)))"
            let rows = try count(
                #""\#(table)" WHERE "\#(property.name)" IS NOT ? AND NOT (\#(isOwn))"#, [property.emptyValue, .string(type.name)] + own)
            #expect(rows == 0, "\(comment) has \(property.name) in \(rows) rows of \(table)")
        }
    }

    /// Links backwards are those of the rows there are, and of no field that is hidden.
    private func expectNoLeakOfLinks(_ type: ObjectType) throws {
        let class_ = [Value.string(type.name)]
        let strange = try count(#"_sluice_link WHERE type = ? AND key NOT IN (SELECT \#(keyColumn(type)) FROM "\#(type.name)")"#, class_)
        #expect(strange == 0, "\(comment) has \(strange) links of rows of \(type.name) that are not there")
        for property in masked(type) {
            let own = limits.keys(type.name, writing: property.name)
            let isOwn = "key IN (SELECT key FROM _sluice_pending_change WHERE type = ?) AND key IN (\(places(own.count)))"
            let links = try count(
                "_sluice_link WHERE type = ? AND (property = ? OR property LIKE ?) AND NOT (\(isOwn))",
                class_ + [.string(property.name), .string("\(property.name)→%")] + class_ + own)
            #expect(links == 0, "\(comment) has \(links) links of \(property.name) of \(type.name)")
        }
    }

    private func expectNoLeakOfServerRows() throws {
        for (type, key, row) in try serverRows() {
            guard let row else { continue }
            if let zones = limits.zones[type.name] {
                #expect(zones.contains { row["zone"] == .string($0) }, "\(comment) keeps a server row of \(type.name) \(key): \(row)")
            }
            for property in masked(type) {
                let value = row[property.name] ?? property.emptyValue
                #expect(value == property.emptyValue, "\(comment) keeps \(property.name) of the server's row of \(type.name) \(key)")
            }
        }
    }

    // MARK: At a barrier

    /// The rows of classes are those wanted, and nothing is of any object besides them but what the device wrote itself.
    func expect(_ want: [String: [Value: [String: Value]]]) throws {
        for type in limits.classes {
            let rows = want[type.name] ?? [:]
            let wanted = Set(rows.keys.map(stored))
            let written = Set(limits.keys(type.name).map(stored))
            func keys(_ table: String, _ column: String = "key") throws -> Set<Value> {
                guard column == "key" else { return Set(try file.rows(#"SELECT \#(column) FROM "\#(table)""#).map { $0[0] }) }
                return Set(try file.rows("SELECT key FROM \(table) WHERE type = ?", [.string(type.name)]).map { $0[0] })
            }
            let found = try keys(type.name, keyColumn(type))
            #expect(found == wanted, "\(comment) has other rows in \(type.name)")
            let columns = Set(try file.rows("SELECT name FROM pragma_table_info(?)", [.string(type.name)]).map { strings($0)[0] })
            #expect(columns == Set(type.properties.map(\.name)), "\(comment) has other fields in \(type.name)")
            for table in try tables(of: type).dropFirst().filter(exists) {
                #expect(wanted.isSuperset(of: try keys(table, keyColumn(type))), "\(comment) has other rows in \(table)")
            }
            for table in OracleFile.lists { #expect(wanted.isSuperset(of: try keys(table)), "\(comment) has other keys in \(table)") }
            for table in ["_sluice_server", "_sluice_pending_change", "_sluice_staged_times"] {
                #expect(wanted.union(written).isSuperset(of: try keys(table)), "\(comment) has other keys in \(table)")
            }
            try expectLinks(type, rows)
        }
        try expectServerRows(want)
        try expectRefusals()
    }

    private func expectServerRows(_ want: [String: [Value: [String: Value]]]) throws {
        for (type, key, row) in try serverRows() {
            guard let row else { continue }
            let rows = want[type.name]?.filter { stored($0.key) == key }.map(\.value) ?? []
            // By their texts where they are not equal: a dictionary's members have no order in it.
            let isSame = rows.contains { want in
                row.allSatisfy { want[$0.key] ?? .null == $0.value || "\(want[$0.key] ?? .null)" == "\($0.value)" }
            }
            #expect(isSame, "\(comment) keeps \(row) as the server's row of \(type.name) \(key), not \(rows)")
        }
    }

    /// A refused write may have what the device itself wanted.
    private func expectRefusals() throws {
        for row in try file.rows("SELECT writes FROM _sluice_error") {
            guard case .binary(let bytes) = row[0] else { continue }
            for write in bytes.withUnsafeBytes({ ChangeCoding.decodeRefusals($0) }) {
                let own = limits.written[write.object]
                #expect(own?.isSuperset(of: write.values.keys) == true, "\(comment) has a refusal of \(write.object) with \(write.values)")
            }
        }
    }

    private func expectLinks(_ type: ObjectType, _ want: [Value: [String: Value]]) throws {
        let rows = Dictionary(uniqueKeysWithValues: want.map { (stored($0.key), $0.value) })
        for link in try file.rows("SELECT property, target, key FROM _sluice_link WHERE type = ?", [.string(type.name)]) {
            let name = strings(link)[0].split(separator: "→").first.map(String.init) ?? ""
            guard let property = type[name], let value = rows[link[2]]?[name] else {
                Issue.record("\(comment) has a link of \(type.name) \(link)")
                continue
            }
            var isLink = false
            if case .link = property.type { isLink = true }
            #expect(
                targets(value, isLink: isLink).contains(link[1]), "\(comment) has a link of \(type.name) \(link), where there is \(value)")
        }
    }

    /// - Parameter isLink: whether plain values are keys of what is linked to.
    private func targets(_ value: Value, isLink: Bool) -> Set<Value> {
        switch value {
        case .list(let elements): elements.reduce(into: []) { $0.formUnion(targets($1, isLink: isLink)) }
        case .dictionary(let pairs): pairs.values.reduce(into: []) { $0.formUnion(targets($1, isLink: isLink)) }
        case .link(_, let key): [stored(key)]
        default: isLink ? [stored(value)] : []
        }
    }

    // MARK: Words

    private func serverRows() throws -> [(type: ObjectType, key: Value, row: [String: Value]?)] {
        try file.rows("SELECT type, key, row FROM _sluice_server").map { row in
            let type = try #require(limits.schema[strings(row)[0]])
            guard case .binary(let bytes) = row[2] else { return (type, row[1], nil) }
            return (type, row[1], try bytes.withUnsafeBytes { try ChangeCoding.decodeRow($0) })
        }
    }

    private func masked(_ type: ObjectType) -> [Property] { (limits.masked[type.name] ?? []).sorted().compactMap { type[$0] } }

    private func keyColumn(_ type: ObjectType) -> String { "\"\(type.properties[type.primaryKey ?? 0].name)\"" }

    private func count(_ rest: String, _ values: [Value]) throws -> Int64 {
        try file.run("SELECT count(*) FROM \(rest)", values).first ?? 0
    }

    private func places(_ count: Int) -> String { Array(repeating: "?", count: count).joined(separator: ", ") }

    private func strings(_ row: [Value]) -> [String] { row.map { if case .string(let text) = $0 { text } else { "" } } }

    /// A key as the file has it.
    private func stored(_ key: Value) -> Value {
        switch key {
        case .objectId(let id): .binary(id.bytes)
        case .uuid(let id): .binary(id.bytes)
        default: key
        }
    }
}
