import SluiceCore
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

/// Random values written to PostgreSQL and read back: the server is the judge of the text forms.
@Suite struct `A value written and read back` {
    private static let types: [PropertyType] = [
        .bool, .int, .float, .double, .decimal, .string, .binary, .timestamp, .objectId, .uuid, .mixed,
    ]

    @Test func `is the value as stored, for every type, alone, in lists, sets and dictionaries`() async throws {
        var random = SplitMix64()
        let schema = Schema([])
        let cases: [(ColumnForm, [Value])] = Self.types.flatMap { type in
            [CollectionKind.none, .list, .set, .dictionary].map { kind in
                let form = ColumnForm(Property(id: 1, name: "p", type: type, collection: kind, isOptional: true), in: schema)
                return (form, (0..<40).map { _ in Self.value(type, kind, &random) })
            }
        }
        try await TestPostgres.withConnection { connection in
            try await connection.script("CREATE SCHEMA sluice; CREATE DOMAIN sluice.objectid AS text")
            for (form, values) in cases {
                for value in values {
                    let result = try await connection.query(
                        "SELECT $1::\(form.columnType)", [form.parameter(value)], cached: true)
                    let back = form.value(result[0, 0])
                    #expect(back == form.stored(value), "seed \(random.seed): \(form.property) \(value) as \(result[0, 0] ?? "NULL")")
                }
            }
        }
    }

    private static func value(_ type: PropertyType, _ kind: CollectionKind, _ random: inout SplitMix64) -> Value {
        switch kind {
        case .none: return scalar(type, &random)
        case .list: return .list((0..<Int.random(in: 0...4, using: &random)).map { _ in scalar(type, &random) })
        case .set: return .set((0..<Int.random(in: 0...4, using: &random)).map { _ in scalar(type, &random) })
        case .dictionary:
            let pairs = (0..<Int.random(in: 0...4, using: &random)).map { _ in (text(&random), scalar(type, &random)) }
            return .dictionary(Dictionary(pairs, uniquingKeysWith: { first, _ in first }))
        }
    }

    private static func scalar(_ type: PropertyType, _ random: inout SplitMix64) -> Value {
        if Int.random(in: 0..<10, using: &random) == 0 { return .null }
        let bits = random.next() >> UInt64.random(in: 0..<64, using: &random)
        switch type {
        case .bool: return .bool(bits & 1 == 0)
        case .int: return .int(Int64(bitPattern: bits))
        case .float: return .float(Float(bitPattern: UInt32(truncatingIfNeeded: random.next())))
        case .double: return .double(Double(bitPattern: random.next()))
        case .decimal: return .decimal(Decimal128("\(Int64(bitPattern: bits))E\(Int.random(in: -40...40, using: &random))")!)
        case .string: return .string(text(&random))
        case .binary: return .binary((0..<Int(bits % 20)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
        case .timestamp:
            // The years 4712 BC to 9999: beyond, JSON texts keep milliseconds only.
            let seconds = Int64.random(in: -62_135_596_800...253_402_300_799, using: &random)
            return .timestamp(Timestamp(seconds: seconds, nanoseconds: Int32(bits % 1_000_000) * (seconds < 0 ? -1_000 : 1_000)))
        case .objectId: return .objectId(ObjectIdentifierBytes(high: random.next(), low: UInt32(truncatingIfNeeded: bits)))
        case .uuid: return .uuid(UUIDBytes(high: random.next(), low: bits))
        default: return mixed(&random)
        }
    }

    private static func mixed(_ random: inout SplitMix64) -> Value {
        let types: [PropertyType] = [.bool, .int, .string, .binary, .timestamp, .objectId, .uuid]
        switch Int.random(in: 0..<4, using: &random) {
        case 0: return .list([scalar(.int, &random), scalar(.string, &random)])
        case 1: return .dictionary([text(&random): scalar(.string, &random)])
        default: return scalar(types.randomElement(using: &random) ?? .int, &random)
        }
    }

    private static func text(_ random: inout SplitMix64) -> String {
        let letters: [Character] = [
            "a", "B", " ", "\"", "\\", "{", "}", ",", "'", "\t", "\n", "\r", "ä", "🙂", "N", "U", "L", "\u{1}", "\u{7F}",
        ]
        return String((0..<Int.random(in: 0...8, using: &random)).map { _ in letters.randomElement(using: &random) ?? "a" })
    }

    @Test func `comes back the same through COPY`() async throws {
        var random = SplitMix64()
        let texts: [String?] = (0..<200).map { $0 % 10 == 0 ? nil : Self.text(&random) }
        let seed = random.seed
        try await TestPostgres.withConnection { connection in
            try await connection.script("CREATE TABLE t (n int, s text)")
            var bytes: [UInt8] = []
            for (number, text) in texts.enumerated() { CopyText.append([String(number), text], to: &bytes) }
            try await connection.copyIn("COPY t FROM STDIN", [bytes])
            let result = try await connection.query("SELECT s FROM t ORDER BY n")
            #expect((0..<result.count).map { result[$0, 0] } == texts, "seed \(seed)")
        }
    }

    @Test(arguments: seeds(10)) func `is the same text in a flat row as alone`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let types: [PropertyType] = [
            .bool, .int, .float, .double, .decimal, .string, .binary, .timestamp, .objectId, .uuid, .mixed,
        ]
        for _ in 0..<100 {
            let properties = (1...8).map { number in
                let collection: CollectionKind = random.chance(60) ? .none : random.pick([.list, .set, .dictionary])
                return Property(
                    id: UInt32(number), name: "p\(number)", type: random.pick(types), collection: collection, isOptional: true)
            }
            let forms = properties.map { ColumnForm($0, in: Schema([])) }
            let row = Row(properties.map { random.chance(20) ? random.pick([nil, .null]) : Self.value($0.type, $0.collection, &random) })
            var buffer = RowBuffer()
            var (flat, alone): ([UInt8], [UInt8]) = ([], [])
            let place = buffer.append(row)
            buffer.withView(place) { CopyText.append($0, forms, to: &flat) }
            let texts = zip(forms, row.values).map { form, value in
                form.text(value?.isNull ?? true ? form.property.emptyValue : value ?? .null)
            }
            CopyText.append(texts, to: &alone)
            #expect(flat == alone, "seed \(seed): \(row)")
        }
    }
}
