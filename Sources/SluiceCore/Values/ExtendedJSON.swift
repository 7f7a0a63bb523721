package import SluiceValues

/// Values as MongoDB Extended JSON (v2, relaxed), the form of App Services' endpoints, exports and rules.
package enum ExtendedJSON {
    /// Returns the relaxed form. Integers and finite doubles are numbers, and dates of the years 0 to 9999 are text. Any other type that
    /// JSON lacks is an object with one `$` key. A link in a mixed value is `{"$ref": type, "$id": key}`.
    ///
    /// The form parses to the same value, with two exceptions. A float needs its property's type to remain a float. Dates outside the years
    /// 0 to 9999 are cut to milliseconds.
    package static func json(_ value: Value) -> JSON {
        switch value {
        case .null: .null
        case .bool(let value): .bool(value)
        case .int(let value): .int(value)
        case .float(let value): ExtendedForm.json(ExtendedForm.shortest(value))
        case .double(let value): ExtendedForm.json(value)
        case .decimal(let value): ExtendedForm.decimal(value).json
        case .string(let value): .string(value)
        case .binary(let value): ExtendedForm.binary(value).json
        case .timestamp(let value): ExtendedForm.timestamp(value).json
        case .objectId(let value): ExtendedForm.objectId(value).json
        case .uuid(let value): ExtendedForm.uuid(value).json
        case .list(let elements): .array(elements.map(json))
        case .dictionary(let pairs): json(pairs)
        case .link(let type, let key): ExtendedForm.link(type: type, key: json(key)).json
        }
    }

    /// Returns an object with its members ordered by the bytes of their keys, so that equal values have equal texts.
    package static func json(_ values: [String: Value]) -> JSON {
        .object(
            values.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
                .map { JSON.Member($0.key, json($0.value)) })
    }
}

extension ExtendedJSON {
    /// Reads a value of a property's type. Besides the extended forms it accepts plain ones. An integer is accepted for a double, and text
    /// for a string, UUID, ObjectId or decimal. A date may be ISO 8601 text or milliseconds, and binary base64.
    ///
    /// - Parameter schema: The source of the types of link keys and embedded objects. Without it those are read like mixed values.
    /// - Throws: `wrongValueType` with the property, the expected type and the value.
    package static func value(_ json: JSON, property: Property, schema: Schema? = nil) throws(SluiceError) -> Value {
        try PropertyReader(property: property, schema: schema).value(json)
    }

    /// Reads an object's values by property name. The result omits properties that the object omits.
    /// - Throws: `wrongValueType` for a value that does not fit, no object, or a missing required property. Throws `unknownProperty` for a
    ///   key that the class does not have.
    package static func values(_ json: JSON, type: ObjectType, schema: Schema? = nil) throws(SluiceError) -> [String: Value] {
        try values(json, type: type, schema: schema, isLenient: false)
    }

    /// - Parameter isLenient: `true` to drop keys that the class does not have. See `PropertyReader.isLenient`.
    static func values(_ json: JSON, type: ObjectType, schema: Schema?, isLenient: Bool) throws(SluiceError) -> [String: Value] {
        guard case .object(let members) = json else {
            throw SluiceError(.wrongValueType, "\(type.name): expected an object, found \(excerpt(json)).")
        }
        var values: [String: Value] = [:]
        for member in members {
            guard let property = type[member.key] else {
                if isLenient { continue }
                let hint = Suggestion.question(for: member.key, in: type.properties.map(\.name))
                throw SluiceError(.unknownProperty, "\(type.name) has no property '\(member.key)'.\(hint)")
            }
            values[property.name] = try PropertyReader(owner: type.name, property: property, schema: schema, isLenient: isLenient)
                .value(member.value)
        }
        for property in type.properties where property.isRequired && values[property.name] == nil {
            throw SluiceError(.wrongValueType, "\(type.name).\(property.name) is required and missing; expected \(property.typeText).")
        }
        return values
    }

    /// Reads an object as a row in index order. A property that the object omits is nil.
    /// - Throws: The errors of `values(_:type:schema:)`.
    package static func row(_ json: JSON, type: ObjectType, schema: Schema? = nil) throws(SluiceError) -> Row {
        let values = try values(json, type: type, schema: schema)
        return Row(type.properties.map { values[$0.name] })
    }

    /// Reads a value by its own form, as a mixed property does. An object with unknown `$` keys becomes a dictionary; the last of equal
    /// keys counts.
    package static func value(_ json: JSON) -> Value {
        switch json {
        case .null: .null
        case .bool(let value): .bool(value)
        case .int(let value): .int(value)
        case .double(let value): .double(value)
        case .string(let value): .string(value)
        case .array(let elements): .list(elements.map { value($0) })
        case .object(let members):
            Value(extended: json)
                ?? .dictionary(Dictionary(members.map { ($0.key, value($0.value)) }, uniquingKeysWith: { _, last in last }))
        }
    }

    /// The JSON for an error message, cut to 58 characters if it has more than 60.
    static func excerpt(_ json: JSON) -> String {
        let text = json.text
        return text.count > 60 ? text.prefix(57) + "…" : text
    }
}

extension Property {
    /// `true` if every object has a value: not optional, not a collection, and not of a type that is nullable by itself.
    package var isRequired: Bool {
        guard !isOptional, collection == .none else { return false }
        switch type {
        case .mixed, .link, .embedded: return false
        default: return true
        }
    }

    /// The type for error messages: `list of string`, `int or null`, `link to Store`.
    package var typeText: String {
        let base =
            switch type {
            case .link(let target): "link to \(target)"
            case .embedded(let name): "embedded \(name)"
            default: type.name
            }
        switch collection {
        case .none: return isOptional ? "\(base) or null" : base
        case .list: return "list of \(base)"
        case .set: return "set of \(base)"
        case .dictionary: return "dictionary of \(base)"
        }
    }
}
