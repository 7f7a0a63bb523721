import SluiceCore
import SluiceRealm
import SluiceValues
import TestSupport

/// Objects with a property of each kind.
struct RandomObject {
    var random: SplitMix64

    static let person = ObjectType(name: "Person", properties: [Property(id: 1, name: "_id", type: .int)])
    static let spot = ObjectType(
        name: "Spot", kind: .embedded,
        properties: [Property(id: 1, name: "a", type: .int), Property(id: 2, name: "tags", type: .string, collection: .list)],
        primaryKey: nil)
    static let place = ObjectType(
        name: "Place", kind: .embedded,
        properties: [
            Property(id: 1, name: "x", type: .double), Property(id: 2, name: "label", type: .string, isOptional: true),
            Property(id: 3, name: "marks", type: .int, collection: .list), Property(id: 4, name: "spot", type: .embedded("Spot")),
            Property(id: 5, name: "names", type: .int, collection: .dictionary),
        ], primaryKey: nil)
    static let task = ObjectType(
        name: "Task",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "title", type: .string),
            Property(id: 3, name: "count", type: .int, isOptional: true),
            Property(id: 4, name: "owner", type: .link(to: "Person"), isOptional: true),
            Property(id: 5, name: "tags", type: .string, collection: .list), Property(id: 6, name: "scores", type: .int, collection: .set),
            Property(id: 7, name: "extra", type: .double, collection: .dictionary, isOptional: true),
            Property(id: 8, name: "place", type: .embedded("Place"), isOptional: true),
            Property(id: 9, name: "stops", type: .embedded("Place"), collection: .list),
            Property(id: 10, name: "byName", type: .embedded("Spot"), collection: .dictionary, isOptional: true),
            Property(id: 11, name: "any", type: .mixed), Property(id: 12, name: "mixes", type: .mixed, collection: .list),
            Property(id: 13, name: "friends", type: .link(to: "Person"), collection: .list),
            Property(id: 14, name: "due", type: .timestamp, isOptional: true),
        ])
    static let schema = Schema([person, spot, place, task])
    static let key = ObjectKey(type: "Task", key: .int(1))

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    /// The values of all properties except the key.
    mutating func values(_ type: ObjectType = RandomObject.task) -> [String: Value] {
        var values: [String: Value] = [:]
        for (index, property) in type.properties.enumerated() where index != type.primaryKey { values[property.name] = value(property) }
        return values
    }

    /// A state that shares most values with another one.
    mutating func changed(_ values: [String: Value], _ type: ObjectType = RandomObject.task) -> [String: Value] {
        var result = values
        for (index, property) in type.properties.enumerated() where index != type.primaryKey && random.chance(40) {
            result[property.name] = changed(values[property.name] ?? .null, property)
        }
        return result
    }

    private mutating func changed(_ value: Value, _ property: Property) -> Value {
        switch (property.collection, value) {
        case (.list, .list(var elements)) where random.chance(80):
            for _ in 0..<random.below(4) {
                if elements.isEmpty || random.chance(50) {
                    elements.insert(element(property), at: random.below(elements.count + 1))
                } else if random.chance(50) {
                    elements.remove(at: random.below(elements.count))
                } else {
                    let index = random.below(elements.count)
                    elements[index] = inside(elements[index], property)
                }
            }
            return .list(elements)
        case (.none, .dictionary) where random.chance(80): return inside(value, property)
        default: return self.value(property)
        }
    }

    /// Another value of an element, or another state of it if it is an embedded object.
    private mutating func inside(_ value: Value, _ property: Property) -> Value {
        guard case .embedded(let name) = property.type, let type = Self.schema[name], case .dictionary(let fields) = value else {
            return element(property)
        }
        return .dictionary(changed(fields, type))
    }

    private mutating func value(_ property: Property) -> Value {
        switch property.collection {
        case .none: return element(property)
        case .list: return .list((0..<random.below(4)).map { _ in element(property) })
        case .set: return .set((0..<random.below(4)).map { _ in element(property) })
        case .dictionary: return .dictionary(entries { $0.element(property) })
        }
    }

    private mutating func element(_ property: Property) -> Value {
        if random.chance(20), mayBeNull(property) { return .null }
        switch property.type {
        case .embedded(let name): return Self.schema[name].map { .dictionary(values($0)) } ?? .null
        case .link: return .int(Int64(random.below(3)))
        case .mixed: return mixed(depth: 0)
        case let type: return scalar(type)
        }
    }

    private func mayBeNull(_ property: Property) -> Bool {
        switch property.type {
        case .mixed: true
        case .link, .embedded: property.collection == .none || property.collection == .dictionary
        default: property.isOptional
        }
    }

    private mutating func scalar(_ type: PropertyType) -> Value {
        switch type {
        case .int: .int(Int64(random.below(5)))
        case .double: .double(random.pick([0, 1.5, -2]))
        case .timestamp: .timestamp(Timestamp(seconds: Int64(random.below(5))))
        default: .string(random.pick(["", "a", "b", "水"]))
        }
    }

    private mutating func mixed(depth: Int) -> Value {
        switch random.below(depth < 2 ? 7 : 5) {
        case 0: return .null
        case 1: return .link(type: "Person", key: .int(Int64(random.below(3))))
        case 2: return scalar(.int)
        case 3: return scalar(.double)
        case 4: return scalar(.string)
        case 5: return .list((0..<random.below(4)).map { _ in mixed(depth: depth + 1) })
        default: return .dictionary(entries { $0.mixed(depth: depth + 1) })
        }
    }

    private mutating func entries(_ make: (inout RandomObject) -> Value) -> [String: Value] {
        var entries: [String: Value] = [:]
        for _ in 0..<random.below(4) { entries[random.pick(["", "k", "l", "a.b", "$x"])] = make(&self) }
        return entries
    }
}
