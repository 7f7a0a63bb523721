import SluiceCore
import SluiceGateway
import Testing

/// One mistake, and what must be said of it.
struct Mistake: Sendable, CustomTestStringConvertible {
    var what: String
    var files: [String: String]
    var place: String
    var message: String
    var fix: String
    var code: ErrorCode = .configInvalid

    var testDescription: String { what }

    static func replacing(
        _ piece: String, _ other: String, in file: String, _ place: String, _ message: String, _ fix: String,
        _ code: ErrorCode = .configInvalid
    ) -> Mistake {
        Mistake(
            what: "\(file): \(piece) → \(other)", files: AppFixture.replacing(piece, with: other, in: file), place: "\(file)\(place)",
            message: message, fix: fix, code: code)
    }
}

struct AppDirectoryProblemTests {
    static let schema = AppFixture.orders("schema")
    static let links = AppFixture.orders("relationships")
    static let rules = AppFixture.orders("rules")
    static let sync = "sync/config.json"

    @Test(arguments: mistakesInSchemas + mistakesElsewhere)
    func `a mistake is named with its place and its fix`(mistake: Mistake) {
        let problems = AppFixture.problems(of: mistake.files)
        let found = problems.first { $0.place == mistake.place && $0.message.contains(mistake.message) }
        #expect(found != nil, "\(problems)")
        #expect(found?.code == mistake.code)
        #expect(found?.fix.contains(mistake.fix) == true, "\(problems)")
    }

    static let mistakesInSchemas: [Mistake] = [
        .replacing("\"bsonType\": \"decimal\"", "\"bsonType\": \"decimel\"", in: schema, ":9:9", "'decimel' is not a type", "'decimal'"),
        .replacing("{ \"bsonType\": \"decimal\" }", "7", in: schema, ":9:9", "must be an object", ""),
        .replacing(
            "shop/people\", \"foreign_key\": \"_id\", \"is_list\": false", "shop/peple\"", in: links, ":2:16",
            "No collection 'shop/peple' has a schema",
            "'people'"),
        .replacing(
            "\"#/relationship/mongodb-atlas/shop/people\", \"foreign_key\": \"_id\", \"is_list\": false", "\"people\"", in: links, ":2:16",
            "is not a reference", "#/relationship"),
        .replacing(
            "shop/people\", \"foreign_key\": \"_id\", \"is_list\": false", "shop/readings\"", in: links, ":2:5",
            "'buyer' links to the asymmetric class Reading", "'asymmetric_tables'"),
        .replacing("\"is_list\": true", "\"is_list\": false", in: links, ":3:5", "an array and no list here", "is_list"),
        .replacing("\"buyer\":", "\"buyr\":", in: links, ":2:5", "Order has no property 'buyr'", "'buyer'"),
        .replacing("\"buyer\":", "\"store\":", in: links, ":2:5", "The link 'store' is required", "'required'"),
        .replacing("\"buyer\":", "\"owner\":", in: links, ":2:5", "but the '_id' of Person", "equal"),
        .replacing("\"_id\", \"is_list\": false", "\"email\"", in: links, ":2:67", "foreign key 'email'", "'_id'"),
        .replacing("lines.[].buyers", "address.[].buyers", in: links, ":3:5", "Address has no property 'buyers'", ""),
        .replacing("lines.[].buyers", "owner.x", in: links, ":3:5", "is not an embedded object", ""),
    ]

    @Test(arguments: omissions)
    func `a schema that App Services could not synchronise leaves its collection out, with a note`(mistake: Mistake) throws {
        let app = try AppDirectory.read(files: mistake.files)
        let found = app.notes.first { $0.kind == .omitted && $0.place == mistake.place && $0.message.contains(mistake.message) }
        #expect(found?.fix.contains(mistake.fix) == true, "\(app.notes)")
        #expect(found?.message.hasSuffix(" The collection is not synchronised.") == true)
        #expect(app.schema.types.map(\.name) == ["Person", "Reading"] && app.tables.count == 2)
        // The plugin for roles sees no class either.
        #expect(app.files[Self.schema] == "{}")
    }

