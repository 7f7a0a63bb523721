import SluiceValues

/// The type of a property's value, or of its elements unless `Property.collection` is `.none`.
package enum PropertyType: Hashable, Sendable {
    case bool, int, float, double, decimal, string, binary, timestamp, objectId, uuid, mixed
    /// A link to an object of a top-level class, stored as the target's primary key.
    case link(to: String)
    /// An object without a key of its own, stored inside its owner.
    case embedded(String)
}

extension PropertyType {
    /// The kind of value without a target, for error messages.
    package var name: String {
        switch self {
        case .bool: "bool"
        case .int: "int"
        case .float: "float"
        case .double: "double"
        case .decimal: "decimal"
        case .string: "string"
        case .binary: "binary"
        case .timestamp: "date"
        case .objectId: "objectId"
        case .uuid: "uuid"
        case .mixed: "mixed"
        case .link: "link"
        case .embedded: "object"
        }
    }
}

package enum CollectionKind: UInt8, CaseIterable, Sendable { case none, list, set, dictionary }

/// One property of a class.
package struct Property: Hashable, Sendable {
    /// The stable number of the property within its class, which the wire carries. It starts at 1 and is never reused.
    package var id: UInt32
    package var name: String
    package var type: PropertyType
    package var collection: CollectionKind
    package var isOptional: Bool

    package init(
        id: UInt32, name: String, type: PropertyType, collection: CollectionKind = .none, isOptional: Bool = false
    ) {
        self.id = id
        self.name = name
        self.type = type
        self.collection = collection
        self.isOptional = isOptional
    }
}

package enum ObjectKind: UInt8, CaseIterable, Sendable {
    case topLevel
    case embedded
    /// Write-only: clients create objects, and no client reads them (docs/ingest.md).
    case asymmetric
}

/// A class of objects: one table, one topic.
package struct ObjectType: Hashable, Sendable {
    package let name: String
    package let kind: ObjectKind
    /// The properties in index order, which row cells, evaluators and SQL column lists follow.
    package let properties: [Property]
    /// The index of the primary key in `properties`. Nil for embedded classes only.
    package let primaryKey: Int?
    private let indexByName: [String: Int]
    private let indexByID: [Int32]
    private let longestName: Int

    package init(name: String, kind: ObjectKind = .topLevel, properties: [Property], primaryKey: String? = "_id") {
        self.name = name
        self.kind = kind
        self.properties = properties
        indexByName = Dictionary(properties.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
        self.primaryKey = primaryKey.flatMap { [indexByName] in indexByName[$0] }
        var byID = [Int32](repeating: -1, count: Int(properties.map(\.id).max() ?? 0) + 1)
        for (index, property) in properties.enumerated() { byID[Int(property.id)] = Int32(index) }
        indexByID = byID
        longestName = properties.lazy.map(\.name.utf8.count).max() ?? 0
    }

    /// Returns the index of the property with exactly the bytes of this name, or nil.
    package func index(of name: String) -> Int? {
        guard let index = indexByName[name, atMost: longestName], properties[index].name.hasSameBytes(as: name) else { return nil }
        return index
    }

    /// Returns the index of the property with this number, or nil if the class does not know it.
    package func index(ofID id: UInt32) -> Int? {
        guard Int(id) < indexByID.count, indexByID[Int(id)] >= 0 else { return nil }
        return Int(indexByID[Int(id)])
    }

    package subscript(_ name: String) -> Property? { index(of: name).map { properties[$0] } }
}

/// All classes of an app.
package struct Schema: Hashable, Sendable {
    package let types: [ObjectType]
    private let indexByName: [String: Int]
    private let longestName: Int

    package init(_ types: [ObjectType]) {
        self.types = types
        indexByName = Dictionary(types.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
        longestName = types.lazy.map(\.name.utf8.count).max() ?? 0
    }

    package subscript(_ name: String) -> ObjectType? { index(of: name).map { types[$0] } }

    /// Returns the index of the class with exactly the bytes of this name, or nil.
    package func index(of name: String) -> Int? {
        guard let index = indexByName[name, atMost: longestName], types[index].name.hasSameBytes(as: name) else { return nil }
        return index
    }

    /// Returns the schema with the property numbers that `number` gives for each class and property index.
    package func numbered(_ number: (ObjectType, Int) -> UInt32) -> Schema {
        Schema(
            types.map { type in
                var properties = type.properties
                for index in properties.indices { properties[index].id = number(type, index) }
                let key = type.primaryKey.map { type.properties[$0].name }
                return ObjectType(name: type.name, kind: type.kind, properties: properties, primaryKey: key)
            })
    }
}

extension Dictionary<String, Int> {
    /// Returns the index for a name that may come from a peer. Swift hashes strings normalised, at a cost quadratic in the length of a run
    /// of combining marks. A name longer than the longest key is therefore not hashed.
    fileprivate subscript(name: String, atMost longest: Int) -> Int? { name.utf8.count <= longest ? self[name] : nil }
}

/// The fields that subscriptions and rules may use (docs/query-language.md).
package struct QueryableFields: Hashable, Sendable {
    /// The fields that are queryable in every class that has a property of the name.
    package var global: Set<String>
    /// Further fields by class name.
    package var byType: [String: Set<String>]
    /// The indexed queryable field: the partition key of the change log. At most one per app.
    package var indexed: String?

    package init(global: Set<String> = [], byType: [String: Set<String>] = [:], indexed: String? = nil) {
        self.global = global
        self.byType = byType
        self.indexed = indexed
    }

    /// `true` if the field is queryable in the class. `_id` always is.
    package func contains(_ field: String, of type: String) -> Bool {
        field == "_id" || global.contains(field) || field == indexed || byType[type]?.contains(field) == true
    }

    /// Returns the property index of the indexed queryable field in this class, or nil if the class lacks it.
    package func indexedProperty(of type: ObjectType) -> Int? { indexed.flatMap { type.index(of: $0) } }
}
