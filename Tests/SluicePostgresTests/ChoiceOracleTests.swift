import QueryTestSupport
import SluiceCore
import SluicePostgres
import SluiceQuery
import TestSupport
import Testing

/// Compares PostgreSQL's choice with the evaluation in memory, for limits with orders and DISTINCTs through links.
@Suite(.serialized) struct ChoiceOracleTests {
    @Test(arguments: seeds(3))
    func `PostgreSQL chooses the objects that the language chooses among the readable ones`(_ seed: UInt64) async throws {
        let (failures, linked, chosen) = try await TestPostgres.withConnection { connection in
            try await connection.withSession { session in
                var oracle = ChoiceOracle(seed: seed, session: session)
                for _ in 0..<4 where oracle.failures.isEmpty { try oracle.play(choices: 120) }
                return (oracle.failures, oracle.linked, oracle.chosen)
            }
        }
        for failure in failures { Issue.record("seed \(seed): \(failure)") }
        #expect(linked > 100 && chosen > 500, "seed \(seed): \(linked) orders went through links, \(chosen) objects were chosen")
    }
}

/// Random choices over random rows. Only some objects of each class are readable.
private struct ChoiceOracle {
    private var random: SplitMix64
    private var database: PostgresOracle
    private(set) var failures: [String] = []
    /// The numbers of choices through links and of chosen objects.
    private(set) var linked = 0
    private(set) var chosen = 0

    init(seed: UInt64, session: PostgresSession) {
        random = SplitMix64(seed: seed)
        database = PostgresOracle(session: session)
    }

    mutating func play(choices: Int) throws {
        let sample = RandomGraph(&random, rowsOfEach: 40)
        let stored = try database.load(sample)
        let world = try ChoiceWorld(stored, &random)
        for _ in 0..<choices where failures.isEmpty { try compare(world) }
    }

    private mutating func compare(_ world: ChoiceWorld) throws {
        let type = world.schema.types[random.below(world.classes.count)]
        let text = ChoiceWorld.condition(on: type, &random)
        var order = keys(type, world, most: 3)
        if random.chance(10) { order.removeAll() }
        var distinct: [(paths: [NamedPath], keys: [NamedKey])] = []
        for _ in 0..<random.pick([0, 0, 1, 1, 2]) {
            distinct.append((paths: (0...random.below(2)).map { _ in path(type, world) }, keys: keys(type, world, most: 2)))
        }
        let limit = 1 + random.below(14)
        // Each DISTINCT has an order of its own. Lower keys come first among equal objects.
        let suffixes = distinct.map { "SORT(_id ASC)\(Self.sort($0.keys)) DISTINCT(\($0.paths.map(\.text).joined(separator: ", ")))" }
        let whole = "\(text) \(suffixes.joined(separator: " ")) SORT(_id ASC)\(Self.sort(order)) LIMIT(\(limit))"
        let expected = try Query.parse(whole).bind(to: type, in: world.schema).run(over: world.visible)
        let choice = ObjectChoice(
            limit: limit, order: order.map(\.key),
            distinct: distinct.map { ObjectChoice.Distinct(paths: $0.paths.map(\.path), order: $0.keys.map(\.key)) })
        if !choice.links.isEmpty { linked += 1 }
        chosen += expected.count
        let (sql, parameters) = try world.sql(type, text, choice)
        let numbers: [Int64]
        do {
            numbers = try database.select(sql, parameters)
        } catch {
            return failures.append("\(whole)\n  \(sql)\n  \(error)")
        }
        let found = numbers.map { world.keys[type.name]?[Int($0)] ?? .null }
        if found != expected { failures.append("\(whole)\n  \(sql)\n  found \(found)\n  not   \(expected)") }
    }

    private static func sort(_ keys: [NamedKey]) -> String {
        keys.isEmpty ? "" : " SORT(\(keys.map { "\($0.path.text) \($0.key.isDescending ? "DESC" : "ASC")" }.joined(separator: ", ")))"
    }

    // MARK: Random paths

    private struct NamedPath {
        var text: String
        var path: ObjectChoice.Path
    }

