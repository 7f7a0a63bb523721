import SluiceCore

/// The type of a property's value, or of its elements.
public enum PropertyType: Int, Sendable {
    case int = 0
    case bool = 1
    case string = 2
    case data = 3
    case date = 4
    case float = 5
    case double = 6
    case object = 7
    case linkingObjects = 8
    case any = 9
    case objectId = 10
    case decimal128 = 11
    case UUID = 12
}

/// A property of a class.
public final class Property: Hashable, CustomStringConvertible, Sendable {
    /// The name in the class.
    public let name: String
    /// The name in the file and on the server.
    public let columnName: String
    public let type: PropertyType
    public let isArray: Bool
    public let isSet: Bool
    public let isMap: Bool
    /// `true` if the property has an index. A primary key always has one.
    public let isIndexed: Bool
    /// `true` if the property can be null. Always `false` for a mixed value, which has a case of its own for it.
    public let isOptional: Bool
    /// The class that the property links to or embeds; nil for other types.
    public let objectClassName: String?

    init(_ property: ModelSchema.Property) {
        let kind = property.kind
        name = property.name
        columnName = property.column
        type = kind.isComputed ? .linkingObjects : PropertyType(kind.type)
        isArray = kind.collection == .list
        isSet = kind.collection == .set
        isMap = kind.collection == .dictionary
        isIndexed = !property.flags.isEmpty
        isOptional = kind.isOptional && kind.type != .mixed
        switch kind.type {
        case .link(let target), .embedded(let target): objectClassName = target
        default: objectClassName = nil
        }
    }

    private var parts: [AnyHashable] {
        [name, columnName, type, isArray, isSet, isMap, isIndexed, isOptional, objectClassName]
    }

    public static func == (lhs: Property, rhs: Property) -> Bool { lhs.parts == rhs.parts }
    public func hash(into hasher: inout Hasher) { hasher.combine(parts) }

    public var description: String {
        let lines = [
            "type = \(objectClassName ?? "\(type)")", "columnName = \(columnName)", "indexed = \(isIndexed)", "optional = \(isOptional)",
            "array = \(isArray)", "set = \(isSet)", "dictionary = \(isMap)",
        ]
        return "\(name) {\n\(lines.map { "\t\($0);" }.joined(separator: "\n"))\n}"
    }
}

extension PropertyType {
    fileprivate init(_ type: SluiceCore.PropertyType) {
        self =
            switch type {
            case .bool: .bool
            case .int: .int
            case .float: .float
            case .double: .double
            case .decimal: .decimal128
            case .string: .string
            case .binary: .data
            case .timestamp: .date
            case .objectId: .objectId
            case .uuid: .UUID
            case .mixed: .any
            case .link, .embedded: .object
            }
    }
}

/// A class of a Realm.
public final class ObjectSchema: Hashable, CustomStringConvertible, Sendable {
    private let model: ModelSchema

    init(_ model: ModelSchema) { self.model = model }

    /// All properties, computed ones last.
    public var properties: [Property] { model.properties.map { Property($0) } }
    public var className: String { model.name }
    public var objectClass: AnyClass { model.objectClass }
    public var isEmbedded: Bool { model.objectClass is EmbeddedObject.Type }
    public var isAsymmetric: Bool { model.objectClass is AsymmetricObject.Type }
    public var primaryKeyProperty: Property? { model.primaryKeySlot.map { Property(model.properties[$0]) } }

    /// The property with a name in the class; nil if there is none.
    public subscript(propertyName: String) -> Property? { model.slot(of: propertyName).map { Property(model.properties[$0]) } }

    public static func == (lhs: ObjectSchema, rhs: ObjectSchema) -> Bool {
        lhs.model === rhs.model || lhs.className == rhs.className && lhs.properties == rhs.properties
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(className) }

    public var description: String {
        let lines = properties.map { "\t\($0.description.replacing("\n", with: "\n\t"))" }
        return "\(className) {\n\(lines.joined(separator: "\n"))\n}"
    }
}

/// The classes of a Realm, sorted by name.
public final class Schema: Hashable, CustomStringConvertible, Sendable {
    public let objectSchema: [ObjectSchema]

