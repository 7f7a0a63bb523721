/// The type of a property's value, or of the elements when `Property.collection` is not `.none`.
package enum PropertyType: Hashable, Sendable {
    case bool, int, float, double, decimal, string, binary, timestamp, objectId, uuid, mixed
    /// A link to an object of a top-level type; stored as the target's primary key.
    case link(to: String)
    /// An object without a key of its own that lives inside its owner.
    case embedded(String)
}

extension PropertyType {
    /// The kind of value, without a target: as errors name it.
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

/// One property of an object type.
package struct Property: Hashable, Sendable {
    /// Stable number of the property within its type: 1 and up, never reused. It is what the wire carries.
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
    /// Write-only: clients create, nobody reads (data ingest).
    case asymmetric
}

/// A class of objects: one table, one topic.
package struct ObjectType: Hashable, Sendable {
    package let name: String
    package let kind: ObjectKind
    /// In index order: `FlatRow` cells, evaluators and SQL column lists all follow it.
    package let properties: [Property]
    /// Index of the primary key in `properties`; nil for embedded types only.
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

    /// The index of the property of exactly this name: names are equal when their bytes are, not when they look alike.
    package func index(of name: String) -> Int? {
        guard let index = indexByName[name, atMost: longestName], properties[index].name.hasSameBytes(as: name) else { return nil }
        return index
    }

    /// The index of the property with this number; nil when there is none (a property the reader does not know).
    package func index(ofID id: UInt32) -> Int? {
        guard Int(id) < indexByID.count, indexByID[Int(id)] >= 0 else { return nil }
        return Int(indexByID[Int(id)])
    }

    package subscript(_ name: String) -> Property? { index(of: name).map { properties[$0] } }
}

/// All object types of an app.
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

    /// The index of the type of exactly this name, byte for byte.
    package func index(of name: String) -> Int? {
        guard let index = indexByName[name, atMost: longestName], types[index].name.hasSameBytes(as: name) else { return nil }
        return index
    }
}

extension Dictionary<String, Int> {
    /// Looks a name up that may come from a peer. Swift hashes strings normalised, which takes the square of the length for a long run of
    /// combining marks; no longer name than the longest is worth that.
    fileprivate subscript(name: String, atMost longest: Int) -> Int? { name.utf8.count <= longest ? self[name] : nil }
}

extension String {
    /// Whether two texts have the same bytes; `==` is also true of an "é" of one code point and one of two.
    package func hasSameBytes(as other: String) -> Bool { utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8) }

    /// The hash that goes with `hasSameBytes`.
    package func hashBytes(into hasher: inout Hasher) {
        var text = self
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(UInt8(0xFF))
    }
}

/// Which fields may appear in subscriptions and rules (`QF-*`, `IQF-*` of the server specification).
package struct QueryableFields: Hashable, Sendable {
    /// Effective for every type that has a property of the name.
    package var global: Set<String>
    /// By type name.
    package var byType: [String: Set<String>]
    /// The indexed queryable field: the partition key of the log. At most one per app.
    package var indexed: String?

    package init(global: Set<String> = [], byType: [String: Set<String>] = [:], indexed: String? = nil) {
        self.global = global
        self.byType = byType
        self.indexed = indexed
    }

    /// `_id` always is (QF-1).
    package func contains(_ field: String, of type: String) -> Bool {
        field == "_id" || global.contains(field) || field == indexed || byType[type]?.contains(field) == true
    }

    /// The property index of the indexed queryable field in this type; nil when the type lacks it (IQF-3).
    package func indexedProperty(of type: ObjectType) -> Int? { indexed.flatMap { type.index(of: $0) } }
}