    /// Mistakes for which App Services left out the collection of orders.
    static let omissions: [Mistake] = [
        .replacing("{ \"bsonType\": \"decimal\" }", "{}", in: schema, ":9:9", "has no bsonType", "Add it"),
        .replacing("\"decimal\"", "[\"decimal\", \"string\"]", in: schema, ":9:9", "must be one type", "'mixed'"),
        .replacing(", \"items\": { \"bsonType\": \"string\" }", "", in: schema, ":11:9", "'items' is missing", ""),
        .replacing(
            "\"items\": { \"bsonType\": \"string\" }", "\"items\": { \"bsonType\": \"array\", \"items\": { \"bsonType\": \"int\" } }",
            in: schema,
            ":11:61", "collection of collections", "'mixed'"),
        .replacing("\"title\": \"Address\"", "\"title\": \"Line\"", in: schema, ":18:9", "differs from the one in", "rename one"),
        .replacing("\"objectId\"", "\"double\"", in: schema, ":1:1", "primary key of Order is of type double", "objectId"),
        .replacing("\"_id\": {", "\"id\": {", in: schema, ":1:1", "Order has no '_id'", "primary key"),
        .replacing("\"title\": \"Order\"", "\"title\": \"\(String(repeating: "x", count: 58))\"", in: schema, ":2:5", "58 bytes", "57"),
    ]

    @Test(arguments: withoutEffect)
    func `a stale name or an unknown keyword is a note with its place, and everything else is read`(mistake: Mistake) throws {
        // A class that is not asymmetric for its stale name cannot have time partitions.
        let app = try AppDirectory.read(files: mistake.files.filter { $0.key != AppFixture.ingest })
        let found = app.notes.first { $0.kind == .unused && $0.place == mistake.place && $0.message.contains(mistake.message) }
        #expect(found?.fix.contains(mistake.fix) == true, "\(app.notes)")
        #expect(app.schema.types.map(\.name) == ["Order", "Person", "Reading", "Line", "Address"])
    }

    static let withoutEffect: [Mistake] = [
        .replacing(
            "\"bsonType\": \"decimal\"", "\"bsonType\": \"decimal\", \"requird\": 1", in: schema, ":9:43", "'requird' is not a known key",
            ""),
        .replacing(
            "\"uniqueItems\"", "\"uniqueitems\"", in: schema, ":11:40", "'uniqueitems' is not a known key", "'uniqueItems'"),
        .replacing(
            "\"store\", \"address\"]", "\"store\", \"adress\"]", in: schema, ":4:5", "'adress' is required and not a property", "'address'"),
        .replacing("\"orders\"", "\"ordrs\"", in: sync, ":6:44", "The collection 'ordrs' does not exist", "'orders'"),
        .replacing("[\"total\"]", "[\"totals\"]", in: sync, ":6:44", "Order has no property 'totals'", "'total'"),
        .replacing("[\"total\"]", "[\"address\"]", in: sync, ":6:44", "cannot be queryable", "scalars"),
        .replacing("\"Reading\"", "\"Readings2\"", in: sync, ":8:5", "The collection 'Readings2' does not exist", "'readings'"),
    ]

