import SluiceCore
import Testing

/// One of the fourteen instructions that a Realm's own changesets are made of, in our words.
struct Instruction: Sendable, CustomTestStringConvertible {
    enum Form: Sendable {
        /// Changes of the object, and what it has then that it had not: nil is gone.
        case changes([ObjectChange], [String: Value?])
        /// A class that a client states in its Hello.
        case stated(ObjectType)
        /// Nothing that a client can do here, and who does.
        case elsewhere(String)
    }

    var tag: Int
    var name: String
    var forms: [Form]

    var testDescription: String { name }

    static let key = ObjectKey(type: "Thing", key: .int(1))

    private static func object(
        _ kind: ObjectChange.Kind, _ values: [String: Value] = [:], defaults: Set<String> = [], counters: [String: Int64] = [:],
        edits: [Edit] = []
    ) -> ObjectChange {
        ObjectChange(object: key, kind: kind, values: values, defaults: defaults, counters: counters, edits: edits)
    }

    private static func update(_ values: [String: Value]) -> Form { .changes([object(.set, values)], values.mapValues { $0 }) }

    private static func edit(_ edits: Edit..., outcome: [String: Value?]) -> Form { .changes([object(.set, edits: edits)], outcome) }

    /// The place before an index, as the writer saw the list.
    private static func before(_ index: Int) -> ElementRef? { index == 0 ? nil : .seen(index - 1) }
    private static func at(_ index: Int) -> EditStep { .element(.seen(index)) }

