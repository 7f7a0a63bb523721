import GatewayTestSupport
import SluiceCore

/// A row of the table of conflict rules: what everybody has, what three devices do who know nothing of each other, and what comes of it.
struct GatewayConflict {
    /// A changeset of one change.
    typealias Write = (at: Int64, change: ObjectChange)

    var rule: String
    var type = "Order"
    /// What everybody has; nil: nothing.
    var start: [String: Value]? = order
    /// Of each device.
    var writes: [[Write]]
    /// What SQL finds then by `shows`; nil: no row.
    var outcome: String?
    var shows = "title || ' ' || size"
    /// Whether SQL may write the title meanwhile, which then is what it wrote: before any of the devices, between them and after. Of
    /// others SQL writes what no device does.
    var isOpenToSQL = false

    private init(
        _ rule: String, _ type: String, _ start: [String: Value]?, _ writes: [[Write]], _ outcome: String?, _ shows: String,
        isOpenToSQL: Bool = false
    ) {
        (self.rule, self.type, self.start, self.writes, self.outcome, self.shows) = (rule, type, start, writes, outcome, shows)
        self.isOpenToSQL = isOpenToSQL
    }

    private static func order(
        _ rule: String, start: [String: Value]? = order, _ writes: [Write]..., outcome: String?, isOpenToSQL: Bool = false
    ) -> GatewayConflict {
        GatewayConflict(rule, "Order", start, writes, outcome, "title || ' ' || size", isOpenToSQL: isOpenToSQL)
    }

    private static func thing(
        _ rule: String, start: [String: Value] = thing, _ writes: [Write]..., outcome: String?, shows: String = "labels::text"
    ) -> GatewayConflict {
        GatewayConflict(rule, "Thing", start, writes, outcome, shows)
    }

    private static let order: [String: Value] = ["store": .string("north"), "title": .string("first"), "size": .int(10)]
    private static let thing: [String: Value] = [
        "labels": texts("a", "b", "c"), "members": texts("a", "b"), "pairs": .dictionary(["k": .int(1), "l": .int(2)]), "count": .int(10),
    ]
    private static func texts(_ texts: String...) -> Value { .list(texts.map { .string($0) }) }

    // MARK: What devices do

    private static func change(
        _ kind: ObjectChange.Kind, _ values: [String: Value] = [:], defaults: Set<String> = [], counters: [String: Int64] = [:],
        edits: [Edit] = []
    ) -> ObjectChange {
        ObjectChange(
            object: ObjectKey(type: "", key: .null), kind: kind, values: values, defaults: defaults, counters: counters, edits: edits)
    }

    private static let delete = change(.delete)
    /// Of the other object that the links of CR-25 lead to.
    private static let deleteTarget = ObjectChange(object: ObjectKey(type: "", key: .string("target")), kind: .delete)
    private static func set(_ values: [String: Value]) -> ObjectChange { change(.set, values) }
    private static func title(_ text: String) -> ObjectChange { change(.set, ["title": .string(text)]) }
    private static func add(_ amount: Int64, to name: String = "size") -> ObjectChange { change(.set, counters: [name: amount]) }
    private static func edit(_ edits: Edit...) -> ObjectChange { change(.set, edits: edits) }
    private static func create(_ values: [String: Value], defaults: Set<String> = []) -> ObjectChange {
        change(.create, values.merging(["store": .string("north")]) { $1 }, defaults: defaults)
    }

    private static func at(_ index: Int) -> ElementRef { .listed(index, ValueHash(.string(["a", "b", "c"][index]))) }
    private static func insert(_ text: String, after index: Int?) -> Edit {
        Edit("labels", .insert(.string(text), after: index.map(at), tag: 1))
    }
    private static func remove(_ index: Int) -> Edit { Edit("labels", [.element(at(index))], .remove) }
    private static func move(_ index: Int, after other: Int) -> Edit {
        Edit("labels", [.element(at(index))], .move(after: at(other), tag: 1))
    }
    private static let clear = Edit("labels", .clear(.list))
    private static func pair(_ key: String, _ value: Int64) -> Edit { Edit("pairs", [.key(key)], .set(.int(value))) }
    private static func field(_ name: String, _ value: Int64) -> ObjectChange {
        edit(Edit("place", .become(.object)), Edit("place", [.key(name)], .set(.int(value))))
    }
    private static func list(_ value: Int64) -> ObjectChange {
        edit(Edit("blend", .become(.list)), Edit("blend", .insert(.int(value), after: nil, tag: 1)))
    }

    // MARK: The table

    static let all = objects + properties + lists + containers

