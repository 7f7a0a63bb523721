import QueryTestSupport
import SluiceCore
import SluiceQuery
import TestSupport
import Testing

/// SQLite executing the generated SQL, against the tree and the compiled evaluation. One seed at a time, since there are
/// tests beside it that cannot wait.
@Suite(.serialized) struct SQLiteOracleTests {
    @Test(arguments: seeds(1, soak: 40))
    func `SQLite and what is left over select what the tree accepts`(_ seed: UInt64) throws {
        var oracle = SQLOracle(try SQLiteOracle())
        try oracle.run(seed: seed, pairs: 15_000)
        for failure in oracle.failures { Issue.record("seed \(seed): \(failure)") }
        #expect(oracle.exact * 6 > oracle.partial + oracle.nothing, "seed \(seed): SQL says too little to be tested")
        #expect(oracle.selected * 20 > oracle.pairs, "seed \(seed)")
    }
}

/// Rows of random graphs as a replica stores them.
struct SQLiteOracle: SQLOracleDatabase {
    let dialect = SQLDialect.sqlite
    private var database: SQLiteLibrary

    init() throws { database = try SQLiteLibrary() }

    mutating func load(_ sample: RandomGraph) throws -> RandomGraph {
        database = try SQLiteLibrary()
        for type in sample.schema.types where type.kind == .topLevel {
            let columns = type.properties.enumerated().map { index, property in
                "\(SQLQuote.identifier(property.name)) \(declaration(property, sample.schema))\(index == 0 ? " PRIMARY KEY NOT NULL" : "")"
            }
            try database.run("CREATE TABLE \"\(type.name)\" (\(columns.joined(separator: ", ")), \"number\" INTEGER)")
            let places = (0...type.properties.count).map { "?\($0 + 1)" }.joined(separator: ", ")
            for (number, row) in sample.rows.lazy.filter({ $0.type == type.name }).map(\.row).enumerated() {
                let values = type.properties.indices.map { stored(row[$0] ?? .null, type.properties[$0]) }
                try database.run("INSERT INTO \"\(type.name)\" VALUES (\(places))", values + [.int(Int64(number))])
            }
        }
        return sample
    }

    private func isCoded(_ property: Property) -> Bool {
        switch property.type {
        case .mixed, .embedded: true
        default: property.collection != .none
        }
    }

    private func declaration(_ property: Property, _ schema: Schema) -> String {
        if isCoded(property) { return "BLOB" }
        switch property.type {
        case .bool, .int: return "INTEGER"
        case .float, .double: return "REAL"
        case .string: return "TEXT"
        case .link(let target): return schema[target].map { declaration($0.properties[0], schema) } ?? "BLOB"
        default: return "BLOB"
        }
    }

    private func stored(_ value: Value, _ property: Property) -> Value { isCoded(property) && !value.isNull ? .binary([7]) : value }

    func select(_ sql: String, _ parameters: [SQLParameter]) throws -> [Int64] { try database.run(sql, parameters.map(\.value)) }
}
