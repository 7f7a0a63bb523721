import SluiceCore
import SluiceValues

/// The type of a place in an object: of a property, an element, a field, or anything inside a mixed value.
struct RealmPlace: Equatable {
    let type: PropertyType
    let collection: CollectionKind
    let allowsNull: Bool

    init(_ property: Property) {
        type = property.type
        collection = property.collection
        allowsNull = property.collection == .none && property.isRealmNullable
    }

    private init(_ type: PropertyType, allowsNull: Bool) {
        self.type = type
        self.allowsNull = allowsNull
        collection = .none
    }

    /// The place of an element, a member or a value of a collection.
    static func element(of property: Property) -> RealmPlace { RealmPlace(property.type, allowsNull: property.isRealmNullable) }

    /// Anywhere inside a mixed value.
    static let mixed = RealmPlace(.mixed, allowsNull: true)

    /// `true` if the place can be a list.
    var mayBeList: Bool { collection == .list || isMixed }
    var isMixed: Bool { collection == .none && type == .mixed }

    var embedded: String? {
        guard collection == .none, case .embedded(let name) = type else { return nil }
        return name
    }
}

/// The types of an app's objects, as instructions address them.
struct RealmTyping {
    let schema: Schema

    // MARK: Objects

    /// Returns the class of an object.
    /// - Throws: `unknownType` for a class that the app lacks or whose objects have no key. `wrongValueType` for a key of another type.
    func type(of object: ObjectKey) throws(SluiceError) -> ObjectType {
        guard let type = schema[object.type] else {
            let hint = Suggestion.question(for: object.type, in: schema.types.map(\.name))
            throw SluiceError(.unknownType, "The app has no class '\(object.type.excerpt)'.\(hint)")
        }
        guard type.kind != .embedded, let key = type.primaryKey else {
            throw SluiceError(.unknownType, "The objects of class '\(type.name)' are embedded and have no keys of their own.")
        }
        let property = type.properties[key]
        guard fits(object.key, property.type) || (object.key.isNull && property.isOptional) else {
            throw SluiceError(
                .wrongValueType, "The primary key of '\(type.name)' is \(property.typeText); the client has \(object.key.typeName).")
        }
        return type
    }

    /// Returns a property that may change.
    /// - Throws: `unknownProperty`, or `badChangeset` for the primary key.
    func property(_ name: String, of type: ObjectType) throws(SluiceError) -> Property {
        guard let index = type.index(of: name) else {
            let hint = Suggestion.question(for: name, in: type.properties.map(\.name))
            throw SluiceError(.unknownProperty, "\(type.name) has no property '\(name.excerpt)'.\(hint)")
        }
        guard index != type.primaryKey else {
            throw SluiceError(.badChangeset, "A change of \(type.name) writes the primary key '\(name)', which is fixed.")
        }
        return type.properties[index]
    }

    // MARK: Places

    /// Returns the place one step further.
    /// - Throws: `unknownProperty` for a field that an embedded class lacks. `badChangeset` for a step that the place does not have.
    func place(_ step: RealmStep, in place: RealmPlace, of property: Property) throws(SluiceError) -> RealmPlace {
        switch (step, place.collection, place.type) {
        case (.index, .list, _), (.key, .dictionary, _): return .element(of: property)
        case (_, .none, .mixed): return .mixed
        case (.key(let name), .none, .embedded(let target)):
            guard let type = schema[target] else { throw SluiceError(.unknownType, "The app has no class '\(target)'.") }
            return RealmPlace(try self.property(name, of: type))
        default:
            throw SluiceError(
                .badChangeset, "A change goes \(step.text) of '\(property.name)', which is \(property.typeText).")
        }
    }

    // MARK: Values

    /// Returns the value of a payload as rows have it: a link of a typed property is its target's key.
    /// - Throws: `wrongValueType` if it does not fit the place.
    func value(_ value: Value, at place: RealmPlace, of property: Property) throws(SluiceError) -> Value {
        if place.collection == .none {
            switch (place.type, value) {
            case (_, .null): if place.allowsNull { return .null }
            case (.link(let target), .link(let type, let key)):
                if type.hasSameBytes(as: target), isKey(key, of: target) { return key }
            case (.mixed, .link(let type, let key)): if isKey(key, of: type) { return value }
            default: if fits(value, place.type) { return value }
            }
        }
        throw SluiceError(
            .wrongValueType, "A change writes \(Self.text(value)) to '\(property.name)', which is \(property.typeText).")
    }

    private static func text(_ value: Value) -> String {
        if case .link(let type, _) = value { "a link to '\(type.excerpt)'" } else { "a value of type \(value.typeName)" }
    }

    private func isKey(_ key: Value, of name: String) -> Bool {
        guard let type = schema[name], let index = type.primaryKey else { return false }
        return fits(key, type.properties[index].type) || (key.isNull && type.properties[index].isOptional)
    }

    /// `true` for a scalar of the type. A mixed value may be any scalar.
    private func fits(_ value: Value, _ type: PropertyType) -> Bool {
        switch (type, value) {
        case (.bool, .bool), (.int, .int), (.float, .float), (.double, .double), (.decimal, .decimal), (.string, .string): true
        case (.binary, .binary), (.timestamp, .timestamp), (.objectId, .objectId), (.uuid, .uuid): true
        case (.mixed, .list), (.mixed, .dictionary), (.mixed, .link): false
        case (.mixed, _): true
        default: false
        }
    }
}

extension RealmStep {
    /// The step for error messages.
    fileprivate var text: String {
        switch self {
        case .index(let index): "to element \(index)"
        case .key(let key): "to key '\(key.excerpt)'"
        }
    }
}