    private static let objects: [GatewayConflict] = [
        order("CR-1", [(10, delete)], [(20, title("late"))], [(5, add(3))], outcome: nil),
        order("CR-2", [(10, delete)], [(20, create(["title": .string("again")]))], [(30, delete)], outcome: nil),
        order(
            "CR-3", [(10, delete), (11, create(["title": .string("new"), "size": .int(1)]))], [(5, delete)], [(3, delete)],
            outcome: "new 1"),
        order(
            "CR-4", start: nil, [(10, create(["title": .string("one")]))], [(20, create(["title": .string("two")]))],
            [(15, create(["size": .int(5)]))], outcome: "two 5"),
        thing(
            "CR-25", [(10, set(["peer": .string("target")]))], [(20, deleteTarget)], [(5, set(["count": .int(1)]))],
            outcome: "true", shows: "(peer = _id || '-target')::text"),
    ]

    private static let properties: [GatewayConflict] = [
        order(
            "CR-5", [(30, title("late"))], [(10, title("early"))], [(20, set(["size": .int(7)]))], outcome: "late 7", isOpenToSQL: true),
        order(
            "CR-6", start: nil, [(5, create(["title": .string("given")]))],
            [(20, create(["title": .string("default")], defaults: ["title"]))],
            [(30, create(["title": .string("other")], defaults: ["title"]))], outcome: "given 0"),
        order("CR-7", [(10, title("first!"))], [(20, title("?first"))], [(5, title("fir"))], outcome: "?first 10", isOpenToSQL: true),
        order("CR-8", [(10, add(3))], [(20, add(-1))], [(5, add(100))], outcome: "first 112", isOpenToSQL: true),
        order(
            "CR-9", [(20, set(["size": .int(50)]))], [(30, add(7))], [(10, add(1_000))], outcome: "first 57", isOpenToSQL: true),
        thing(
            "CR-10", [(10, set(["count": .null]))], [(20, add(7, to: "count"))], [(15, set(["count": .int(1)]))], outcome: "8",
            shows: "count::text"),
    ]

    private static let lists: [GatewayConflict] = [
        thing(
            "CR-11", [(20, edit(insert("y", after: 2)))], [(10, edit(insert("x", after: 2)))], [(30, edit(insert("z", after: 2)))],
            outcome: "{a,b,c,x,y,z}"),
        thing(
            "CR-12", [(10, edit(remove(1)))], [(20, edit(remove(1)))],
            [(30, edit(Edit("labels", [.element(at(1))], .set(.string("B")))))], outcome: "{a,c}"),
        thing("CR-13", [(10, edit(remove(1)))], [(20, edit(remove(1)))], [(30, edit(remove(0)))], outcome: "{c}"),
        thing("CR-14", [(10, edit(move(0, after: 2)))], [(20, edit(move(0, after: 1)))], [(30, edit(remove(2)))], outcome: "{b,a}"),
        thing(
            "CR-15", [(10, edit(move(0, after: 2)))], [(20, edit(remove(0)))], [(30, edit(move(0, after: 1)))], outcome: "{b,c}"),
        thing("CR-16", [(10, edit(clear))], [(20, edit(insert("x", after: 0)))], [(5, edit(insert("y", after: 1)))], outcome: "{}"),
        thing(
            "CR-17", [(10, edit(clear, insert("x", after: nil)))], [(20, edit(clear, insert("y", after: nil)))],
            [(5, edit(insert("z", after: 0)))], outcome: "{y}"),
        thing(
            "CR-18", [(10, set(["labels": texts("n")]))], [(20, edit(clear))], [(5, edit(insert("y", after: 1)))], outcome: "{}"),
        thing(
            "CR-23", [(10, set(["labels": texts("n")]))], [(20, edit(insert("x", after: 0)))], [(5, edit(insert("y", after: 1)))],
            outcome: "{n}"),
    ]

