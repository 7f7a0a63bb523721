import QueryTestSupport
import SluiceCore
import SluicePostgres
import SluiceQuery
import SluiceValues
import TestSupport
import Testing

/// PostgreSQL executing the generated SQL, against the tree and the compiled evaluation. One seed at a time, since there are
/// tests beside it that cannot wait.
@Suite(.serialized) struct PostgresOracleTests {
    @Test(arguments: seeds(1, soak: 40))
    func `PostgreSQL and what is left over select what the tree accepts`(_ seed: UInt64) async throws {
        let oracle = try await TestPostgres.withConnection { connection in
            try await connection.withSession { session in
                var oracle = SQLOracle(PostgresOracle(session: session))
                try oracle.run(seed: seed, pairs: 15_000)
                return (
                    failures: oracle.failures, exact: oracle.exact, rest: oracle.partial + oracle.nothing, selected: oracle.selected,
                    pairs: oracle.pairs
                )
            }
        }
        for failure in oracle.failures { Issue.record("seed \(seed): \(failure)") }
        #expect(oracle.exact * 4 > oracle.rest, "seed \(seed): SQL says too little to be tested")
        #expect(oracle.selected * 20 > oracle.pairs, "seed \(seed)")
    }
}

/// Rows of random graphs in tables as the gateway makes them and as apps that were there before have them: with narrower columns,
/// other collations, and JSON's own null.
struct PostgresOracle: SQLOracleDatabase {
    let session: PostgresSession
    let dialect = SQLDialect.postgres

    init(session: PostgresSession) { self.session = session }

    mutating func load(_ sample: RandomGraph) throws -> RandomGraph {
        try session.script(
            """
            SET client_min_messages = warning;
            CREATE SCHEMA IF NOT EXISTS sluice;
            DO $$ BEGIN
                IF to_regtype('sluice.objectid') IS NULL THEN
                    CREATE DOMAIN sluice.objectid AS text COLLATE "C" CHECK (VALUE ~ '^[0-9a-f]{24}$');
                END IF;
            END $$
            """)
        var stored = sample
        for type in sample.schema.types where type.kind == .topLevel {
            let forms = type.properties.map { ColumnForm($0, in: sample.schema) }
            let columns = zip(type.properties, forms).map { "\(SQLQuote.identifier($0.name)) \(PostgresOracle.columnType($1))" }
            try session.script("DROP TABLE IF EXISTS \"\(type.name)\"")
            try session.script("CREATE TABLE \"\(type.name)\" (\(columns.joined(separator: ", ")), number bigint, PRIMARY KEY (_id))")
            var bytes: [UInt8] = []
            var number = 0
            for index in stored.rows.indices where stored.rows[index].type == type.name {
                var texts: [String?] = []
                for (property, form) in forms.enumerated() {
                    let value = PostgresOracle.storable(stored.rows[index].row[property] ?? .null, form)
                    texts.append(PostgresOracle.text(value, form, isOdd: number % 2 == 1))
                    if property < stored.rows[index].row.values.count { stored.rows[index].row[property] = form.stored(value) }
                }
                CopyText.append(texts + [String(number)], to: &bytes)
                number += 1
            }
            try session.copyIn("COPY \"\(type.name)\" FROM STDIN", [bytes])
        }
        return stored
    }

    private static func text(_ value: Value, _ form: ColumnForm, isOdd: Bool) -> String? {
        if value.isNull { return form.columnType == "jsonb" && isOdd ? "null" : nil }
        // PostgreSQL does not know that the array is a set.
        if isOdd, form.property.collection == .set, case .list(let members) = value { return form.text(.list(members + members.prefix(1))) }
        return form.text(value)
    }

    /// The property's column type, or another that holds its values.
    private static func columnType(_ form: ColumnForm) -> String {
        let isArray = form.columnType.hasSuffix("[]")
        let base = isArray ? String(form.columnType.dropLast(2)) : form.columnType
        let suffix = isArray ? "[]" : ""
        let choice = Int(form.property.id) % 3
        switch base {
        case "bigint": return ["bigint", "integer", "smallint"][choice] + suffix
        case "text": return ["text\(suffix) COLLATE \"C\"", "text\(suffix) COLLATE \"und-x-icu\"", "character varying\(suffix)"][choice]
        case "sluice.objectid": return ["sluice.objectid", "text", "character(24)"][choice] + suffix
        default: return form.columnType
        }
    }

    /// The value, or one that the column can hold: no NUL in text, times within PostgreSQL's, small numbers in small columns.
    private static func storable(_ value: Value, _ form: ColumnForm) -> Value {
        switch value {
        case .string(let text): return .string(text.replacing("\0", with: ""))
        case .timestamp(let time): return abs(time.seconds) > 1 << 36 ? .timestamp(Timestamp(seconds: 5)) : value
        case .int(let number):
            return form.columnType.hasPrefix("bigint") && !columnType(form).hasPrefix("bigint") ? .int(number % 1_000) : value
        case .list(let members): return .list(members.map { storable($0, form) })
        case .dictionary(let members): return .dictionary(members.mapValues { storable($0, form) })
        default: return value
        }
    }

    func select(_ sql: String, _ parameters: [SQLParameter]) throws -> [Int64] {
        let result = try session.query(sql, parameters.map(\.postgres))
        return (0..<result.count).compactMap { result.int($0, 0) }
    }
}
