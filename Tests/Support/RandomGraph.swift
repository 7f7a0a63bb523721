package import SluiceCore
import SluiceValues

/// Random schemas, rows that fit them, and graphs of those.
package struct RandomGraph {
    package let schema: Schema
    package var rows: [(type: String, row: Row)]

    static let keys = ["a", "b", "é", ""]

    package init(_ random: inout SplitMix64, rowsOfEach: Int) {
        let classes = (0..<2 + random.below(2)).map { "Class\($0)" }
        let embedded = ["Part", "Spot"]
        var types: [ObjectType] = []
        for name in classes {
            let key: PropertyType = random.pick([.int, .string, .objectId, .uuid])
            let own = [Property(id: 1, name: "_id", type: key)]
            types.append(ObjectType(name: name, properties: own + RandomGraph.properties(&random, classes, embedded, from: 2)))
        }
        types.append(
            ObjectType(
                name: "Part", kind: .embedded, properties: RandomGraph.properties(&random, classes, [], from: 1, count: 4), primaryKey: nil)
        )
        types.append(
            ObjectType(
                name: "Spot", kind: .embedded,
                properties: [
                    Property(id: 1, name: "type", type: .string), Property(id: 2, name: "coordinates", type: .double, collection: .list),
                ], primaryKey: nil))
        schema = Schema(types)
        rows = []
        for (index, name) in classes.enumerated() {
            for number in 0..<rowsOfEach {
                rows.append((name, RandomGraph.row(&random, schema, schema.types[index], number: number)))
            }
        }
    }

    private static let scalars: [PropertyType] = [
        .bool, .int, .float, .double, .decimal, .string, .binary, .timestamp, .objectId, .uuid, .mixed,
    ]

    private static func properties(
        _ random: inout SplitMix64, _ classes: [String], _ embedded: [String], from first: UInt32, count: Int = 12
    ) -> [Property] {
        (0..<count).map { number in
            var type = random.pick(scalars)
            if random.chance(30) { type = .link(to: random.pick(classes)) }
            if random.chance(12), let name = embedded.randomElement(using: &random) { type = .embedded(name) }
            var collection: CollectionKind = random.chance(60) ? .none : random.pick([.list, .list, .set, .dictionary])
            if case .embedded = type, collection == .set { collection = .list }
            let isObject =
                switch type {
                case .link, .embedded, .mixed: true
                default: false
                }
            return Property(
                id: first + UInt32(number), name: "p\(number)", type: type, collection: collection,
                isOptional: isObject ? collection == .none : random.chance(60))
        }
    }

    package static func key(_ number: Int, _ type: PropertyType) -> Value {
        switch type {
        case .string: .string(number < 10 ? ["", "a", "é", "🦄", "b", "c", "d", "e", "f", "g"][number] : "k\(number)")
        case .objectId: .objectId(ObjectIdentifierBytes(high: 0, low: UInt32(number)))
        case .uuid: .uuid(UUIDBytes(high: 0, low: UInt64(number)))
        default: .int(Int64(number))
        }
    }

    package static func row(_ random: inout SplitMix64, _ schema: Schema, _ type: ObjectType, number: Int) -> Row {
        var row = Row(type.properties.map { value(&random, schema, $0, depth: 0) })
        if let key = type.primaryKey { row[key] = self.key(number, type.properties[key].type) }
        if random.chance(5), row.values.count > 2 { row.values.removeLast(random.below(2)) }
        return row
    }

    private static func value(_ random: inout SplitMix64, _ schema: Schema, _ property: Property, depth: Int) -> Value {
        let count = random.below(4)
        switch property.collection {
        case .none: return element(&random, schema, property, depth: depth)
        case .list: return .list((0..<count).map { _ in element(&random, schema, property, depth: depth) })
        case .set: return .set((0..<count).map { _ in element(&random, schema, property, depth: depth) })
        case .dictionary:
            let keys = keys.prefix(count)
            return .dictionary(
                Dictionary(keys.map { ($0, element(&random, schema, property, depth: depth)) }, uniquingKeysWith: { first, _ in first }))
        }
    }

    private static func element(_ random: inout SplitMix64, _ schema: Schema, _ property: Property, depth: Int) -> Value {
        if property.isOptional, random.chance(20) { return .null }
        switch property.type {
        case .link(let target): return link(&random, schema, target)
        case .embedded("Spot"): return spot(&random)
        case .embedded(let name):
            guard let type = schema[name] else { return .null }
            var values: [String: Value] = [:]
            for property in type.properties where depth < 2 { values[property.name] = value(&random, schema, property, depth: depth + 1) }
            return .dictionary(values)
        case .mixed: return mixed(&random, schema, depth: depth)
        default: return Samples.value(property.type, &random)
        }
    }

    private static func link(_ random: inout SplitMix64, _ schema: Schema, _ target: String) -> Value {
        guard let type = schema[target], let key = type.primaryKey else { return .null }
        // One in ten leads nowhere.
        return self.key(random.below(10), type.properties[key].type)
    }

    private static func spot(_ random: inout SplitMix64) -> Value {
        let numbers = [random.pick([-180.0, -10, 0, 0.5, 1, 10, 179]), random.pick([-90.0, -1, 0, 0.5, 1, 45, 91])]
        return .dictionary([
            "type": .string(random.chance(90) ? "Point" : "Line"),
            "coordinates": .list(numbers.prefix(random.chance(90) ? 2 : 1).map { .double($0) }),
        ])
    }

    private static func mixed(_ random: inout SplitMix64, _ schema: Schema, depth: Int) -> Value {
        if depth < 2, random.chance(25) {
            let values = (0..<random.below(3)).map { _ in mixed(&random, schema, depth: depth + 1) }
            if random.chance(50) { return .list(values) }
            return .dictionary(Dictionary(zip(keys, values), uniquingKeysWith: { first, _ in first }))
        }
        if random.chance(15) {
            let target = random.pick(schema.types.filter { $0.kind == .topLevel }.map(\.name))
            return .link(type: target, key: link(&random, schema, target))
        }
        if random.chance(10) { return .null }
        return Samples.value(random.pick(scalars.dropLast()), &random)
    }
}