    private static let containers: [GatewayConflict] = [
        thing(
            "CR-19", [(10, edit(Edit("members", .setErase(.string("a")))))], [(20, edit(Edit("members", .setInsert(.string("a")))))],
            [(15, edit(Edit("members", .setInsert(.string("c")))))], outcome: "{a,b,c}", shows: "members::text"),
        thing(
            "CR-20", [(10, edit(pair("k", 5)))], [(20, edit(Edit("pairs", [.key("k")], .remove)))], [(15, edit(pair("n", 6)))],
            outcome: #"{"l": 2, "n": 6}"#, shows: "pairs::text"),
        thing("CR-21", [(10, field("x", 1))], [(20, field("y", 2))], [(30, field("x", 9))], outcome: "9 2", shows: place),
        thing(
            "CR-22", start: thing.merging(["place": .dictionary(["x": .int(1)])]) { $1 }, [(10, set(["place": .null]))],
            [(20, edit(Edit("place", [.key("x")], .set(.int(5)))))], [(30, edit(Edit("place", [.key("y")], .set(.int(6)))))],
            outcome: "", shows: place),
        thing("CR-24", [(10, list(1))], [(20, list(2))], [(5, list(3))], outcome: "[3, 1, 2]", shows: "blend::text"),
    ]
    private static let place = "concat_ws(' ', place->>'x', place->>'y')"

    /// What no device can have seen, or treats a value as what it is not (CR-26).
    static let contradictions: [(change: ObjectChange, code: ErrorCode)] = [
        (edit(Edit("labels", [.element(.seen(0))], .remove, priorSize: 4)), .badChangeset),
        (edit(Edit("labels", [.element(.seen(3))], .remove)), .badChangeset),
        (edit(Edit("members", .insert(.string("x"), after: nil, tag: 1))), .badChangeset),
        (edit(Edit("pairs", .clear(.list))), .badChangeset), (edit(Edit("title", .add(1))), .badChangeset),
        (edit(Edit("title", .insert(.string("x"), after: nil, tag: 1))), .wrongValueType),
        // The key's type and nullability, a property's, and those of the key that a link leads to.
        (ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .set, values: ["count": .int(1)]), .wrongValueType),
        (ObjectChange(object: ObjectKey(type: "Thing", key: .null), kind: .delete), .badChangeset),
        (set(["count": .string("1")]), .wrongValueType), (set(["labels": .list([.null])]), .wrongValueType),
        (set(["peer": .int(1)]), .wrongValueType),
        (edit(Edit("labels", .insert(.null, after: nil, tag: 1))), .wrongValueType),
        (edit(Edit("labels", [.element(.seen(0))], .set(.null))), .wrongValueType),
        (set(["peer": .list([])]), .wrongValueType),
    ]

    /// What an app's schema says of the class of the things otherwise than the server's (CR-26).
    struct OtherSchema {
        var name: String
        /// In the place of the one of this name.
        var property: Property?
        var key = "_id"
        var kind = ObjectKind.topLevel
        var code = ErrorCode.invalidSchemaChange

        func type(_ type: ObjectType) -> ObjectType {
            ObjectType(
                name: type.name, kind: kind,
                properties: type.properties.map { $0.name == property?.name ? property ?? $0 : $0 }, primaryKey: key)
        }
    }

    static let otherSchemas = [
        OtherSchema(name: "key type", property: Property(id: 0, name: "_id", type: .int)),
        OtherSchema(name: "nullable key", property: Property(id: 0, name: "_id", type: .string, isOptional: true)),
        OtherSchema(name: "another key", key: "title"),
        OtherSchema(name: "nullability", property: Property(id: 0, name: "title", type: .string)),
        OtherSchema(name: "type", property: Property(id: 0, name: "count", type: .double, isOptional: true)),
        OtherSchema(name: "collection", property: Property(id: 0, name: "labels", type: .string, collection: .set)),
        OtherSchema(name: "link target", property: Property(id: 0, name: "peer", type: .link(to: "Order"), isOptional: true)),
        OtherSchema(name: "no link", property: Property(id: 0, name: "peer", type: .string, isOptional: true)),
        OtherSchema(
            name: "target of an embedded object", property: Property(id: 0, name: "place", type: .embedded("Else"), isOptional: true)),
        OtherSchema(name: "asymmetric mark", kind: .asymmetric, code: .badChangeset),
    ]
}

extension GatewayConflict {
    /// An app with the class of the things.
    static var files: [String: String] {
        var files = ShopApp.files
        files[ShopApp.table("Thing", "schema")] = """
            {
                "title": "Thing", "bsonType": "object", "required": ["_id"],
                "properties": {
                    "_id": { "bsonType": "string" }, "title": { "bsonType": "string" }, "count": { "bsonType": "long" },
                    "labels": { "bsonType": "array", "items": { "bsonType": "string" } },
                    "members": { "bsonType": "array", "uniqueItems": true, "items": { "bsonType": "string" } },
                    "pairs": { "bsonType": "object", "additionalProperties": { "bsonType": "long" } },
                    "place": { "title": "Spot", "bsonType": "object", "properties": { "x": { "bsonType": "long" }, "y": { "bsonType": "long" } } },
                    "blend": { "bsonType": "mixed" }, "peer": { "bsonType": "string" }
                }
            }
            """
        files[ShopApp.table("Thing", "rules")] = files[ShopApp.table("tags", "rules")]?.replacing("\"tags\"", with: "\"Thing\"")
        files[ShopApp.table("Thing", "relationships")] =
            ##"{ "peer": { "ref": "#/relationship/postgres/public/Thing", "foreign_key": "_id", "is_list": false } }"##
        return files
    }
}
