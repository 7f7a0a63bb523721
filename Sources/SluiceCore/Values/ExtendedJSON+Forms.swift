import SluiceValues

extension Value {
    /// Reads an object that is exactly one of the `{"$type": …}` forms. Returns nil for other JSON.
    init?(extended json: JSON) {
        guard let form = ExtendedForm(json) else { return nil }
        switch form {
        case .int(let value): self = .int(value)
        case .double(let value): self = .double(value)
        case .decimal(let value): self = .decimal(value)
        case .binary(let value): self = .binary(value)
        case .timestamp(let value): self = .timestamp(value)
        case .objectId(let value): self = .objectId(value)
        case .uuid(let value): self = .uuid(value)
        case .link(let type, let key): self = .link(type: type, key: ExtendedJSON.value(key))
        }
    }
}

/// Reads JSON as the value of one property.
struct PropertyReader {
    /// The class, for error messages; empty if unknown.
    var owner: String = ""
    var property: Property
    var schema: Schema?
    /// `true` for documents of MongoDB: keys of an embedded object that its class does not have are dropped, a collection that is null is
    /// empty, and BSON's deprecated types `undefined` and `symbol` are null and text.
    var isLenient = false

    func value(_ json: JSON) throws(SluiceError) -> Value {
        if isLenient, property.collection != .none, isNull(json) { return property.emptyValue }
        switch property.collection {
        case .none: return try scalar(json)
        case .list, .set:
            guard case .array(let elements) = json else { throw mismatch(json) }
            var values: [Value] = []
            for element in elements { values.append(try scalar(element)) }
            return property.collection == .set ? .set(values) : .list(values)
        case .dictionary:
            guard case .object(let members) = json else { throw mismatch(json) }
            var values: [String: Value] = [:]
            for member in members { values[member.key] = try scalar(member.value) }
            return .dictionary(values)
        }
    }

    /// Reads a value, or one element of a collection.
    private func scalar(_ json: JSON) throws(SluiceError) -> Value {
        if isNull(json) {
            guard isNullable else { throw mismatch(json) }
            return .null
        }
        switch property.type {
        case .mixed: return ExtendedJSON.value(json)
        case .link(let target):
            guard let keyType = schema?[target], let index = keyType.primaryKey else { return ExtendedJSON.value(json) }
            return try PropertyReader(owner: owner, property: keyType.properties[index].renamed(property.name), isLenient: isLenient)
                .value(json)
        case .embedded(let name):
            guard case .object = json else { throw mismatch(json) }
            guard let type = schema?[name] else { return ExtendedJSON.value(json) }
            return .dictionary(try ExtendedJSON.values(json, type: type, schema: schema, isLenient: isLenient))
        default:
            guard let value = plain(json) else { throw mismatch(json) }
            return value
        }
    }

    private func isNull(_ json: JSON) -> Bool {
        if case .null = json { return true }
        return isLenient && ExtendedForm.isUndefined(json)
    }

    private var isNullable: Bool {
        switch property.type {
        case .mixed: true
        case .link, .embedded: property.collection == .none || property.collection == .dictionary
        default: property.isOptional
        }
    }

    private func plain(_ json: JSON) -> Value? {
        let form = Value(extended: json)
        switch property.type {
        case .bool: return json.bool.map { .bool($0) }
        case .int: return PropertyReader.integer(form ?? ExtendedJSON.value(json)).map { .int($0) }
        case .float: return PropertyReader.double(form ?? ExtendedJSON.value(json)).flatMap(PropertyReader.float)
        case .double: return PropertyReader.double(form ?? ExtendedJSON.value(json)).map { .double($0) }
        case .decimal: return PropertyReader.decimal(form ?? ExtendedJSON.value(json)).map { .decimal($0) }
        case .string: return (json.string ?? (isLenient ? json["$symbol"]?.string : nil)).map { .string($0) }
        case .binary: return (form ?? json.string.flatMap(Base64.decode).map { .binary($0) }).flatMap(PropertyReader.bytes)
        case .timestamp:
            if case .timestamp? = form { return form }
            return ExtendedForm.date(json).map { .timestamp($0) }
        case .objectId:
            if case .objectId? = form { return form }
            return json.string.flatMap { ObjectIdentifierBytes(hex: $0) }.map { .objectId($0) }
        case .uuid:
            if case .uuid? = form { return form }
            return json.string.flatMap { UUIDBytes($0) }.map { .uuid($0) }
        case .mixed, .link, .embedded: return nil
        }
    }

    private static func integer(_ value: Value) -> Int64? {
        switch value {
        case .int(let value): value
        case .double(let value): Int64(exactly: value)
        default: nil
        }
    }

    private static func double(_ value: Value) -> Double? {
        switch value {
        case .int(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }

    /// Returns nil for a finite number beyond a float's range.
    private static func float(_ value: Double) -> Value? {
        let narrow = Float(value)
        return narrow.isFinite || !value.isFinite ? .float(narrow) : nil
    }

    private static func decimal(_ value: Value) -> Decimal128? {
        switch value {
        case .int(let value): Decimal128(value)
        case .double(let value): Decimal128(double: value)
        case .decimal(let value): value
        case .string(let text): Decimal128(text)
        default: nil
        }
    }

    private static func bytes(_ value: Value) -> Value? {
        switch value {
        case .binary: value
        case .uuid(let value): .binary(value.bytes)
        default: nil
        }
    }

    private func mismatch(_ json: JSON) -> SluiceError {
        let name = owner.isEmpty ? property.name : "\(owner).\(property.name)"
        return SluiceError(.wrongValueType, "\(name): expected \(property.typeText), found \(ExtendedJSON.excerpt(json)).")
    }
}

extension Property {
    fileprivate func renamed(_ name: String) -> Property {
        var copy = self
        copy.name = name
        return copy
    }
}
