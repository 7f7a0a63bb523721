package import SluiceCore

extension PBObjectSchema {
    package init(_ type: ObjectType) {
        self.init()
        name = type.name
        kind =
            switch type.kind {
            case .topLevel: .topLevel
            case .embedded: .embedded
            case .asymmetric: .asymmetric
            }
        if let key = type.primaryKey { primaryKey = type.properties[key].name }
        properties = type.properties.map { PBPropertySchema($0) }
    }
}

extension PBPropertySchema {
    package init(_ property: Property) {
        self.init()
        id = property.id
        name = property.name
        `optional` = property.isOptional
        collection =
            switch property.collection {
            case .none: .none
            case .list: .list
            case .set: .setOf
            case .dictionary: .dictionary
            }
        switch property.type {
        case .bool: kind = .bool
        case .int: kind = .int
        case .float: kind = .float
        case .double: kind = .double
        case .decimal: kind = .decimal
        case .string: kind = .string
        case .binary: kind = .binary
        case .timestamp: kind = .timestamp
        case .objectId: kind = .objectID
        case .uuid: kind = .uuid
        case .mixed: kind = .mixed
        case .link(let to):
            kind = .link
            target = to
        case .embedded(let name):
            kind = .embeddedObject
            target = name
        }
    }
}

extension Property {
    /// - Throws: `invalidSchemaChange` for a kind unknown to this version.
    package init(_ message: PBPropertySchema) throws(SluiceError) {
        let collection: CollectionKind
        switch message.collection {
        case .none: collection = .none
        case .list: collection = .list
        case .setOf: collection = .set
        case .dictionary: collection = .dictionary
        case .UNRECOGNIZED(let raw): throw Property.unknown("collection", raw, message)
        }
        self.init(
            id: message.id, name: message.name, type: try Property.type(of: message), collection: collection,
            isOptional: message.optional)
    }

    private static func type(of message: PBPropertySchema) throws(SluiceError) -> PropertyType {
        switch message.kind {
        case .bool: .bool
        case .int: .int
        case .float: .float
        case .double: .double
        case .decimal: .decimal
        case .string: .string
        case .binary: .binary
        case .timestamp: .timestamp
        case .objectID: .objectId
        case .uuid: .uuid
        case .mixed: .mixed
        case .link: .link(to: message.target)
        case .embeddedObject: .embedded(message.target)
        case .unspecified, .UNRECOGNIZED: throw unknown("kind", message.kind.rawValue, message)
        }
    }

    private static func unknown(_ what: String, _ raw: Int, _ message: PBPropertySchema) -> SluiceError {
        SluiceError(.invalidSchemaChange, "The property \(message.name) has the unknown \(what) \(raw).")
    }
}

extension ObjectType {
    /// The highest number that a property may have. `ObjectType` keeps a table by number, so a peer must not choose its size.
    package static let highestPropertyNumber: UInt32 = 65_535

    /// - Throws: `invalidSchemaChange` for unknown kinds, repeated names, or numbers out of range.
    package init(_ message: PBObjectSchema) throws(SluiceError) {
        let kind: ObjectKind
        switch message.kind {
        case .topLevel: kind = .topLevel
        case .embedded: kind = .embedded
        case .asymmetric: kind = .asymmetric
        case .UNRECOGNIZED(let raw):
            throw SluiceError(.invalidSchemaChange, "The type \(message.name) has the unknown kind \(raw).")
        }
        let properties = try message.properties.map { property throws(SluiceError) in try Property(property) }
        if let property = properties.first(where: { $0.id > ObjectType.highestPropertyNumber }) {
            throw SluiceError(.invalidSchemaChange, "\(message.name).\(property.name) has the number \(property.id), out of range.")
        }
        guard Set(properties.map(\.name)).count == properties.count else {
            throw SluiceError(.invalidSchemaChange, "The type \(message.name) names a property twice.")
        }
        self.init(
            name: message.name, kind: kind, properties: properties,
            primaryKey: message.primaryKey.isEmpty ? nil : message.primaryKey)
    }
}

extension Schema {
    /// - Throws: `invalidSchemaChange` for an invalid or repeated class.
    package init(messages: [PBObjectSchema]) throws(SluiceError) {
        let types = try messages.map { message throws(SluiceError) in try ObjectType(message) }
        guard Set(types.map(\.name)).count == types.count else {
            throw SluiceError(.invalidSchemaChange, "The schema names a type twice.")
        }
        self.init(types)
    }

    package var messages: [PBObjectSchema] { types.map { PBObjectSchema($0) } }
}
