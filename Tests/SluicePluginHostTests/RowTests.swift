import CSluicePlugin
import SluiceCore
import SluicePluginHost
import SluicePluginKit
import SluicePorts
import SluiceValues
import Synchronization
import TestSupport
import Testing

/// The rows that reach a plugin, compared with the values' extended JSON.
@Suite struct `Writes and objects as rows` {
    /// Keeps what it is asked about, as it reads it within the hook and beyond.
    private final class Reader: WriteRules, IngestRules {
        static let name = "Reader"
        static let version = "1"
        struct Seen { var writes: [PluginWrite], values: [[PluginValue?]] }
        /// By user.
        static let seen = Mutex<[String: Seen]>([:])

        init(log: PluginLog) {}

        func checkWrites(user: PluginUser, writes: [PluginWrite]) throws -> [SluicePluginKit.WriteVerdict] {
            let values = writes.map { [$0.before?.value, $0.after?.value] }
            Self.seen.withLock { $0[user.id] = Seen(writes: writes, values: values) }
            return writes.map { _ in .allow }
        }

        /// By type.
        static let ingested = Mutex<[String: [PluginRow]]>([:])

        func ingest(type: String, objects: [PluginRow]) throws -> [SluicePluginKit.IngestVerdict] {
            Self.ingested.withLock { $0[type] = objects }
            return objects.map { _ in .accept }
        }
    }

    /// The plugin in a table of its own, and what it reads of writes.
    private struct Hosted {
        private var table = sluice_plugin()

        init() {
            let host = UnsafeMutablePointer<sluice_host>.allocate(capacity: 1)
            host.initialize(
                to: sluice_host(
                    size: UInt32(MemoryLayout<sluice_host>.size), abi_major: 1, abi_minor: 0, reserved: 0, context: nil,
                    log: { _, _, _ in },
                    count: { _, _, _ in SLUICE_FAILED }, custom_data: { _, _, _ in SLUICE_FAILED },
                    parse_predicate: { _, _, _, _ in SLUICE_FAILED }))
            table.size = UInt32(MemoryLayout<sluice_plugin>.size)
            var sink = sluice_sink(context: nil, write: { _, _ in })
            _ = PluginMain.register(Reader.self, host, &table, &sink)
        }

        func seen(_ user: UserContext, _ writes: [ProposedWrite]) throws -> Reader.Seen {
            var sink = sluice_sink(context: nil, write: { _, _ in })
            let status = RowFrame.withWrites(in: RowFrame.encode(user, writes)) { table.check_write!(table.state, $0, &sink) }
            #expect(status == SLUICE_OK)
            return try #require(Reader.seen.withLock { $0.removeValue(forKey: user.id) })
        }

        func ingested(_ objects: ObjectRows, _ indices: [Int]) throws -> [PluginRow] {
            var sink = sluice_sink(context: nil, write: { _, _ in })
            let status = RowFrame.withWrites(in: RowFrame.encode(objects, indices)) { table.ingest!(table.state, $0, &sink) }
            #expect(status == SLUICE_OK)
            return try #require(Reader.ingested.withLock { $0.removeValue(forKey: objects.type.name) })
        }
    }

    private static func type(_ number: Int, _ random: inout SplitMix64) -> ObjectType {
        let properties = (0..<random.below(12)).map {
            Property(id: UInt32($0 + 1), name: "\(String.random(using: &random)) \($0)", type: .mixed, isOptional: true)
        }
        return ObjectType(name: "Type \(number)", properties: properties, primaryKey: properties.last?.name)
    }

    private static func writes(_ random: inout SplitMix64) -> [ProposedWrite] {
        let types = (0..<3).map { type($0, &random) }
        return (0..<random.below(20)).map { _ in
            let type = random.pick(types)
            func row() -> Row { Row(type.properties.map { _ in random.below(5) == 0 ? nil : Value.random(using: &random) }) }
            let before = row()
            switch random.below(3) {
            case 0: return ProposedWrite(type: type, operation: .insert, before: nil, after: before)
            case 1: return ProposedWrite(type: type, operation: .delete, before: before, after: nil)
            default:
                let values = zip(before.values, row().values).map { random.below(2) == 0 ? $0 : $1 }
                return ProposedWrite(type: type, operation: .update, before: before, after: Row(values))
            }
        }
    }

