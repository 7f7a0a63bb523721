import SluiceCore
import SluiceValues
import SluiceWire

/// Checks values against the schema as table readers will. An object with a misfitting value would disappear from every device.
struct SchemaFit {
    let schema: Schema

    /// Returns the reason why a property cannot have a value; nil if it can.
    func misfit(_ value: Value, _ property: Property, of type: ObjectType) -> String? {
        let reason: String?
        switch (property.collection, property.type) {
        // A null collection reads as an empty one.
        case (.list, _), (.set, _), (.dictionary, _): reason = value.isNull ? nil : misfit(value, property, depth: 0)
        case (.none, .mixed), (.none, .embedded): reason = misfit(value, property, depth: 0)
        // The merge checks the kinds of plain values on arrival.
        default: reason = value.isNull && property.isRequired ? Self.required : nil
        }
        return reason.map { "\(type.name).\(property.name)\($0)" }
    }

    private static let required = " would be null and is required"
    private static let tooDeep = " would be nested deeper than \(Limits.nestingDepth) levels"

    /// Returns the reason without the property's name; nil if the value fits.
    /// - Parameter depth: The levels of JSON around the value.
    private func misfit(_ value: Value, _ property: Property, depth: Int) -> String? {
        switch (property.collection, value) {
        case (.none, _): return single(value, property, isNullable: !property.isRequired, depth)
        case (.list, .list(let elements)), (.set, .list(let elements)):
            let isNullable = property.type == .mixed || property.isOptional && !property.isEmbedded
            return first(elements) { single($0, property, isNullable: isNullable, depth + 1) }
        case (.dictionary, .dictionary(let entries)):
            let isNullable = property.isOptional || property.hasNothing
            return first(entries.values) { single($0, property, isNullable: isNullable, depth + 1) }
        default: return other(value, property)
        }
    }

    private func first<T>(_ values: some Sequence<T>, _ misfit: (T) -> String?) -> String? {
        for value in values { if let reason = misfit(value) { return reason } }
        return nil
    }

    private func other(_ value: Value, _ property: Property) -> String {
        " would be \(value.typeName) and is \(property.typeText)"
    }

    /// Checks a value or one element of a collection.
    private func single(_ value: Value, _ property: Property, isNullable: Bool, _ depth: Int) -> String? {
        if value.isNull { return isNullable ? nil : Self.required }
        switch property.type {
        case .mixed: return value.jsonDepth > Limits.nestingDepth - depth ? Self.tooDeep : nil
        case .embedded(let name):
            guard case .dictionary(let fields) = value else { return other(value, property) }
            guard depth < Limits.nestingDepth else { return Self.tooDeep }
            return schema[name].flatMap { embedded(fields, $0, depth + 1) }
        case .link(let target):
            let key = schema[target].flatMap { type in type.primaryKey.map { type.properties[$0].type } }
            return scalar(value, key ?? property.type, property, depth)
        default: return scalar(value, property.type, property, depth)
        }
    }

    private func scalar(_ value: Value, _ type: PropertyType, _ property: Property, _ depth: Int) -> String? {
        guard ValueKinds(of: type).contains(value.kind) else { return other(value, property) }
        return value.jsonDepth > Limits.nestingDepth - depth ? Self.tooDeep : nil
    }

    private func embedded(_ fields: [String: Value], _ type: ObjectType, _ depth: Int) -> String? {
        for (name, value) in fields {
            guard let property = type[name] else { return ".\(name.prefix(60)) would exist, which \(type.name) lacks" }
            if let reason = misfit(value, property, depth: depth) { return ".\(name)\(reason)" }
        }
        return first(type.properties) {
            $0.isRequired && fields[$0.name] == nil ? ".\($0.name) would be missing and is required" : nil
        }
    }
}

extension Property {
    fileprivate var isEmbedded: Bool { if case .embedded = type { true } else { false } }
    /// `true` if its type has a null of its own.
    fileprivate var hasNothing: Bool {
        switch type {
        case .mixed, .link, .embedded: true
        default: false
        }
    }
}

extension Value {
    /// The nesting depth of its JSON (`ExtendedJSON`).
    var jsonDepth: Int {
        switch self {
        case .list(let elements): 1 + (elements.lazy.map(\.jsonDepth).max() ?? 0)
        case .dictionary(let entries): 1 + (entries.values.lazy.map(\.jsonDepth).max() ?? 0)
        case .link(_, let key): 1 + key.jsonDepth
        case .binary: 2
        case .timestamp(let time): (0...9_999).contains(time.year) ? 1 : 2
        case .decimal, .objectId, .uuid: 1
        case .double(let number): number.isFinite ? 0 : 1
        case .float(let number): number.isFinite ? 0 : 1
        case .null, .bool, .int, .string: 0
        }
    }
}