    init(_ models: [ModelSchema]) { objectSchema = models.map { ObjectSchema($0) }.sorted { $0.className < $1.className } }

    /// The class with a name; nil if there is none. Cost: linear in the number of classes.
    public subscript(className: String) -> ObjectSchema? { objectSchema.first { $0.className == className } }

    public static func == (lhs: Schema, rhs: Schema) -> Bool { lhs.objectSchema == rhs.objectSchema }
    public func hash(into hasher: inout Hasher) { hasher.combine(objectSchema) }

    public var description: String {
        "Schema {\n\(objectSchema.map { "\t\($0.description.replacing("\n", with: "\n\t"))" }.joined(separator: "\n"))\n}"
    }
}

extension Realm {
    /// The classes of the Realm.
    public var schema: Schema { Schema(core.classes.schemas) }
}

/// Renders objects and collections for `description`. Objects more than 3 levels deep are cut, and collections after 100 elements.
/// A map shows all entries.
enum ObjectDescription {
    private static let depth = 3

    static func text(_ object: ObjectBase, depth: Int) -> String {
        let schema = object.model
        if object._row != nil, object.isGone { return "[invalidated object]" }
        if depth > ObjectDescription.depth { return "<Maximum depth exceeded>" }
        let indent = String(repeating: "\t", count: depth)
        let lines = schema.properties.prefix(schema.storedCount).indices.map { slot in
            "\(indent)\t\(schema.properties[slot].name) = \(text(of: schema.untyped(of: object, slot: slot), depth: depth + 1));"
        }
        return "\(schema.name) {\n\(lines.joined(separator: "\n"))\n\(indent)}"
    }

    static func text(of value: Any?, depth: Int = 0) -> String {
        guard let value, !isNil(value) else { return "(null)" }
        if let object = value as? ObjectBase { return text(object, depth: depth) }
        if let collection = value as? any DescribedCollection { return collection.text(depth: depth) }
        return "\(value)"
    }

    static func list(_ name: String, _ element: Any.Type, _ elements: [some Any], depth: Int) -> String {
        let indent = String(repeating: "\t", count: depth)
        let shown = elements.prefix(100).enumerated().map { "\(indent)\t[\($0)] \(text(of: $1, depth: depth + 1))" }
        let rest = elements.count > 100 ? ["\(indent)\t... \(elements.count - 100) objects skipped."] : []
        return "\(name)<\(element)> (\n\((shown + rest).joined(separator: ",\n"))\n\(indent))"
    }
}

/// A collection within a description. It passes the depth on, because objects may contain themselves through it.
protocol DescribedCollection {
    func text(depth: Int) -> String
}

extension List: DescribedCollection {
    func text(depth: Int) -> String { ObjectDescription.list("List", Element.self, Array(self), depth: depth) }
}

extension MutableSet: DescribedCollection {
    func text(depth: Int) -> String { ObjectDescription.list("MutableSet", Element.self, Array(self), depth: depth) }
}

extension Results: DescribedCollection {
    func text(depth: Int) -> String { ObjectDescription.list("Results", Element.self, Array(self), depth: depth) }
}

extension LinkingObjects: DescribedCollection {
    func text(depth: Int) -> String { ObjectDescription.list("LinkingObjects", Element.self, Array(self), depth: depth) }
}

extension Map: DescribedCollection {
    func text(depth: Int) -> String {
        let indent = String(repeating: "\t", count: depth)
        let lines = map { "\(indent)\t[\($0.key)]: \(ObjectDescription.text(of: $0.value, depth: depth + 1))" }
        return "Map<\(Key.self), \(Value.self)> (\n\(lines.joined(separator: ",\n"))\n\(indent))"
    }
}

extension ModelSchema {
    /// The other ends of the inverse links, by property name.
    var inverseDescriptors: [String: PropertyDescriptor] {
        let inverses = properties.compactMap { property in
            property.origin.flatMap { origin in
                property.kind.target.map { (property.name, PropertyDescriptor(objectClass: $0.className(), propertyName: origin)) }
            }
        }
        return Dictionary(inverses) { first, _ in first }
    }
}
