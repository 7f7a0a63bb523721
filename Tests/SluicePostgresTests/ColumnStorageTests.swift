import SluiceCore
import SluicePostgres
import SluiceQuery
import SluiceValues
import TestSupport
import Testing

/// Columns of other programs, whose types differ from those that the gateway would choose.
@Suite struct `Columns of other types` {
    private static let type = ObjectType(
        name: "Thing",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "code", type: .string, isOptional: true),
            Property(id: 3, name: "mood", type: .string, isOptional: true),
            Property(id: 4, name: "day", type: .timestamp, isOptional: true),
            Property(id: 5, name: "wall", type: .timestamp, isOptional: true), Property(id: 6, name: "doc", type: .mixed, isOptional: true),
            Property(id: 7, name: "moods", type: .string, collection: .list),
            Property(id: 8, name: "days", type: .timestamp, collection: .list),
            Property(id: 9, name: "codes", type: .string, collection: .set),
            Property(id: 10, name: "clock", type: .string, isOptional: true),
            Property(id: 11, name: "span", type: .string, isOptional: true),
            Property(id: 12, name: "clocks", type: .string, collection: .set),
            Property(id: 13, name: "spans", type: .string, collection: .list),
            Property(id: 14, name: "zoned", type: .string, isOptional: true),
            Property(id: 15, name: "zones", type: .string, collection: .list),
            Property(id: 16, name: "double", type: .int, isOptional: true),
        ])

    private static let table = """
        CREATE TYPE mood AS ENUM ('', 'good', 'bad mood', 'b"a,d'); CREATE DOMAIN somehow AS mood;
        CREATE TABLE "Thing" (
            _id int PRIMARY KEY, code char(6), mood somehow, day date, wall timestamp, doc json, moods mood[] NOT NULL DEFAULT '{}',
            days date[], codes char(3)[], clock time, span interval, clocks time[], spans interval[],
            zoned timetz, zones timetz[], "double" bigint GENERATED ALWAYS AS (_id * 2) STORED);
        """

    private static func with(_ body: (PostgresConnection, TableShape) async throws -> Void) async throws {
        try await TestPostgres.withConnection { connection in
            try await connection.script("SET timezone = 'UTC'; \(table)")
            let catalog = TableCatalog(schema: Schema([type]))
            try await catalog.requireFit(connection)
            let mapping = try #require(try await catalog.found(connection).tables.first)
            try await body(connection, try TableShape(type, in: catalog.schema, mapping: mapping))
            await connection.close()
        }
    }

    private static func time(_ random: inout SplitMix64) -> Value {
        let range: ClosedRange<Int64> = Bool.random(using: &random) ? -2_000_000_000...2_000_000_000 : -100_000_000_000...200_000_000_000
        let nanoseconds = Int64.random(in: 0..<1_000_000, using: &random) * 1_000
        return .timestamp(Timestamp(seconds: Int64.random(in: range, using: &random), nanoseconds: Int32(nanoseconds)))
    }

    private static func digits(_ count: Int, _ random: inout SplitMix64) -> String {
        (0..<count).map { _ in String(Int.random(in: 0..<10, using: &random)) }.joined()
    }

    private static func fraction(_ random: inout SplitMix64) -> String {
        Bool.random(using: &random) ? "" : "." + digits(Int.random(in: 1...6, using: &random), &random)
    }

    /// A time of day, not always as PostgreSQL prints it.
    private static func clock(_ random: inout SplitMix64) -> String {
        func two(_ below: Int) -> String { String(String(100 + Int.random(in: 0..<below, using: &random)).dropFirst()) }
        switch Int.random(in: 0..<8, using: &random) {
        case 0: return "24:00"
        case 1: return "\(two(24)):\(two(60))"
        default: return "\(two(24)):\(two(60)):\(two(60))\(fraction(&random))"
        }
    }

    /// A time of day with an offset or without, not always as PostgreSQL prints it.
    private static func zoned(_ random: inout SplitMix64) -> String {
        func two(_ below: Int) -> String { String(String(100 + Int.random(in: 0..<below, using: &random)).dropFirst()) }
        let sign = Bool.random(using: &random) ? "+" : "-"
        let offset =
            switch Int.random(in: 0..<7, using: &random) {
            case 0: ""
            case 1: "Z"
            case 2: "\(sign)00:00"
            case 3: "\(sign)\(two(16)):\(two(60)):\(two(60))"
            case 4: "\(sign)\(two(16)):\(two(60))"
            default: "\(sign)\(two(16))"
            }
        return clock(&random) + offset
    }

    /// A duration, seldom as PostgreSQL prints it.
    private static func span(_ random: inout SplitMix64) -> String {
        func parts(_ units: [String]) -> String {
            units.filter { _ in Bool.random(using: &random) }.map { unit in
                let sign = Int.random(in: 0..<3, using: &random) == 0 ? "-" : ""
                let count = Int.random(in: 0..<5, using: &random) == 0 ? 0 : Int.random(in: 0..<20_000, using: &random)
                return "\(sign)\(count)\(unit == "S" ? fraction(&random) : "")\(unit)"
            }.joined()
        }
        let (date, time) = (parts(["Y", "M", "W", "D"]), parts(["H", "M", "S"]))
        return date.isEmpty && time.isEmpty ? "PT0S" : "P\(date)\(time.isEmpty ? "" : "T")\(time)"
    }

    private static func value(_ name: String, _ random: inout SplitMix64) -> Value {
        let moods: [Value] = ["", "good", "bad mood", "b\"a,d"].map { .string($0) }
        let codes: [Value] = ["", "a", "ab ", " b", "x  ", "abc"].map { .string($0) }
        func some(_ values: [Value]) -> Value { values.randomElement(using: &random) ?? .null }
        switch name {
        case "code": return some(codes + [.null])
        case "mood": return some(moods + [.null])
        case "day", "wall": return Int.random(in: 0..<8, using: &random) == 0 ? .null : time(&random)
        case "doc": return some([.null, .int(1), .string("x"), .dictionary(["a": .list([.bool(true)])]), .double(0.5)])
        case "moods": return .list((0..<Int.random(in: 0..<3, using: &random)).map { _ in some(moods) })
        case "days": return .list((0..<Int.random(in: 0..<3, using: &random)).map { _ in time(&random) })
        case "clock": return some([.string(clock(&random)), .string("08:30:00"), .null])
        case "span": return some([.string(span(&random)), .string("PT1H"), .null])
        case "zoned": return some([.string(zoned(&random)), .string("08:30:00+02"), .null])
        case "zones": return .list((0..<Int.random(in: 0..<3, using: &random)).map { _ in .string(zoned(&random)) })
        case "clocks": return .list((0..<Int.random(in: 0..<3, using: &random)).map { _ in .string(clock(&random)) })
        case "spans": return .list((0..<Int.random(in: 0..<3, using: &random)).map { _ in .string(span(&random)) })
        default: return .list((0..<Int.random(in: 0..<3, using: &random)).map { _ in some(codes) })
        }
    }

    /// The values that a client writes, as it reads them again.
    private static func read(_ connection: PostgresConnection, _ shape: TableShape) async throws -> [[Value?]] {
        let result = try await connection.query("SELECT \(shape.columns.joined(separator: ", ")) FROM \(shape.table) ORDER BY _id")
        return (0..<result.count).map { row in shape.forms.enumerated().map { $1.value(result[row, $0]) } }
    }

    @Test func `are found with their forms`() async throws {
        try await Self.with { _, shape in
            let facts = shape.mapping.facts
            let labels = ["", "good", "bad mood", "b\"a,d"]
            #expect(facts.map(\.storage).prefix(3) == [.plain, .character, .enumeration(name: "public.mood", labels: labels)])
            #expect(facts.map(\.storage).dropFirst(3).prefix(3) == [.date, .localTime, .jsonText])
            #expect(facts[6].storage == .enumeration(name: "public.mood", labels: labels) && facts[7].storage == .date)
            #expect(facts[8].storage == .character && facts[15].generation?.inputs == [.init(column: "_id", type: "integer")])
            #expect(facts[9...14].map(\.storage) == [.time, .interval, .time, .interval, .zonedTime, .zonedTime])
            #expect(facts.filter(\.isGenerated).count == 1 && shape.mapping.isWritable && !shape.mapping.hasKeyPerPartition)
            #expect(shape.compared[2] == #""mood"::text"# && shape.compared[6] == #""moods"::text[]"# && shape.compared[3] == #""day""#)
        }
    }

    @Test func `are found with their forms by a schema that lacks a property, too`() async throws {
        try await Self.with { _, shape in
            let older = ObjectType(name: "Thing", properties: Self.type.properties.filter { $0.name != "code" })
            let mapping = TableMapping(older).withFacts(of: shape.mapping)
            #expect(mapping.facts == shape.mapping.facts.enumerated().filter { $0.offset != 1 }.map(\.element))
            #expect(!mapping.isReadDifferently(from: shape.mapping) && !shape.mapping.isReadDifferently(from: mapping))
            #expect(TableMapping(older, schema: "other").withFacts(of: shape.mapping).facts.allSatisfy { $0 == ColumnFacts() })
        }
    }

    @Test func `keep what is written as it is expected to be read`() async throws {
        let seed = UInt64.random(in: .min ... .max)
        var random = SplitMix64(seed: seed)
        try await Self.with { connection, shape in
            var expected: [[Value?]] = []
            let written = shape.type.properties.indices.dropLast()
            let list = written.map { shape.columns[$0] }.joined(separator: ", ")
            for number in 0..<150 {
                let row = written.map { $0 == 0 ? Value.int(Int64(number)) : Self.value(shape.type.properties[$0].name, &random) }
                let places = written.map { "$\($0 + 1)" }.joined(separator: ", ")
                try await connection.execute(
                    "INSERT INTO \(shape.table) (\(list)) VALUES (\(places))", written.map { shape.forms[$0].parameter(row[$0]) })
                expected.append(written.map { shape.forms[$0].stored(row[$0]) } + [.int(Int64(number * 2))])
            }
            let found = try await Self.read(connection, shape)
            for (number, (row, wanted)) in zip(found, expected).enumerated() {
                #expect(row == wanted, "seed \(seed), row \(number)")
            }
            // By COPY, the same.
            try await connection.script("TRUNCATE \(shape.table)")
            var buffer = RowBuffer()
            var bytes: [UInt8] = []
            for row in expected {
                let place = buffer.append(Row(row.map { $0 ?? .null }))
                buffer.withView(place) { CopyText.append($0, shape.forms, to: &bytes) }
            }
            _ = try await connection.withSession { [bytes] in try $0.copyIn("COPY \(shape.table) (\(list)) FROM STDIN", [bytes]) }
            #expect(try await Self.read(connection, shape) == expected, "seed \(seed)")
        }
    }

    @Test func `are compared by SQL as in memory`() async throws {
        let seed = UInt64.random(in: .min ... .max)
        var random = SplitMix64(seed: seed)
        let queries = [
            "code == 'a'", "code != 'ab'", "code IN {'', 'x', 'ab'}", "code BEGINSWITH 'a'", "code < 'b'", "mood == 'good'",
            "mood != 'bad mood'", "mood == 'no mood'", "mood IN {'', 'never'}", "mood CONTAINS 'a'", "mood > 'b'", "mood == null",
            "day == wall",
            "day < 2026-01-01@00:00:00", "day == 1970-01-01@00:00:00", "wall >= 1970-01-01@00:00:00", "day != null AND wall < day",
            "ANY moods == 'good'", "moods.@count > 1", "ANY codes == 'ab'", "ANY days > 1970-01-01@00:00:00", "double > 60", "doc == 1",
            "doc == 'x'", "doc == null", "clock == '08:30:00'", "clock > '12:00:00'", "span == 'PT1H'", "span BEGINSWITH 'P1'",
            "span IN {'PT0S', 'PT1H'}", "ANY clocks == '24:00:00'", "ANY spans != 'PT0S'", "clock == null",
            "zoned == '08:30:00+02'", "zoned < '12:00:00+00'", "ANY zones ENDSWITH '+00'",
        ]
        try await Self.with { connection, shape in
            let written = shape.type.properties.indices.dropLast()
            let list = written.map { shape.columns[$0] }.joined(separator: ", ")
            for number in 0..<120 {
                let places = written.map { "$\($0 + 1)" }.joined(separator: ", ")
                let row = written.map { $0 == 0 ? Value.int(Int64(number)) : Self.value(shape.type.properties[$0].name, &random) }
                try await connection.execute(
                    "INSERT INTO \(shape.table) (\(list)) VALUES (\(places))", written.map { shape.forms[$0].parameter(row[$0]) })
            }
            let rows = try await Self.read(connection, shape).map { Row($0.map { $0 ?? .null }) }
            var exact = 0
            for text in queries {
                let predicate = try Query.parse(text).predicate(on: shape.type, in: Schema([shape.type]))
                let split = predicate.split(.postgres) { shape.compared[$0] }
                let result = try await connection.query(
                    "SELECT _id FROM \(shape.table) WHERE \(split.condition.text) ORDER BY _id", split.condition.parameters.map(\.postgres))
                let chosen = (0..<result.count).compactMap { result.int($0, 0) }
                var buffer = RowBuffer()
                let matching = rows.filter { row in
                    let place = buffer.append(row)
                    return buffer.withView(place) { predicate.matches($0) }
                }
                let wanted = matching.compactMap { row -> Int64? in if case .int(let id)? = row[0] { id } else { nil } }
                if split.residual == nil {
                    exact += 1
                    #expect(chosen == wanted, "seed \(seed): \(text)")
                } else {
                    #expect(Set(chosen).isSuperset(of: wanted), "seed \(seed): \(text)")
                }
            }
            #expect(exact > queries.count / 2, "SQL says too little to be tested")
        }
    }

    @Test func `have the normal form of a time or duration that PostgreSQL gives it`() async throws {
        let seed = UInt64.random(in: .min ... .max)
        var random = SplitMix64(seed: seed)
        let zoned =
            (0..<500).map { _ in Self.zoned(&random) } + [
                "08:30-00", "08:30:00+15:59:59", "24:00:00-15:59:59", "08:30Z", "08:30:00.10+02:00",
            ]
        let clocks = (0..<500).map { _ in Self.clock(&random) } + ["23:59:59.999999", "00:00", "24:00:00", "01:02:03.100"]
        let spans =
            (0..<500).map { _ in Self.span(&random) } + [
                "PT-0.5S", "PT59.999999S", "PT90M", "P14M", "P-14M3D", "PT-1H30M", "P2147483647D", "P-178956970Y-8M",
                "PT2562047788H0.000001S", "PT0.100S", "P1W", "PT1H-90M", "P0D",
            ]
        try await TestPostgres.withConnection { connection in
            for (texts, type, normal) in [
                (clocks, "time", TextTime.normal), (zoned, "timetz", TextTime.zoned), (spans, "interval", TextInterval.normal),
            ] {
                let list = texts.map { SQLQuote.postgresLiteral($0) }.joined(separator: ", ")
                let wanted = try await connection.query(
                    "SELECT text::\(type)::text FROM unnest(ARRAY[\(list)]) WITH ORDINALITY AS u (text, n) ORDER BY n"
                ).column(0)
                for (text, wanted) in zip(texts, wanted) {
                    #expect(normal(text) == wanted, "seed \(seed): \(text)")
                    #expect(normal(wanted) == wanted, "seed \(seed): \(wanted)")
                }
            }
            await connection.close()
        }
    }

    @Test(arguments: [
        "", "8:30", "08:30:60", "24:00:01", "25:00", "08:60", "08:30:00.", "08:30:00+01", "08:30 AM", " 08:30", "now", "08:30:00.1x",
    ])
    func `that are times of day have no other text`(_ text: String) { #expect(TextTime.normal(text) == nil) }

    @Test(arguments: [
        "", "8:30Z", "08:30 +02", "08:30:00+2", "08:30:00+16", "08:30:00+02:60", "08:30:00+02:00:60", "08:30:00+0200", "08:30:00+02:",
        "08:30:00z", "08:30:00 Europe/Berlin", "08:30:00+02x", "24:00:01+00", "08:30:00±02",
    ])
    func `that are times of day with an offset have no other text`(_ text: String) { #expect(TextTime.zoned(text) == nil) }

    @Test(arguments: [
        "", "P", "PT", "P1DT", "1 day", "P1H", "PT1D", "P1D1Y", "P1Y1Y", "P1.5D", "PT1.S", "PT.5S", "P1", "-P1D", "P1d", "P99999999999Y",
        "P2147483648D", "PT9999999999H", "P1DT1H ", "P0001-02-03", "infinity", "PT999999999999999999S",
    ])
    func `that are durations have no other text`(_ text: String) { #expect(TextInterval.normal(text) == nil) }

    @Test(arguments: ["2026-13-01", "2026-1-01", "infinity", "2026-01-01 00:00:00", "", "x"])
    func `that are dates have no other text`(_ text: String) {
        let form = ColumnForm(Self.type.properties[3], in: Schema([Self.type]), ColumnFacts(storage: .date))
        #expect(form.value(text) == nil)
        #expect(form.value("2026-03-01") == .timestamp(Timestamp(seconds: 1_772_323_200)))
        #expect(form.value("0001-12-31 BC") == .timestamp(Timestamp(microseconds: -62_135_683_200_000_000)))
    }
}