    static let mistakesElsewhere: [Mistake] = [
        .replacing("\"at\"", "\"att\"", in: AppFixture.ingest, ":1:3", "no property 'att'", "'at'"),
        .replacing("\"at\"", "\"level\"", in: AppFixture.ingest, ":1:3", "not a required date", "'required'"),
        .replacing("\"week\"", "\"weak\"", in: AppFixture.ingest, ":1:25", "'weak' is not a length", "day, week, month"),
        .replacing("30", "0", in: AppFixture.ingest, ":1:42", "0 is not a valid number of days", "1 to 36500"),
        .replacing("\"every\"", "\"evry\"", in: AppFixture.ingest, ":1:25", "'evry' is not a known key", "'every'", .configUnknownKey),
        Mistake(
            what: "an ingest.json of a class that is not asymmetric", files: AppFixture.replacing("[\"Reading\"]", with: "[]", in: sync),
            place: "\(AppFixture.ingest):1:1", message: "Reading is not an asymmetric class", fix: "asymmetric_tables"),
        .replacing("\"flexible\"", "\"partition\"", in: sync, ":2:5", "must be 'flexible'", "migrate"),
        .replacing("\"enabled\"", "\"on\"", in: sync, ":3:5", "'on' is not a state", "'enabled'"),
        .replacing("\"mongodb-atlas\"", "\"mongo-atlas\"", in: sync, ":4:5", "data source 'mongo-atlas' does not exist", "'mongodb-atlas'"),
        .replacing("[\"owner\", \"store\"]", "[\"owner\", \"store\", \"limit\"]", in: sync, ":5:5", "word of the query language", "Rename"),
        .replacing("[\"owner\", \"store\"]", "[\"owner\"]", in: sync, ":7:5", "'store' is not queryable", "queryable_fields_names"),
        .replacing("[\"owner\", \"store\"]", "\"owner\"", in: sync, ":5:5", "must be an array, not a text", ""),
        .replacing("[\"store\"]", "[\"store\", \"owner\"]", in: sync, ":7:5", "2 indexed queryable fields", "Keep one"),
        .replacing(
            "\"document_filters\"", "\"document_filter\"", in: rules, ":8:13", "'document_filter' is not a known key", "'document_filters'",
            .configUnknownKey),
        .replacing("\"write\": false", "\"wrte\": false", in: rules, ":8:69", "'wrte' is not a known key", "'write'", .configUnknownKey),
        .replacing("\"apply_when\": {},", "", in: rules, ":4:5", "'apply_when' is missing", "", .configMissing),
        .replacing(
            "\"collection\": \"orders\"", "\"collection\": \"other\"", in: rules, ":3:5", "differs from the folder 'orders'", "equal"),
        .replacing(
            "\"autoConfirm\"", "\"autoconfirm\"", in: "auth/providers.json", ":3:63", "'autoconfirm' is not a known key", "'autoConfirm'",
            .configUnknownKey),
        .replacing(
            "\"type\": \"anon-user\"", "\"type\": \"anon-usr\"", in: "auth/providers.json", ":2:5", "'anon-usr' is not a login provider",
            "'anon-user'",
            .configUnknownKey),
        .replacing("\"disabled\": true", "\"disabled\": \"yes\"", in: "auth/providers.json", ":3:86", "true or false, not a text", ""),
        .replacing("7200", "60", in: "realm_config.json", ":5:19", "60 seconds is not a valid lifetime", "1800"),
        .replacing("shop-abc", "shop abc", in: "realm_config.json", ":2:5", "'shop abc' is not a name", "letters"),
        .replacing("\"value\"", "\"valu\"", in: "values/region.json", ":1:21", "'valu' is not a known key", "'value'", .configUnknownKey),
        Mistake(
            what: "no main file", files: AppFixture.removing("realm_config.json"), place: "realm_config.json", message: "is missing",
            fix: "app_id", code: .configMissing),
        Mistake(
            what: "no sync file", files: AppFixture.removing("sync/config.json"), place: "sync/config.json", message: "is missing",
            fix: "Add",
            code: .configMissing),
        Mistake(
            what: "misspelt file", files: AppFixture.adding("data_sources/mongodb-atlas/shop/orders/rule.json", "{}"),
            place: "data_sources/mongodb-atlas/shop/orders/rule.json", message: "'rule.json' is not a known key", fix: "'rules.json'",
            code: .configUnknownKey),
        Mistake(
            what: "misspelt folder", files: AppFixture.adding("data_source/x/config.json", "{}"), place: "data_source/x/config.json",
            message: "'data_source' is not a known key", fix: "'data_sources'", code: .configUnknownKey),
        Mistake(
            what: "not JSON", files: AppFixture.adding(sync, "{\n  \"type\": flexible\n}"), place: "\(sync):2:11",
            message: "expected a value", fix: "",
            code: .badJSON),
    ]

    @Test func `two collections with one title are refused`() {
        let problems = AppFixture.problems(of: AppFixture.replacing("\"title\": \"Order\"", with: "\"title\": \"Person\"", in: Self.schema))
        #expect(problems.contains { $0.message.contains("Two collections have the title 'Person'") })
    }

    @Test func `an indexed field of two types is refused`() {
        let files = AppFixture.adding(
            "data_sources/mongodb-atlas/shop/stores/schema.json",
            #"{ "title": "Store", "bsonType": "object", "properties": { "_id": { "bsonType": "int" }, "store": { "bsonType": "string" } } }"#
        )
        #expect(AppFixture.problems(of: files).map(\.place) == ["sync/config.json:7:5"])
    }

    @Test func `a mistake in a schema is not followed by wrong advice about fields`() {
        let problems = AppFixture.problems(of: AppFixture.replacing("\"decimal\"", with: "\"decimel\"", in: Self.schema))
        #expect(problems.count == 1, "\(problems)")
    }

    @Test func `no cut of a file is taken for a whole one`() {
        for (path, text) in AppFixture.files where path != "graphql/config.json" {
            let cut = String(text.prefix(text.count / 2))
            #expect(!AppFixture.problems(of: AppFixture.adding(path, cut)).isEmpty, "\(path)")
        }
    }
}
