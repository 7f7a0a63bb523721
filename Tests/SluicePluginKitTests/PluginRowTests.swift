import SluicePluginKit
import TestSupport
import Testing

/// Answers each object with what every accessor reads of it.
private final class Reading: IngestRules {
    static let name = "Reading"
    static let version = "1"
    static let fields = ["a", "b", "c", "d", "none"]

    init(log: PluginLog) {}

    func ingest(type: String, objects: [PluginRow]) throws -> [IngestVerdict] { objects.map { .transform(Self.read($0)) } }

    static func read(_ row: PluginRow) -> PluginValue {
        func shown<T>(_ value: T?, _ form: (T) -> PluginValue) -> PluginValue { value.map(form) ?? "nothing" }
        var members = fields.map { name -> PluginValue.Member in
            let parts: [PluginValue] = [
                shown(row[name]) { $0 }, .bool(row.isNull(name)), shown(row.bool(name)) { .bool($0) }, shown(row.int(name)) { .int($0) },
                shown(row.number(name)) { .double($0) }, shown(row.string(name)) { .string($0) }, .bool(row.has(name, equalTo: "k")),
                .bool(row.hasSame(name, as: row)),
            ]
            return PluginValue.Member(name, .array(parts))
        }
        members.append(PluginValue.Member("whole", row.value))
        return .object(members)
    }
}

/// Gives the rules that the test names.
private final class Giving: SessionRules {
    static let name = "Giving"
    static let version = "1"
    static let rules: [String: TypeRules] = [
        "none": .denied(role: "none"),
        "all": TypeRules(read: "TRUEPREDICATE", write: "TRUEPREDICATE", insert: true, delete: true, role: "all"),
        "some": TypeRules(
            read: "a == \"\u{1F6EB}\\\"\"", write: "b > 1", insert: true, delete: false, readableFields: ["b", "a"], writableFields: [],
            role: "some\n", checkWrite: true),
        "narrow": TypeRules(
            read: "TRUEPREDICATE", write: "TRUEPREDICATE", insert: true, delete: true, readableFields: [], role: "", grants: false),
    ]

    init(log: PluginLog) {}

    func openSession(user: PluginUser, types: [String]) throws -> [String: TypeRules] {
        guard let rules = Self.rules[user.id] else { throw PluginDenial("nobody of the name \(user.id)") }
        return Dictionary(uniqueKeysWithValues: types.map { ($0, rules) })
    }
}

@Suite struct `An object in cells` {
    private static func value(_ random: inout SplitMix64, depth: Int = 0) -> PluginValue {
        switch random.below(depth < 2 ? 9 : 6) {
        case 0: .null
        case 1: .bool(random.chance(50))
        case 2: .int(random.pick([.min, -1, 0, 1, .max, Int64(random.below(1_000))]))
        case 3: .double(random.pick([0.5, -1e300, 4_503_599_627_370_497.5, Double(random.below(1_000)) / 8]))
        case 4: .string(random.pick(["k", "", "e\u{301}", "\u{212A}"]))
        case 5: .string(.random(using: &random))
        case 6: .array((0..<random.below(4)).map { _ in value(&random, depth: depth + 1) })
        // In the order in which a gateway passes them.
        default: .object(["x", "y", "z"].filter { _ in random.chance(60) }.map { .init($0, value(&random, depth: depth + 1)) })
        }
    }

    @Test(arguments: seeds(20)) func `reads by every accessor as the JSON that it was`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let plugin = try TestedPlugin(Reading.self)
        for _ in 0..<20 {
            // All objects of a batch share the columns; a field may be missing in one of them alone.
            let objects = (0..<5).map { _ in
                PluginValue.object(
                    ["a", "b", "c", "d"].filter { _ in random.chance(80) }.map { .init($0, Self.value(&random)) })
            }
            let verdicts = try plugin.ingest(type: "T", objects.map { PluginRow($0) })
            let expected = try objects.map { IngestVerdict.transform(try PluginValue(parsing: Reading.read(PluginRow($0)).json)) }
            #expect(verdicts == expected, "seed \(seed): \(objects.map(\.json))")
        }
    }

    @Test func `tells a text from another of the same letters`() {
        let rows: [PluginRow] = [["a": "e\u{301}"], ["a": "é"]]
        #expect(rows[0].has("a", equalTo: "e\u{301}") && !rows[0].has("a", equalTo: "é"))
        #expect(rows[1].has("a", equalTo: "é") && !rows[1].has("a", equalTo: "e\u{301}"))
    }

    @Test func `has absent fields as nulls in comparisons`() {
        let rows: [PluginRow] = [[:], ["a": .null], ["a": 1]]
        #expect(rows[0].hasSame("a", as: rows[1]) && rows[1].hasSame("a", as: rows[0]))
        #expect(!rows[0].hasSame("a", as: rows[2]) && rows[0].isNull("a") && rows[1].isNull("a"))
    }
}

@Suite struct `Rules of a session` {
    @Test(arguments: Giving.rules.keys.sorted()) func `reach the gateway as the plugin gave them`(user: String) throws {
        let plan = try TestedPlugin(Giving.self).openSession(PluginUser(id: user), types: ["T", "U"])
        #expect(plan == Dictionary(uniqueKeysWithValues: ["T", "U"].map { ($0, Giving.rules[user]) }).compactMapValues { $0 })
    }

    @Test func `are none for a user whom the plugin denies`() throws {
        let plugin = try TestedPlugin(Giving.self)
        let denial = #expect(throws: PluginDenial.self) { try plugin.openSession(PluginUser(id: "eve"), types: ["T"]) }
        #expect(denial?.reason == "nobody of the name eve")
    }

    @Test func `may use the key, the indexed field and what is queryable of the class`() {
        let app = AppConfiguration(queryableFields: ["a"], queryableFieldsByType: ["T": ["b"]], indexedField: "store")
        for field in ["_id", "store", "a", "b"] { #expect(app.isQueryable(field, of: "T"), "\(field)") }
        #expect(!app.isQueryable("c", of: "T") && !app.isQueryable("b", of: "U"))
        #expect(AppConfiguration().isQueryable("_id", of: "T") && !AppConfiguration().isQueryable("store", of: "T"))
    }

    @Test func `find a property by the bytes of its name`() {
        let type = PluginObjectType(properties: ["e\u{301}": PluginProperty(type: "int"), "a": PluginProperty(type: "string")])
        #expect(type.property(named: "e\u{301}")?.type == "int" && type.property(named: "é") == nil)
        #expect(type.property(named: "a")?.type == "string" && type.property(named: "b") == nil)
    }
}
