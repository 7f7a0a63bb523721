/// A value that JSON lacks, as MongoDB Extended JSON (v2) writes it: an object with a `$` key. The forms of v1 are read, too.
package enum ExtendedForm: Hashable, Sendable {
    case int(Int64)
    case double(Double)
    case decimal(Decimal128)
    case binary([UInt8])
    case timestamp(Timestamp)
    case objectId(ObjectIdentifierBytes)
    case uuid(UUIDBytes)
    /// A link inside a mixed value: the class and the key of its target.
    case link(type: String, key: JSON)
}

// MARK: Reading

extension ExtendedForm {
    /// Reads an object that is exactly one of the forms. Returns nil for other JSON.
    package init?(_ json: JSON) {
        guard case .object(let members) = json, let first = members.first else { return nil }
        let form: ExtendedForm? =
            switch members.count {
            case 1: ExtendedForm.form(first.key, first.value)
            case 2: ExtendedForm.reference(json) ?? ExtendedForm.oldBytes(json)
            case 3: json["$db"]?.string == nil ? nil : ExtendedForm.reference(json)
            default: nil
            }
        guard let form else { return nil }
        self = form
    }

    private static func form(_ key: String, _ content: JSON) -> ExtendedForm? {
        switch key {
        case "$oid": content.string.flatMap { ObjectIdentifierBytes(hex: $0) }.map { .objectId($0) }
        case "$uuid": content.string.flatMap { UUIDBytes($0) }.map { .uuid($0) }
        case "$date": date(content).map { .timestamp($0) }
        case "$numberInt": content.string.flatMap { Int32($0) }.map { .int(Int64($0)) }
        case "$numberLong": (content.string.flatMap { Int64($0) } ?? content.int).map { .int($0) }
        case "$numberDouble": content.string.flatMap(number).map { .double($0) }
        case "$numberDecimal": content.string.flatMap { Decimal128($0) }.map { .decimal($0) }
        case "$binary": bytes(content)
        default: nil
        }
    }

    /// Reads the content of `$date`: ISO 8601 text, milliseconds, or milliseconds as `$numberLong`.
    package static func date(_ json: JSON) -> Timestamp? {
        switch json {
        case .string(let text): Timestamp(iso8601: text)
        case .int(let milliseconds): Timestamp(milliseconds: milliseconds)
        case .object: if case .int(let milliseconds)? = ExtendedForm(json) { Timestamp(milliseconds: milliseconds) } else { nil }
        default: nil
        }
    }

    private static func number(_ text: String) -> Double? {
        switch text {
        case "NaN": .nan
        case "Infinity": .infinity
        case "-Infinity": -.infinity
        default: Double(text).flatMap { $0.isFinite ? $0 : nil }
        }
    }

    /// Reads the members of `$binary`. Subtype 04 with 16 bytes is a UUID.
    private static func bytes(_ json: JSON) -> ExtendedForm? {
        guard case .object(let members) = json, members.count == 2, let text = json["base64"]?.string,
            let subtype = json["subType"]?.string, let bytes = Base64.decode(text)
        else { return nil }
        if subtype == "04" || subtype == "4", bytes.count == 16 { return .uuid(UUIDBytes(bytes: bytes)) }
        return .binary(bytes)
    }

    /// Reads the form of Extended JSON v1, which exports still contain: `{"$binary": "…", "$type": "00"}`.
    private static func oldBytes(_ json: JSON) -> ExtendedForm? {
        guard let text = json["$binary"]?.string, let subtype = json["$type"]?.string ?? json["$type"]?.int.map(String.init) else {
            return nil
        }
        return bytes(["base64": .string(text), "subType": .string(subtype)])
    }

    private static func reference(_ json: JSON) -> ExtendedForm? {
        guard let type = json["$ref"]?.string, let key = json["$id"] else { return nil }
        return .link(type: type, key: key)
    }
}

// MARK: Types without a counterpart

extension ExtendedForm {
    /// The keys of the forms of BSON types that no property can hold, with the type's name.
    private static let foreignKeys: [String: String] = [
        "$regularExpression": "a regular expression", "$regex": "a regular expression", "$timestamp": "an internal timestamp",
        "$code": "code", "$symbol": "a symbol", "$dbPointer": "a DBPointer", "$minKey": "MinKey", "$maxKey": "MaxKey",
    ]

    /// Returns the name of the BSON type without a counterpart that an object's key belongs to; nil for any other key.
    package static func foreignType(ofKey key: String) -> String? { key.utf8.first == UInt8(ascii: "$") ? foreignKeys[key] : nil }

    /// `true` for the form of BSON's deprecated type `undefined`, which counts as null.
    package static func isUndefined(_ json: JSON) -> Bool { json["$undefined"]?.bool == true && json.members?.count == 1 }
}

// MARK: Printing

extension ExtendedForm {
    /// The relaxed form: finite numbers are JSON's, and dates of the years 0 to 9999 are text.
    package var json: JSON {
        switch self {
        case .int(let value): .int(value)
        case .double(let value): ExtendedForm.json(value)
        case .decimal(let value): ["$numberDecimal": .string(value.description)]
        case .binary(let value): ExtendedForm.json(base64: Base64.encode(value))
        case .timestamp(let value): ["$date": ExtendedForm.dateText(value)]
        case .objectId(let value): ["$oid": .string(value.description)]
        case .uuid(let value): ["$uuid": .string(value.description)]
        case .link(let type, let key): ["$ref": .string(type), "$id": key]
        }
    }

    /// Returns a finite double as a number, and any other as `$numberDouble`.
    package static func json(_ value: Double) -> JSON {
        value.isFinite ? .double(value) : ["$numberDouble": .string(value.isNaN ? "NaN" : value < 0 ? "-Infinity" : "Infinity")]
    }

    /// Returns the `$binary` of bytes in Base64.
    package static func json(base64: String) -> JSON { ["$binary": ["base64": .string(base64), "subType": "00"]] }

    /// Returns the double that prints as the float does: 0.1, not 0.10000000149011612.
    package static func shortest(_ value: Float) -> Double {
        guard let short = Double("\(value)"), Float(short) == value else { return Double(value) }
        return short
    }

    private static func dateText(_ value: Timestamp) -> JSON {
        if (0...9_999).contains(value.year) { return .string(value.iso8601) }
        return ["$numberLong": .string(String(value.milliseconds))]
    }
}
