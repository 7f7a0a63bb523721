import SluiceCore
import SluiceValues
import Testing

@testable import SluicePipeline

/// What the gateway's tests show of devices (`A value that does not fit its class`), for each place that a value may have.
@Suite struct `Values and the schema` {
    private static let inner = ObjectType(
        name: "Inner", kind: .embedded,
        properties: [
            Property(id: 1, name: "x", type: .int), Property(id: 2, name: "note", type: .string, isOptional: true),
            Property(id: 3, name: "tags", type: .string, collection: .list),
            Property(id: 4, name: "next", type: .embedded("Inner"), isOptional: true),
            Property(id: 5, name: "person", type: .link(to: "Person"), isOptional: true),
        ], primaryKey: nil)
    private static let thing = ObjectType(
        name: "Thing",
        properties: [
            Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "count", type: .int),
            Property(id: 3, name: "inner", type: .embedded("Inner"), isOptional: true),
            Property(id: 4, name: "inners", type: .embedded("Inner"), collection: .list),
            Property(id: 5, name: "named", type: .embedded("Inner"), collection: .dictionary, isOptional: true),
            Property(id: 6, name: "people", type: .link(to: "Person"), collection: .list),
            Property(id: 7, name: "numbers", type: .int, collection: .set, isOptional: true), Property(id: 8, name: "any", type: .mixed),
            Property(id: 9, name: "texts", type: .string, collection: .dictionary),
        ])
    private static let fit = SchemaFit(
        schema: Schema([thing, inner, ObjectType(name: "Person", properties: [Property(id: 1, name: "_id", type: .int)])]))

    private static func reason(_ name: String, _ value: Value) throws -> String? {
        fit.misfit(value, try #require(thing[name]), of: thing)
    }

    private static let whole = Value.dictionary(["x": .int(1)])
    private static func whole(_ fields: [String: Value]) -> Value { .dictionary(["x": .int(1)].merging(fields) { $1 }) }
    private static func nested(_ levels: Int) -> Value { (1..<levels).reduce(.list([])) { list, _ in .list([list]) } }

    @Test func `fit together where readers of the table take them`() throws {
        for (name, value) in [
            ("count", .int(1)), ("inner", .null), ("inner", Self.whole), ("inner", Self.whole(["note": .null, "next": Self.whole])),
            ("inner", Self.whole(["person": .int(7), "tags": .list([.string("t")])])), ("inners", .null), ("inners", .list([Self.whole])),
            ("named", .dictionary(["a": .null, "b": Self.whole])), ("people", .list([.int(1)])), ("numbers", .list([.null, .int(1)])),
            ("any", .null), ("any", Self.nested(Limits.nestingDepth)), ("texts", .dictionary(["a": .string("b")])),
        ] as [(String, Value)] {
            #expect(try Self.reason(name, value) == nil, "\(name) \(value)")
        }
    }

    @Test func `do not elsewhere, and the reason names the place`() throws {
        for (name, value, place) in [
            ("count", .null, "Thing.count would be null"), ("inner", .dictionary([:]), "Thing.inner.x would be missing"),
            ("inner", Self.whole(["x": .null]), "Thing.inner.x would be null"),
            ("inner", Self.whole(["x": .string("1")]), "Thing.inner.x would be string"),
            ("inner", Self.whole(["z": .int(1)]), "Thing.inner.z would exist"), ("inner", .list([]), "Thing.inner would be list"),
            ("inner", Self.whole(["next": .dictionary([:])]), "Thing.inner.next.x would be missing"),
            ("inner", Self.whole(["tags": .null]), "Thing.inner.tags would be null"),
            ("inner", Self.whole(["tags": .list([.null])]), "Thing.inner.tags would be null"),
            ("inner", Self.whole(["person": .string("p")]), "Thing.inner.person would be string"),
            ("inners", .list([.null]), "Thing.inners would be null"),
            ("inners", .list([.dictionary([:])]), "Thing.inners.x would be missing"),
            ("named", .dictionary(["a": .int(1)]), "Thing.named would be int"), ("people", .list([.null]), "Thing.people would be null"),
            ("texts", .dictionary(["a": .null]), "Thing.texts would be null"),
            ("any", Self.nested(Limits.nestingDepth + 1), "Thing.any would be nested deeper"),
            ("any", .dictionary(["a": Self.nested(Limits.nestingDepth)]), "Thing.any would be nested deeper"),
        ] as [(String, Value, String)] {
            let reason = try Self.reason(name, value)
            #expect(reason?.hasPrefix(place) == true, "\(name) \(value): \(reason ?? "fits")")
        }
    }

    /// What the walk takes, the parser of the column's text takes: containers around each kind of value, as deep as may be.
    @Test func `are as deep as their JSON is`() throws {
        let leaves: [Value] = [
            .int(1), .double(.nan), .double(1), .decimal(.zero), .binary([1]), .timestamp(Timestamp(seconds: 0)),
            .timestamp(Timestamp(seconds: .min / 4)),
            .uuid(UUIDBytes(high: 1, low: 2)), .link(type: "Thing", key: .uuid(UUIDBytes(high: 1, low: 2))),
        ]
        for leaf in leaves {
            for levels in Limits.nestingDepth - 4...Limits.nestingDepth + 1 {
                let value = (0..<levels).reduce(leaf) { inner, _ in .list([inner]) }
                let isRead = (try? JSON.parse(ExtendedJSON.json(value).text)) != nil
                let fits = try Self.reason("any", value) == nil
                #expect(fits == isRead, "\(leaf) in \(levels)")
            }
        }
    }
}
