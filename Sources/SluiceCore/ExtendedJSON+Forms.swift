import SluiceValues

/// The `{"$type": …}` forms of Extended JSON.
enum ExtendedForm {
    /// Returns the value of an object that is exactly one of the forms, or nil.
    static func value(_ json: JSON) -> Value? {
        guard case .object(let members) = json, let first = members.first else { return nil }
        if members.count == 2 { return link(json) ?? oldBinary(json) }
        guard members.count == 1 else { return nil }
        switch first.key {
        case "$oid": return first.value.string.flatMap { ObjectIdentifierBytes(hex: $0) }.map { .objectId($0) }
        case "$uuid": return first.value.string.flatMap { UUIDBytes($0) }.map { .uuid($0) }
        case "$date": return date(first.value).map { .timestamp($0) }
        case "$numberInt": return first.value.string.flatMap { Int32($0) }.map { .int(Int64($0)) }
        case "$numberLong": return first.value.string.flatMap { Int64($0) }.map { .int($0) }
        case "$numberDouble": return first.value.string.flatMap(double).map { .double($0) }
        case "$numberDecimal": return first.value.string.flatMap { Decimal128($0) }.map { .decimal($0) }
        case "$binary": return binary(first.value)
        default: return nil
        }
    }

    /// Reads a date from ISO 8601 text, milliseconds, or milliseconds as `$numberLong`.
    static func date(_ json: JSON) -> Timestamp? {
        switch json {
        case .string(let text): Timestamp(iso8601: text)
        case .int(let milliseconds): Timestamp(milliseconds: milliseconds)
        case .object: value(json).flatMap { if case .int(let milliseconds) = $0 { Timestamp(milliseconds: milliseconds) } else { nil } }
        default: nil
        }
    }

    private static func double(_ text: String) -> Double? {
        switch text {
        case "NaN": .nan
        case "Infinity": .infinity
        case "-Infinity": -.infinity
        default: Double(text).flatMap { $0.isFinite ? $0 : nil }
        }
    }

    /// Reads the members of `$binary`. Subtype 04 with 16 bytes is a UUID.
    private static func binary(_ json: JSON) -> Value? {
        guard case .object(let members) = json, members.count == 2, let text = json["base64"]?.string,
            let subtype = json["subType"]?.string, let bytes = Base64.decode(text)
        else { return nil }
        if subtype == "04" || subtype == "4", bytes.count == 16 { return .uuid(UUIDBytes(bytes: bytes)) }
        return .binary(bytes)
    }

    /// Reads the form of Extended JSON v1, which exports still contain: `{"$binary": "…", "$type": "00"}`.
    private static func oldBinary(_ json: JSON) -> Value? {
        guard let text = json["$binary"]?.string, let subtype = json["$type"]?.string else { return nil }
        return binary(["base64": .string(text), "subType": .string(subtype)])
    }

    private static func link(_ json: JSON) -> Value? {
        guard let type = json["$ref"]?.string, let key = json["$id"] else { return nil }
        return .link(type: type, key: ExtendedJSON.value(key))
    }
}

/// Reads JSON as the value of one property.
struct PropertyReader {
    /// The class, for error messages; empty if unknown.
    var owner: String = ""
    var property: Property
    var schema: Schema?

    func value(_ json: JSON) throws(SluiceError) -> Value {
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
        if case .null = json {
            guard isNullable else { throw mismatch(json) }
            return .null
        }
        switch property.type {
        case .mixed: return ExtendedJSON.value(json)
        case .link(let target):
            guard let keyType = schema?[target], let index = keyType.primaryKey else { return ExtendedJSON.value(json) }
            return try PropertyReader(owner: owner, property: keyType.properties[index].renamed(property.name)).value(json)
        case .embedded(let name):
            guard case .object = json else { throw mismatch(json) }
            guard let type = schema?[name] else { return ExtendedJSON.value(json) }
            return .dictionary(try ExtendedJSON.values(json, type: type, schema: schema))
        default:
            guard let value = plain(json) else { throw mismatch(json) }
            return value
        }
    }

    private var isNullable: Bool {
        switch property.type {
        case .mixed: true
        case .link, .embedded: property.collection == .none || property.collection == .dictionary
        default: property.isOptional
        }
    }

    private func plain(_ json: JSON) -> Value? {
        let form = ExtendedForm.value(json)
        switch property.type {
        case .bool: return json.bool.map { .bool($0) }
        case .int: return PropertyReader.integer(form ?? ExtendedJSON.value(json)).map { .int($0) }
        case .float: return PropertyReader.double(form ?? ExtendedJSON.value(json)).flatMap(PropertyReader.float)
        case .double: return PropertyReader.double(form ?? ExtendedJSON.value(json)).map { .double($0) }
        case .decimal: return PropertyReader.decimal(form ?? ExtendedJSON.value(json)).map { .decimal($0) }
        case .string: return json.string.map { .string($0) }
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