    private static func json(_ row: Row, of type: ObjectType) -> JSON {
        let values = zip(type.properties, row.values).compactMap { property, value in value.map { (property.name, $0) } }
        return ExtendedJSON.json(Dictionary(uniqueKeysWithValues: values))
    }

    // MARK: In Swift

    @Test(arguments: seeds(10)) func `are to a Swift plugin what their JSON is, in the hook and after it`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let hosted = Hosted()
        for round in 0..<10 {
            let writes = Self.writes(&random)
            let seen = try hosted.seen(UserContext(id: "user \(seed) \(round)", customData: ["n": .int(Int64(round))]), writes)
            try #require(seen.writes.count == writes.count)
            for (index, write) in writes.enumerated() {
                let read = seen.writes[index]
                #expect(read.type == write.type.name && ["insert", "update", "delete"].firstIndex(of: read.operation) != nil)
                for (place, (row, theirs)) in zip([write.before, write.after], [read.before, read.after]).enumerated() {
                    let expected = try row.map { try PluginValue(parsing: Self.json($0, of: write.type).text) }
                    #expect(seen.values[index][place] == expected, "seed \(seed)")
                    #expect(theirs?.value == expected, "seed \(seed)")
                    if let theirs, let expected { Self.compare(theirs, expected, write.type, seed) }
                }
                guard let before = read.before, let after = read.after else { continue }
                for property in write.type.properties {
                    let isSame = (before[property.name] ?? .null) == (after[property.name] ?? .null)
                    #expect(after.hasSame(property.name, as: before) == isSame, "seed \(seed)")
                }
            }
        }
    }

    /// Some of a buffer's rows, in any order; a name of its own for each, since tests run beside each other.
    private static func objects(_ name: String, _ random: inout SplitMix64) -> (objects: ObjectRows, asked: [(Int, Row)]) {
        let drawn = type(0, &random)
        let type = ObjectType(name: name, kind: .asymmetric, properties: drawn.properties, primaryKey: drawn.properties.last?.name)
        let rows = (0..<random.below(20)).map { _ in
            Row(type.properties.map { _ in random.below(5) == 0 ? nil : Value.random(using: &random) })
        }
        var objects = ObjectRows(type: type, values: [])
        objects.rows = rows.map { objects.buffer.append($0) }
        let asked = rows.indices.filter { _ in random.below(3) > 0 }.shuffled(using: &random).map { ($0, rows[$0]) }
        return (objects, asked)
    }

    @Test(arguments: seeds(10)) func `are objects to a Swift plugin what their JSON is`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let hosted = Hosted()
        for round in 0..<10 {
            let (objects, asked) = Self.objects("objects \(seed) \(round)", &random)
            let read = try hosted.ingested(objects, asked.map(\.0))
            try #require(read.count == asked.count)
            for (row, theirs) in zip(asked.map(\.1), read) {
                let expected = try PluginValue(parsing: Self.json(row, of: objects.type).text)
                #expect(theirs.value == expected, "seed \(seed)")
                Self.compare(theirs, expected, objects.type, seed)
            }
        }
    }

    /// Compares field by field, as a row of cells and as extended JSON.
    private static func compare(_ row: PluginRow, _ value: PluginValue, _ type: ObjectType, _ seed: UInt64) {
        let plain = PluginRow(value)
        for name in type.properties.map(\.name) + ["no such field"] {
            #expect(row[name] == plain[name] && row.isNull(name) == plain.isNull(name), "seed \(seed)")
            #expect(row.bool(name) == plain.bool(name) && row.int(name) == plain.int(name), "seed \(seed)")
            #expect(row.number(name)?.bitPattern == plain.number(name)?.bitPattern || row.number(name)?.isNaN == true, "seed \(seed)")
            #expect(row.string(name) == plain.string(name), "seed \(seed)")
            #expect(row.has(name, equalTo: plain.string(name) ?? "") == (plain.string(name) != nil), "seed \(seed)")
        }
        #expect(row == plain && !row.has("no such field", equalTo: ""))
    }

    @Test func `say who writes, each time`() throws {
        let hosted = Hosted()
        for id in ["ann", "bob", "ann"] { #expect(try hosted.seen(UserContext(id: "rows of \(id)"), []).writes.isEmpty) }
    }

    // MARK: In C

    @Test(arguments: seeds(10)) func `are by the functions of the header what they were`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<10 {
            let writes = Self.writes(&random)
            let user = UserContext(id: "ann", type: "server", customData: ["team": "é"])
            let isWhole = RowFrame.withWrites(in: RowFrame.encode(user, writes)) { batch in
                #expect(sluice_text_is(batch.pointee.user_id, "ann", 3) != 0 && sluice_text_is(batch.pointee.user_type, "server", 6) != 0)
                #expect(Self.string(batch.pointee.user).contains(#""custom_data":{"team":"é"}"#))
                #expect(batch.pointee.write_count == writes.count)
                for (index, write) in writes.enumerated() {
                    Self.compare(sluice_write_at(batch, UInt32(index)).pointee, write, seed)
                }
                return true
            }
            #expect(isWhole == true, "seed \(seed)")
        }
    }

    @Test(arguments: seeds(10)) func `are inserts by nobody when they are ingested`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for round in 0..<10 {
            let (objects, asked) = Self.objects("inserts \(seed) \(round)", &random)
            let isWhole = RowFrame.withWrites(in: RowFrame.encode(objects, asked.map(\.0))) { batch in
                let user = [batch.pointee.user_id, batch.pointee.user_type, batch.pointee.user]
                #expect(user.allSatisfy { $0.length == 0 } && batch.pointee.write_count == asked.count)
                #expect(batch.pointee.type_count == 1 && Self.string(sluice_type_at(batch, 0).pointee.name) == objects.type.name)
                for (index, row) in asked.map(\.1).enumerated() {
                    let write = ProposedWrite(type: objects.type, operation: .insert, before: nil, after: row)
                    let read = sluice_write_at(batch, UInt32(index)).pointee
                    #expect(read.operation == SLUICE_INSERT.rawValue)
                    Self.compare(read, write, seed)
                }
                return true
            }
            #expect(isWhole == true, "seed \(seed)")
        }
    }

    private static func compare(_ read: sluice_write, _ write: ProposedWrite, _ seed: UInt64) {
        let type = read.type.pointee
        #expect(string(type.name) == write.type.name && Int(type.column_count) == write.type.properties.count)
        #expect(type.primary_key == write.type.primaryKey.map { UInt32($0) } ?? SLUICE_NO_COLUMN)
        var (before, after) = (read.before, read.after)
        #expect((before.cells != nil) == (write.before != nil) && (after.cells != nil) == (write.after != nil))
        for (index, property) in write.type.properties.enumerated() {
            let column = sluice_type_column(read.type, property.name, property.name.utf8.count, UInt32(index / 2))
            #expect(Int(column) == index, "seed \(seed)")
            #expect(json(&before, column) == write.before?[index].map { ExtendedJSON.json($0) }, "seed \(seed)")
            #expect(json(&after, column) == write.after?[index].map { ExtendedJSON.json($0) }, "seed \(seed)")
            #expect((sluice_row_is_null(&after, column) != 0) == (write.after?[index] ?? .null).isNull)
            if let old = write.before, let new = write.after {
                let isSame = byText(old[index] ?? .null) == byText(new[index] ?? .null)
                #expect((sluice_row_same(&before, &after, column) != 0) == isSame, "seed \(seed)")
            }
        }
        #expect(sluice_type_column(read.type, "nothing", 7, 0) == SLUICE_NO_COLUMN && json(&after, SLUICE_NO_COLUMN) == nil)
    }

    /// Decimals are texts to a plugin: some of those that are no canonical ones have the same.
    private static func byText(_ value: Value) -> Value {
        switch value {
        case .decimal(let v): .string("decimal \(v)")
        case .list(let v): .list(v.map { byText($0) })
        case .dictionary(let v): .dictionary(v.mapValues { byText($0) })
        case .link(let type, let key): .link(type: type, key: byText(key))
        default: value
        }
    }

    private static func string(_ text: sluice_text) -> String {
        String(decoding: UnsafeRawBufferPointer(start: text.data, count: text.length), as: UTF8.self)
    }

    /// A cell as extended JSON, by the functions that there are for its kind; nil when it is absent.
    private static func json(_ row: inout sluice_row, _ column: UInt32) -> JSON? {
        let tag = sluice_tag(rawValue: UInt32(sluice_row_cell(&row, column).tag))
        var (flag, whole, number, nanoseconds): (Int32, Int64, Double, Int32) = (0, 0, 0, 0)
        var (text, bytes, count) = (sluice_text(), UnsafePointer<UInt8>?.none, 0)
        var id = [UInt8](repeating: 0, count: 12)
        if sluice_row_bool(&row, column, &flag) != 0 { return .bool(flag != 0) }
        if sluice_row_int(&row, column, &whole) != 0 { return .int(whole) }
        if sluice_row_double(&row, column, &number) != 0 {
            return ExtendedJSON.json(tag == SLUICE_TAG_FLOAT ? .float(Float(number)) : .double(number))
        }
        if sluice_row_text(&row, column, &text) != 0 {
            return tag == SLUICE_TAG_DECIMAL ? ["$numberDecimal": .string(string(text))] : .string(string(text))
        }
        if sluice_row_bytes(&row, column, &bytes, &count) != 0 {
            let content = Array(UnsafeBufferPointer(start: bytes, count: count))
            return ExtendedJSON.json(tag == SLUICE_TAG_UUID ? .uuid(UUIDBytes(bytes: content)) : .binary(content))
        }
        if sluice_row_date(&row, column, &whole, &nanoseconds) != 0 {
            return ExtendedJSON.json(.timestamp(Timestamp(seconds: whole, nanoseconds: nanoseconds)))
        }
        if sluice_row_object_id(&row, column, &id) != 0 { return ExtendedJSON.json(.objectId(ObjectIdentifierBytes(bytes: id))) }
        return inside(&row, column, tag)
    }

    private static func inside(_ row: inout sluice_row, _ column: UInt32, _ tag: sluice_tag) -> JSON? {
        var inside = row
        guard sluice_row_inside(&row, column, &inside) != 0 else { return tag == SLUICE_TAG_NULL ? .null : nil }
        let elements = (0..<inside.count).map { json(&inside, $0) ?? .null }
        switch tag {
        case SLUICE_TAG_LIST: return .array(elements)
        case SLUICE_TAG_LINK: return elements.count == 2 ? ["$ref": elements[0], "$id": elements[1]] : .null
        default:
            let keys = stride(from: 0, to: elements.count, by: 2).map { elements[$0].string ?? "" }
            for (index, key) in keys.enumerated() {
                #expect(sluice_row_key(&inside, key, key.utf8.count) == UInt32(2 * index + 1) || keys.firstIndex(of: key) != index)
            }
            return .object(keys.indices.map { JSON.Member(keys[$0], elements[2 * $0 + 1]) })
        }
    }

    // MARK: Frames that are none

    @Test(arguments: seeds(10)) func `that are damaged are refused, or can be read to the end`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<100 {
            var frame = RowFrame.encode(UserContext(id: "ann"), Self.writes(&random))
            for _ in 0...random.below(4) { frame[random.below(frame.count)] = UInt8.random(in: 0...255, using: &random) }
            if random.below(4) == 0 { frame.removeLast(random.below(frame.count)) }
            _ = RowFrame.withWrites(in: frame) { batch in
                for index in 0..<batch.pointee.write_count {
                    let write = sluice_write_at(batch, index).pointee
                    var rows = [write.before, write.after]
                    for column in 0..<write.type.pointee.column_count {
                        for row in rows.indices where sluice_row_is_null(&rows[row], column) == 0 { _ = Self.touch(&rows[row], column) }
                    }
                }
            }
        }
    }

    /// Reads every byte of a cell.
    private static func touch(_ row: inout sluice_row, _ column: UInt32) -> Int {
        var (text, bytes, count, inside) = (sluice_text(), UnsafePointer<UInt8>?.none, 0, row)
        if sluice_row_text(&row, column, &text) != 0 { return string(text).utf8.count }
        if sluice_row_bytes(&row, column, &bytes, &count) != 0 {
            return UnsafeBufferPointer(start: bytes, count: count).reduce(0) { $0 + Int($1) }
        }
        guard sluice_row_inside(&row, column, &inside) != 0 else { return 0 }
        return (0..<inside.count).reduce(0) { $0 + touch(&inside, $1) }
    }
}