    static let child = ObjectType(
        name: "Child", kind: .embedded,
        properties: [
            Property(id: 1, name: "n", type: .int, isOptional: true), Property(id: 2, name: "tags", type: .string, collection: .list),
        ], primaryKey: nil)
    static let thing = ObjectType(
        name: "Thing",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "name", type: .string, isOptional: true),
            Property(id: 3, name: "count", type: .int, isOptional: true), Property(id: 4, name: "any", type: .mixed, isOptional: true),
            Property(id: 5, name: "list", type: .string, collection: .list), Property(id: 6, name: "set", type: .int, collection: .set),
            Property(id: 7, name: "map", type: .mixed, collection: .dictionary),
            Property(id: 8, name: "child", type: .embedded("Child"), isOptional: true),
            Property(id: 9, name: "children", type: .embedded("Child"), collection: .list),
            Property(id: 10, name: "peer", type: .link(to: "Thing"), isOptional: true),
        ])
    static let schema = Schema([thing, child])

    /// What the object has before.
    static let start: [String: Value] = [
        "name": "first", "count": 10, "any": .list([1, 2]), "list": ["a", "b", "c"], "set": .list([1, 2]),
        "map": .dictionary(["k": 1, "l": 2]), "child": .dictionary(["n": 5, "tags": ["x"]]),
        "children": .list([.dictionary(["n": 0, "tags": ["y"]]), .dictionary(["n": 1, "tags": .list([])])]),
    ]

    static let all: [Instruction] = schemas + objects + values + lists + sets

    private static let schemas = [
        Instruction(
            tag: 0, name: "AddTable",
            forms: [
                .stated(ObjectType(name: "New", properties: [Property(id: 0, name: "_id", type: .uuid, isOptional: true)])),
                .stated(ObjectType(name: "New", properties: [Property(id: 0, name: "code", type: .string)], primaryKey: "code")),
                .stated(ObjectType(name: "New", kind: .asymmetric, properties: [Property(id: 0, name: "_id", type: .objectId)])),
                .stated(ObjectType(name: "New", kind: .embedded, properties: [Property(id: 0, name: "n", type: .int)], primaryKey: nil)),
            ]),
        Instruction(tag: 1, name: "EraseTable", forms: [.elsewhere("`sluice schema apply`, and in SQL")]),
        Instruction(
            tag: 6, name: "AddColumn",
            forms: [
                .stated(
                    ObjectType(
                        name: "New",
                        properties: [
                            Property(id: 0, name: "_id", type: .int), Property(id: 0, name: "any", type: .mixed, isOptional: true),
                            Property(id: 0, name: "texts", type: .string, collection: .list, isOptional: true),
                            Property(id: 0, name: "dates", type: .timestamp, collection: .dictionary),
                            Property(id: 0, name: "peers", type: .link(to: "New"), collection: .set),
                            Property(id: 0, name: "peer", type: .link(to: "New"), isOptional: true),
                        ]))
            ]),
        Instruction(tag: 7, name: "EraseColumn", forms: [.elsewhere("`sluice schema apply`, and in SQL")]),
    ]

    private static let objects = [
        Instruction(
            tag: 2, name: "CreateObject",
            forms: [
                .changes([object(.create)], [:]),
                .changes(
                    [object(.delete), object(.create, ["name": "new"])], start.mapValues { _ in nil }.merging(["name": "new"]) { $1 }),
            ]),
        Instruction(tag: 3, name: "EraseObject", forms: [.changes([object(.delete)], start.mapValues { _ in nil })]),
    ]

    private static let values = [
        Instruction(
            tag: 4, name: "Update",
            forms: [
                update(["name": "other"]), update(["name": .null]), update(["peer": .int(7)]),
                update(["any": .double(1.5)]),
                // A default loses against the value that was given.
                .changes([object(.create, ["name": "default"], defaults: ["name"])], [:]),
                edit(Edit("child", [.key("n")], .set(6, isDefault: true)), outcome: [:]),
                // The path ends in an index, with the size of the list; in a field; in a key; and lies deeper.
                edit(Edit("list", [at(1)], .set("B"), priorSize: 3), outcome: ["list": ["a", "B", "c"]]),
                edit(Edit("child", [.key("n")], .set(6)), outcome: ["child": .dictionary(["n": 6, "tags": ["x"]])]),
                edit(Edit("map", [.key("k")], .set("v")), outcome: ["map": .dictionary(["k": "v", "l": 2])]),
                edit(
                    Edit("children", [at(0), .key("tags"), at(0)], .set("Y"), priorSize: 1),
                    outcome: ["children": .list([.dictionary(["n": 0, "tags": ["Y"]]), .dictionary(["n": 1, "tags": .list([])])])]),
                // Erased; an object's beginning; a container in a mixed.
                edit(Edit("map", [.key("k")], .remove), outcome: ["map": .dictionary(["l": 2])]),
                edit(Edit("child", .become(.object)), outcome: [:]),
                edit(Edit("any", .become(.dictionary)), Edit("any", [.key("k")], .set(1)), outcome: ["any": .dictionary(["k": 1])]),
                edit(Edit("map", [.key("n")], .become(.list)), outcome: ["map": .dictionary(["k": 1, "l": 2, "n": .list([])])]),
            ]),
        Instruction(
            tag: 5, name: "AddInteger",
            forms: [
                .changes([object(.set, counters: ["count": -3])], ["count": 7]),
                edit(Edit("child", [.key("n")], .add(2)), outcome: ["child": .dictionary(["n": 7, "tags": ["x"]])]),
                edit(Edit("any", [at(1)], .add(5)), outcome: ["any": .list([1, 7])]),
            ]),
    ]

    private static let lists = [
        Instruction(
            tag: 8, name: "ArrayInsert",
            forms: [
                edit(Edit("list", .insert("z", after: before(0), tag: 1), priorSize: 3), outcome: ["list": ["z", "a", "b", "c"]]),
                edit(Edit("list", .insert("z", after: before(3), tag: 1), priorSize: 3), outcome: ["list": ["a", "b", "c", "z"]]),
                edit(
                    Edit("children", [at(1), .key("tags")], .insert("z", after: before(0), tag: 1), priorSize: 0),
                    outcome: ["children": .list([.dictionary(["n": 0, "tags": ["y"]]), .dictionary(["n": 1, "tags": ["z"]])])]),
                // Into a list in a list: the size is that of the inner one.
                edit(
                    Edit("any", [at(1)], .become(.list)), Edit("any", [at(1)], .insert("z", after: before(0), tag: 1), priorSize: 0),
                    outcome: ["any": .list([1, .list(["z"])])]),
            ]),
        Instruction(
            tag: 9, name: "ArrayMove",
            forms: [
                edit(Edit("list", [at(0)], .move(after: .seen(2), tag: 1), priorSize: 3), outcome: ["list": ["b", "c", "a"]]),
                edit(Edit("list", [at(2)], .move(after: nil, tag: 1), priorSize: 3), outcome: ["list": ["c", "a", "b"]]),
            ]),
        Instruction(
            tag: 10, name: "ArrayErase", forms: [edit(Edit("list", [at(1)], .remove, priorSize: 3), outcome: ["list": ["a", "c"]])]),
        Instruction(
            tag: 11, name: "Clear",
            forms: [
                edit(Edit("list", .clear(.list)), outcome: ["list": nil]), edit(Edit("set", .clear(.set)), outcome: ["set": nil]),
                edit(Edit("map", .clear(.dictionary)), outcome: ["map": nil]), edit(Edit("any", .clear(.list)), outcome: ["any": nil]),
                edit(
                    Edit("child", [.key("tags")], .clear(.list)), outcome: ["child": .dictionary(["n": 5, "tags": .list([])])]),
            ]),
    ]

    private static let sets = [
        Instruction(tag: 12, name: "SetInsert", forms: [edit(Edit("set", .setInsert(3)), outcome: ["set": .list([1, 2, 3])])]),
        Instruction(tag: 13, name: "SetErase", forms: [edit(Edit("set", .setErase(1)), outcome: ["set": .list([2])])]),
    ]
}