    private struct NamedKey {
        var path: NamedPath
        var isDescending: Bool
        var key: ObjectChoice.Key { ObjectChoice.Key(path: path.path, isDescending: isDescending) }
    }

    private mutating func keys(_ type: ObjectType, _ world: ChoiceWorld, most: Int) -> [NamedKey] {
        (0..<random.below(most + 1)).map { _ in NamedKey(path: path(type, world), isDescending: random.chance(50)) }
    }

    private mutating func path(_ type: ObjectType, _ world: ChoiceWorld) -> NamedPath {
        var (current, names, links) = (type, [String](), [ObjectChoice.Link]())
        while links.count < Limits.orderLinks, random.chance(50) {
            let ways = current.properties.indices.compactMap { index -> ObjectChoice.Link? in
                guard case .link(let name) = current.properties[index].type, current.properties[index].collection == .none,
                    let target = world.schema[name], let readable = world.readable[name]
                else { return nil }
                return ObjectChoice.Link(property: index, target: target, readable: readable)
            }
            guard !ways.isEmpty else { break }
            let link = random.pick(ways)
            links.append(link)
            names.append(current.properties[link.property].name)
            current = link.target
        }
        let property = random.pick(current.properties.indices.filter { current.properties[$0].ordersLimits })
        names.append(current.properties[property].name)
        return NamedPath(text: names.joined(separator: "."), path: ObjectChoice.Path(links: links, property: property))
    }
}

/// The rows of a random graph, and the conditions for readable ones.
private struct ChoiceWorld {
    let schema: Schema
    let classes: [ObjectType]
    /// The conditions for readable objects, by class.
    let readable: [String: Predicate]
    /// All keys by class, in the order of the rows' numbers.
    let keys: [String: [Value]]
    let visible: MemoryGraph

    init(_ stored: RandomGraph, _ random: inout SplitMix64) throws {
        schema = stored.schema
        classes = stored.schema.types.filter { $0.kind == .topLevel }
        let whole = MemoryGraph(schema: stored.schema, rows: stored.rows)
        var readable: [String: Predicate] = [:]
        var keys: [String: [Value]] = [:]
        var rows: [(type: String, row: Row)] = []
        for type in classes {
            let query = try Query.parse(Self.condition(on: type, &random)).bind(to: type, in: stored.schema)
            readable[type.name] = query.predicate
            keys[type.name] = whole.keys(of: type)
            for key in whole.keys(of: type) where query.matches(key, in: whole) {
                if let row = whole.row(key, of: type) { rows.append((type.name, row)) }
            }
        }
        self.readable = readable
        self.keys = keys
        visible = MemoryGraph(schema: stored.schema, rows: rows)
    }

    /// Returns a condition that PostgreSQL expresses exactly.
    static func condition(on type: ObjectType, _ random: inout SplitMix64) -> String {
        if random.chance(40) { return "TRUEPREDICATE" }
        if random.chance(5) { return "FALSEPREDICATE" }
        let scalars = type.properties.filter { $0.ordersLimits && $0.isOptional }
        guard !scalars.isEmpty else { return "TRUEPREDICATE" }
        return "\(random.pick(scalars).name) \(random.chance(70) ? "!=" : "==") nil"
    }

    func sql(_ type: ObjectType, _ text: String, _ choice: ObjectChoice) throws -> (text: String, parameters: [SQLParameter]) {
        let tables = SQLOracle<PostgresOracle>.layout(schema, .postgres).tables
        guard let readable = readable[type.name], let table = tables[type.name] else { return ("", []) }
        let condition = Predicate.and(try Query.parse(text).predicate(on: type, in: schema), readable)
            .split(.postgres) { "\(SQLLayout.row).\(table.columns[$0])" }.condition
        let sql = try choice.sql(of: type, where: condition, tables: tables)
        return (
            """
            SELECT \(SQLLayout.row).number FROM \(table.name) AS \(SQLLayout.row)\(sql.joins) WHERE (\(sql.condition.text)) \
            ORDER BY \(sql.order) LIMIT \(sql.limit)
            """, sql.condition.parameters
        )
    }
}
