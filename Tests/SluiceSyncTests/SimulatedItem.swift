import SluiceCore

let itemType = ObjectType(
    name: "Item",
    properties: [
        Property(id: 11, name: "_id", type: .int), Property(id: 12, name: "store", type: .string),
        Property(id: 13, name: "value", type: .string), Property(id: 14, name: "count", type: .int),
        Property(id: 15, name: "tags", type: .string, collection: .list),
    ])
let readingType = ObjectType(
    name: "Reading", kind: .asymmetric,
    properties: [Property(id: 21, name: "_id", type: .int), Property(id: 22, name: "level", type: .int)])

/// The gateway's schema; the client's has other numbers and another order.
let serverTypes = Schema([readingType, itemType])
let clientTypes = Schema([
    ObjectType(
        name: "Item",
        properties: [
            Property(id: 1, name: "value", type: .string), Property(id: 2, name: "_id", type: .int),
            Property(id: 3, name: "store", type: .string), Property(id: 4, name: "count", type: .int),
            Property(id: 5, name: "tags", type: .string, collection: .list),
        ]),
    ObjectType(
        name: "Reading", kind: .asymmetric,
        properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "level", type: .int)]),
])

struct Item: Hashable {
    var store: String
    var value: String
    var count: Int64 = 0
    var tags: [String] = []

    init(store: String, value: String) {
        self.store = store
        self.value = value
    }

    /// By property name, as merging has it.
    init(_ values: [String: Value]) {
        func text(_ value: Value?) -> String { if case .string(let text)? = value { text } else { "" } }
        self.init(store: text(values["store"]), value: text(values["value"]))
        if case .int(let count)? = values["count"] { self.count = count }
        if case .list(let tags)? = values["tags"] { self.tags = tags.map { text($0) } }
    }

    var values: [String: Value] {
        ["store": .string(store), "value": .string(value), "count": .int(count), "tags": .list(tags.map { .string($0) })]
    }

    func row(_ key: Int64, _ type: ObjectType) -> Row {
        Row(type.properties.map { $0.name == "_id" ? .int(key) : values[$0.name] })
    }
}
