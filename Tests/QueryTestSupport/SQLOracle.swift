package import SluiceCore
package import SluiceQuery
package import TestSupport

/// A database that holds the rows of a random graph: a table for each class, named as the class, with a column for each property and one
/// named `number` for the row's place in its class.
package protocol SQLOracleDatabase {
    var dialect: SQLDialect { get }
    /// Makes the tables anew.
    /// - Returns: the rows as they read back.
    mutating func load(_ sample: RandomGraph) throws -> RandomGraph
    /// The numbers that the statement gives.
    func select(_ sql: String, _ parameters: [SQLParameter]) throws -> [Int64]
}

/// Holds a database with the generated SQL against the tree and the compiled evaluation.
package struct SQLOracle<Database: SQLOracleDatabase> {
    private var database: Database
    package private(set) var pairs = 0
    /// Queries of which SQL said everything, only a part, nothing.
    package private(set) var exact = 0
    package private(set) var partial = 0
    package private(set) var nothing = 0
    package private(set) var selected = 0
    package private(set) var failures: [String] = []

    package init(_ database: Database) { self.database = database }

    /// Compares random queries over random rows until this many (query, row) pairs have been compared, or something is wrong.
    package mutating func run(seed: UInt64, pairs wanted: Int, rows: Int = 60) throws {
        var random = SplitMix64(seed: seed)
        while pairs < wanted, failures.isEmpty {
            let sample = RandomGraph(&random, rowsOfEach: rows)
            let graph = MemoryGraph(schema: sample.schema, rows: try database.load(sample).rows)
            var writer = GraphQueryWriter(random: random, schema: sample.schema, type: sample.schema.types[0])
            for _ in 0..<150 where failures.isEmpty {
                writer.forgetArguments()
                var text = writer.query()
                if writer.random.chance(15) { text += SQLOracle.suffix(&writer.random, sample.schema.types[0]) }
                guard
                    let query = try? Query.parse(text).bind(
                        to: sample.schema.types[0], in: sample.schema, arguments: writer.arguments)
                else { continue }
                try compare(query, text, sample, graph)
            }
            random = writer.random
        }
    }

    private static func suffix(_ random: inout SplitMix64, _ type: ObjectType) -> String {
        var text = ""
        for _ in 0...random.below(2) {
            let name = random.pick(type.properties).name
            switch random.below(4) {
            case 0: text += " LIMIT(\(random.below(12)))"
            case 1: text += " SORT(\(name) ASC, _id DESC)"
            case 2: text += " SORT(\(name) DESC)"
            default: text += " DISTINCT(\(name))"
            }
        }
        return text
    }

    // MARK: One query

    private mutating func compare(_ query: BoundQuery, _ text: String, _ sample: RandomGraph, _ graph: MemoryGraph) throws {
        let layout = SQLOracle.layout(sample.schema, database.dialect)
        let selection = query.sql(layout)
        let keys = graph.keys(of: query.type)
        pairs += keys.count
        if selection.isExact { exact += 1 } else if selection.condition.text == "TRUE" { nothing += 1 } else { partial += 1 }
        let expected = keys.filter { query.matches($0, in: graph) }
        selected += expected.count
        let compiled = query.compile()
        if expected == keys.filter({ compiled.matches($0, in: graph) }) {
            do {
                let found = try SQLOracle.found(query, selection, database, graph)
                if found == query.run(over: graph) { return }
            } catch {
                failures.append("\(error)")
            }
        }
        report(query, text, sample)
    }

    /// The keys of the rows that SQL selects and the residual accepts, in order.
    private static func found(
        _ query: BoundQuery, _ selection: SQLSelection, _ database: Database, _ graph: MemoryGraph
    ) throws -> [Value] {
        var sql = "SELECT t0.\"number\" FROM \(SQLQuote.identifier(query.type.name)) AS t0 WHERE \(selection.condition.text)"
        if let order = selection.order { sql += " ORDER BY \(order)" } else { sql += " ORDER BY 1" }
        if let limit = selection.limit { sql += " LIMIT \(limit)" }
        let keys = graph.keys(of: query.type)
        var found = try database.select(sql, selection.condition.parameters).map { keys[Int($0)] }
        if let residual = selection.residual { found = found.filter { residual.matches($0, in: graph) } }
        return query.arranged(found, by: selection.suffixes, in: graph)
    }

    private mutating func report(_ query: BoundQuery, _ text: String, _ sample: RandomGraph) {
        var database = database
        let dialect = database.dialect
        let key = sample.rows.first { $0.type == query.type.name }?.row[0] ?? .null
        let disagreement = Disagreement(query: query, sample: sample, key: key) { query, _, sample in
            guard let stored = try? database.load(sample) else { return false }
            let graph = MemoryGraph(schema: stored.schema, rows: stored.rows)
            let selection = query.sql(SQLOracle.layout(stored.schema, dialect))
            // Neither the shrinking of rows nor that of queries may turn one fault into another.
            guard let found = try? SQLOracle.found(query, selection, database, graph) else { return true }
            return found != query.run(over: graph)
        }
        let small = disagreement.shrunk()
        let graph = MemoryGraph(schema: small.sample.schema, rows: small.sample.rows)
        let selection = small.query.sql(SQLOracle.layout(small.sample.schema, dialect))
        let found: String
        do {
            _ = try database.load(small.sample)
            found = "\(try SQLOracle.found(small.query, selection, database, graph))"
        } catch {
            found = "\(error)"
        }
        failures.append(
            """
            \(text)
            \(small)
              \(dialect): \(selection.condition.text)\(selection.order.map { " ORDER BY \($0)" } ?? "")\
            \(selection.limit.map { " LIMIT \($0)" } ?? "")
              parameters: \(selection.condition.parameters)
              exact: \(selection.isExact), left: \(selection.suffixes)
              found \(found)
              not   \(small.query.run(over: graph))
            """)
    }

    package static func layout(_ schema: Schema, _ dialect: SQLDialect) -> SQLLayout {
        var tables: [String: SQLTable] = [:]
        for type in schema.types where type.kind == .topLevel {
            tables[type.name] = SQLTable(
                name: SQLQuote.identifier(type.name), columns: type.properties.map { SQLQuote.identifier($0.name) },
                ownOrder: dialect == .sqlite ? "\"number\"" : nil)
        }
        return SQLLayout(dialect, schema: schema, tables: tables)
    }
}
