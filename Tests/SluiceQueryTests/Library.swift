import SluiceCore
import SluiceQuery
import SluiceValues

/// A small world with links of every kind, for tables of the whole language.
enum Library {
    static let schema = Schema([
        ObjectType(
            name: "Shop",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "name", type: .string, isOptional: true),
                Property(id: 3, name: "books", type: .link(to: "Book"), collection: .list),
                Property(id: 4, name: "owner", type: .link(to: "Person"), isOptional: true),
                Property(id: 5, name: "prices", type: .double, collection: .list),
                Property(id: 6, name: "codes", type: .int, collection: .set),
                Property(id: 7, name: "stock", type: .int, collection: .dictionary, isOptional: true),
                Property(id: 8, name: "extra", type: .mixed, collection: .dictionary),
                Property(id: 9, name: "mix", type: .mixed),
                Property(id: 10, name: "place", type: .embedded("Place"), isOptional: true),
                Property(id: 11, name: "stops", type: .embedded("Place"), collection: .list),
                Property(id: 12, name: "tags", type: .string, collection: .list, isOptional: true),
                Property(id: 13, name: "staff", type: .link(to: "Person"), collection: .dictionary, isOptional: true),
                Property(id: 14, name: "more prices", type: .double, collection: .list),
                Property(id: 15, name: "about", type: .string, isOptional: true),
            ]),
        ObjectType(
            name: "Book",
            properties: [
                Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "price", type: .double, isOptional: true),
                Property(id: 3, name: "pages", type: .int), Property(id: 4, name: "weight", type: .float),
                Property(id: 5, name: "exact", type: .decimal),
                Property(id: 6, name: "author", type: .link(to: "Person"), isOptional: true),
                Property(id: 7, name: "out", type: .timestamp), Property(id: 8, name: "marks", type: .int, collection: .list),
            ]),
        ObjectType(
            name: "Person",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "name", type: .string, isOptional: true),
                Property(id: 3, name: "age", type: .int, isOptional: true),
                Property(id: 4, name: "boss", type: .link(to: "Person"), isOptional: true),
            ]),
        ObjectType(
            name: "Place", kind: .embedded,
            properties: [
                Property(id: 1, name: "type", type: .string), Property(id: 2, name: "coordinates", type: .double, collection: .list),
                Property(id: 3, name: "city", type: .string, isOptional: true),
                Property(id: 4, name: "keeper", type: .link(to: "Person"), isOptional: true),
            ], primaryKey: nil),
    ])

    static func place(_ longitude: Double, _ latitude: Double, _ city: String, keeper: Int64? = nil) -> Value {
        .dictionary([
            "type": .string("Point"), "coordinates": .list([.double(longitude), .double(latitude)]), "city": .string(city),
            "keeper": keeper.map { .int($0) } ?? .null,
        ])
    }

    private static func keys(_ names: [String]) -> Value { .list(names.map { .string($0) }) }

    static let graph = MemoryGraph(
        schema: schema,
        rows: [
            row("Person", [1, "Ann", 30, nil]), row("Person", [2, "Bob", 40, 1]), row("Person", [3, nil, nil, 2]),
            row("Book", ["a", 5.5, 100, Float(0.5), "1.10", 1, 10, [1, 2]]), row("Book", ["b", 4.0, 200, Float(1.5), "2.20", 2, 20, [3]]),
            row("Book", ["c", nil, 300, Float(0.1), "0.1", nil, 30, []]),
            shop(1, "North", books: ["a", "b"], owner: 1) {
                $0["prices"] = .list([.double(5.5), .double(4)])
                $0["codes"] = .list([.int(0), .int(3), .int(7), .int(8)])
                $0["stock"] = .dictionary(["a": .int(3), "b": .int(0)])
                $0["extra"] = .dictionary(["k": .string("v"), "n": .int(1), "l": .list([.int(1), .int(2)])])
                $0["mix"] = .list([.int(1), .dictionary(["deep": .list([.string("x")])])])
                $0["place"] = place(10, 50, "Mainz", keeper: 2)
                $0["stops"] = .list([place(0, 0, "Null"), place(20, 20, "Far")])
                $0["tags"] = .list([.string("old"), .null, .string("é")])
                $0["staff"] = .dictionary(["boss": .int(1), "hand": .int(2)])
                $0["more prices"] = .list([.double(4)])
                $0["about"] = .string("Old books, good café; NO-toys 42")
            },
            shop(2, "South", books: ["b", "b", "c"], owner: nil) {
                $0["mix"] = .dictionary(["deep": .int(5), "list": .list([.null])])
                $0["place"] = place(-170, -20, "Fiji")
                $0["codes"] = .list([.int(3)])
                $0["about"] = .string("new BOOKS")
            },
            shop(3, nil, books: [], owner: 3) {
                $0["mix"] = .link(type: "Person", key: .int(1))
                $0["tags"] = .list([.string("new")])
                $0["staff"] = .dictionary(["boss": .null])
            },
            shop(4, "East", books: ["gone"], owner: 9) { $0["mix"] = .double(.nan) },
        ])

    private static func shop(
        _ id: Int64, _ name: String?, books: [String], owner: Int64?, _ fill: (inout [String: Value]) -> Void
    ) -> (String, Row) {
        var values: [String: Value] = [
            "_id": .int(id), "name": name.map { .string($0) } ?? .null, "books": keys(books), "owner": owner.map { .int($0) } ?? .null,
        ]
        for property in schema.types[0].properties where values[property.name] == nil { values[property.name] = property.emptyValue }
        fill(&values)
        return ("Shop", Row(schema.types[0].properties.map { values[$0.name] }))
    }

    private static func row(_ type: String, _ values: [Any?]) -> (String, Row) {
        let properties = schema[type]?.properties ?? []
        return (type, Row(zip(properties, values).map { value($1, $0) }))
    }

    private static func value(_ value: Any?, _ property: Property) -> Value {
        switch (value, property.type) {
        case (let text as String, .decimal): .decimal(Decimal128(text) ?? .nan)
        case (let text as String, _): .string(text)
        case (let seconds as Int, .timestamp): .timestamp(Timestamp(seconds: Int64(seconds)))
        case (let number as Int, _): .int(Int64(number))
        case (let number as Double, _): .double(number)
        case (let number as Float, _): .float(number)
        case (let numbers as [Int], _): .list(numbers.map { .int(Int64($0)) })
        default: .null
        }
    }

    static func bind(_ text: String, _ arguments: [QueryArgument] = [], type: String = "Shop") throws -> BoundQuery {
        try Query.parse(text).bind(to: schema[type] ?? schema.types[0], in: schema, arguments: arguments)
    }

    /// The keys that a query selects, as text, by both evaluations.
    static func run(_ text: String, _ arguments: [QueryArgument] = [], type: String = "Shop") throws -> String {
        let query = try bind(text, arguments, type: type)
        let all = graph.keys(of: query.type)
        let compiled = query.compile()
        let tree = all.filter { query.matches($0, in: graph) }
        guard tree == all.filter({ compiled.matches($0, in: graph) }) else { return "the evaluations disagree" }
        return query.run(over: graph).map(describe).joined(separator: " ")
    }

    private static func describe(_ key: Value) -> String {
        switch key {
        case .int(let number): "\(number)"
        case .string(let text): text
        default: "\(key)"
        }
    }

    static func failure(_ text: String, _ arguments: [QueryArgument] = [], type: String = "Shop") -> SluiceError? {
        do throws(SluiceError) {
            _ = try Query.parse(text).bind(to: schema[type] ?? schema.types[0], in: schema, arguments: arguments)
            return nil
        } catch {
            return error
        }
    }
}
