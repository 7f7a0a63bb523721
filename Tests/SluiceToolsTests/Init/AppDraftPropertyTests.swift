import SluiceCore
import SluiceGateway
import SluicePostgres
import SluiceTools
import TestSupport
import Testing

/// Random catalogs. The directory of each must be one that a gateway reads as it is meant.
struct AppDraftPropertyTests {
    private static let bases = [
        "boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric", "text", "character varying", "character", "uuid",
        "bytea", "timestamp with time zone", "timestamp without time zone", "date", "time without time zone", "time with time zone",
        "interval",
        "jsonb", "json", "inet", "xml", "tsvector", "shop.status", "point",
    ]
    private static let names = [
        "id", "_id", "ID", "name", "order", "order date", "Größe", "limit", "in", "NULL", "a.b", "a\"b", "a'b", "x\\y", "1", "_", "",
        "e\u{301}",
        "日本", "☃", "\u{202E}x", "class", "self", "a-b", "a b", "customer_id", "owner_id", String(repeating: "ü", count: 31),
        String(repeating: "long", count: 15),
    ].filter { !$0.isEmpty }
    private static let tables = [
        "orders", "Orders", "order", "order_lines", "a/b", ".x", "node_modules", "schema", "rules", "objects", "日本", "2020", "---",
        "people's",
        String(repeating: "ü", count: 31), "plugins", "data_sources", "x.json",
    ]

    private static func column(_ name: String, _ random: inout SplitMix64) -> DatabaseSurvey.Column {
        let base = random.pick(bases)
        var column = DatabaseSurvey.Column(name, base, isNotNull: random.chance(60))
        column.isEnum = base == "shop.status"
        column.isArray = random.chance(10)
        column.dimensions = column.isArray ? random.below(3) : 0
        column.isGenerated = random.chance(10)
        column.isArrayDomain = random.chance(5)
        column.identity = random.pick([.none, .none, .none, .always, .byDefault])
        column.hasDefault = random.chance(30)
        return column
    }

    private static func relation(_ schema: String, _ name: String, _ random: inout SplitMix64) -> DatabaseSurvey.Relation {
        var relation = DatabaseSurvey.Relation(
            schema: schema, name: name, kind: random.pick([.table, .table, .table, .table, .partitioned, .view, .foreignTable]))
        relation.owner = random.chance(5) ? "postgis" : nil
        relation.hasRowSecurity = random.chance(10)
        let chosen = names.filter { _ in random.chance(40) }
        relation.columns = chosen.map { column($0, &random) }
        guard !chosen.isEmpty else { return relation }
        if random.chance(90) {
            relation.keys.append(.init(Array(chosen.shuffled(using: &random).prefix(random.pick([1, 1, 1, 2]))), isPrimary: true))
        }
        if random.chance(40) { relation.keys.append(.init([random.pick(chosen)])) }
        relation.indexed = chosen.filter { _ in random.chance(30) }
        if relation.kind == .partitioned, random.chance(50) { relation.uniqueInPartitions = [random.pick(chosen)] }
        return relation
    }

    private static func survey(_ random: inout SplitMix64) -> DatabaseSurvey {
        var relations: [DatabaseSurvey.Relation] = []
        for schema in ["public", "billing", "Mixed Case", "日本"] {
            for name in tables where random.chance(40) { relations.append(relation(schema, name, &random)) }
        }
        for index in relations.indices {
            for column in relations[index].columns where random.chance(30) {
                let target = random.pick(relations)
                guard let to = target.keys.first?.columns ?? target.columns.first.map({ [$0.name] }) else { continue }
                relations[index].references.append(.init([column.name], to: target.schema, target.name, to))
            }
        }
        return DatabaseSurvey(relations: relations)
    }

    @Test(arguments: seeds(60))
    func `make directories that a gateway reads without a problem or a note about a class`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let survey = Self.survey(&random)
        let draft = AppDraft(survey)
        let files = InitFiles(draft, appID: "shop")
        let found = AppDirectory.examine(files: files.texts.filter { $0.key.hasSuffix(".json") })
        #expect(found.problems.isEmpty, "seed \(seed): \(found.problems)")
        // The role that denies is one, and the reader has nothing else to say.
        #expect(found.notes.filter { $0.file != "data_sources/" }.isEmpty, "seed \(seed): \(found.notes)")
        let read = try #require(found.configuration, "seed \(seed)")
        #expect(AppSchemaRecord(read).tables == draft.record.tables, "seed \(seed)")
        for type in draft.record.schema.types {
            #expect(read.schema[type.name]?.properties == type.properties, "seed \(seed): \(type.name)")
        }
        #expect(read.queryableFields == draft.record.fields, "seed \(seed)")
        try Self.check(draft, survey, seed)
    }

    /// Every table is a class or left out, and every column a property or left out.
    private static func check(_ draft: AppDraft, _ survey: DatabaseSurvey, _ seed: UInt64) throws {
        for relation in survey.relations {
            let entry = draft.record.tables.first { $0.value.schema == relation.schema && $0.value.name == relation.name }
            let isOmitted = draft.omissions.contains { $0.table == relation.displayName && $0.column == nil }
            #expect(isOmitted == (entry == nil), "seed \(seed): \(relation.displayName)")
            guard let entry, let type = draft.record.schema[entry.key] else { continue }
            let columns = type.properties.map { entry.value.column(of: $0.name) }
            let omitted = draft.omissions.filter { $0.table == relation.displayName }.compactMap(\.column)
            #expect(Set(columns).count == columns.count && Set(columns + omitted) == Set(relation.columns.map(\.name)), "seed \(seed)")
            let key = try #require(relation.column(entry.value.column(of: "_id")), "seed \(seed)")
            #expect(key.isNotNull && !key.isArray, "seed \(seed)")
        }
    }

    /// A second run, after some tables could be included that the first one left out.
    @Test(arguments: seeds(40))
    func `add to a directory what a gateway reads without a problem beside its files`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let whole = Self.survey(&random)
        var part = whole
        for index in part.relations.indices where random.chance(40) { part.relations[index].isUnlogged = true }
        let first = AppDraft(part)
        let second = try await ExportCheckTests.with([:]) { root in
            try DirectoryPlan(InitFiles(first, appID: "shop").texts, in: root).write()
            let draft = AppDraft(whole, known: KnownClasses(try AppDirectory.files(at: root)))
            try DirectoryPlan(InitFiles(draft, appID: "shop").texts, in: root).write()
            let found = try AppDirectory.examine(at: root)
            #expect(found.problems.isEmpty, "seed \(seed): \(found.problems)")
            return draft
        }
        for (name, table) in first.record.tables {
            let kept = second.record.tables[name]
            #expect(kept?.schema == table.schema && kept?.name == table.name, "seed \(seed): \(name)")
        }
    }

    @Test(arguments: seeds(20))
    func `make the same directory of the same catalog`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let survey = Self.survey(&random)
        #expect(InitFiles(AppDraft(survey), appID: "a").texts == InitFiles(AppDraft(survey), appID: "a").texts, "seed \(seed)")
    }
}
