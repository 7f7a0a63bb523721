import SluiceCore
import SluiceValues

/// The values of a field that are of another type than the one proposed.
struct TypeException: Hashable {
    /// The path of the field, such as `address.city`.
    var path: String
    var kind: ValueKind
    var count: Int
    /// The key of a document with such a value.
    var example: String
}

/// The type that is proposed for a field.
struct InferredType {
    enum Shape: Hashable {
        case scalar(String)
        case embedded, list, dictionary, mixed
    }

    var shape: Shape
    /// The JSON schema.
    var schema: JSON
    var exceptions: [TypeException] = []
}

/// Decides on the types of fields from the counts of their values.
struct TypeInference {
    /// The number of fields from which an object may be a dictionary.
    private static let manyFields = 20

    /// The share of values that may be of another type than the field, 0 to 1. With more, the field is mixed.
    let tolerance: Double

    /// Returns the type; nil if the field has no value but null.
    ///
    /// - Parameters:
    ///   - path: The path of the field, for messages.
    ///   - title: The class of an embedded object.
    func type(of field: FieldCounter, path: String, title: String) -> InferredType? {
        let groups = Self.groups(field)
        let fit = groups.reduce(0) { $0 + $1.count }
        guard field.total > 0 else { return nil }
        let unfit = exceptions(field, path) { $0 == .unfit }
        guard let best = groups.max(by: { $0.count < $1.count }) else {
            return InferredType(shape: .mixed, schema: Self.mixed, exceptions: unfit)
        }
        let others = fit - best.count + (field.counts[.link] ?? 0)
        guard Double(others) <= tolerance * Double(field.total) else {
            return InferredType(shape: .mixed, schema: Self.mixed, exceptions: unfit)
        }
        var type = typed(best, field, path, title)
        if type.shape != .mixed {
            type.exceptions += exceptions(field, path) { $0 != .null && !best.kinds.contains($0) }
        } else {
            type.exceptions += unfit
        }
        return type
    }

    static let mixed: JSON = ["bsonType": "mixed"]

    // MARK: Kinds that fit one type

    private struct Group {
        var kinds: Set<ValueKind>
        var name: String
        var count = 0
    }

    /// Returns the types that the values have, numbers together, in a fixed order.
    private static func groups(_ field: FieldCounter) -> [Group] {
        let counts = field.counts
        let number = counts[.decimal] != nil ? "decimal" : counts[.double] != nil ? "double" : "long"
        let groups =
            [
                Group(kinds: [.long, .double, .decimal], name: number),
                Group(kinds: [.uuid, .binData], name: counts[.binData] == nil ? "uuid" : "binData"),
            ] + [ValueKind.bool, .string, .date, .objectId, .object, .array].map { Group(kinds: [$0], name: $0.rawValue) }
        return groups.map { group in
            var group = group
            group.count = group.kinds.reduce(0) { $0 + (counts[$1] ?? 0) }
            return group
        }.filter { $0.count > 0 }
    }

    private func exceptions(_ field: FieldCounter, _ path: String, where isException: (ValueKind) -> Bool) -> [TypeException] {
        ValueKind.allCases.compactMap { kind in
            guard isException(kind), let count = field.counts[kind] else { return nil }
            return TypeException(path: path, kind: kind, count: count, example: field.examples[kind] ?? "")
        }
    }

    // MARK: Collections

    private func typed(_ group: Group, _ field: FieldCounter, _ path: String, _ title: String) -> InferredType {
        switch group.name {
        case "array": return field.elements.map { list($0, path, title) } ?? InferredType(shape: .mixed, schema: Self.mixed)
        case "object": return field.object.map { object($0, path, title) } ?? InferredType(shape: .mixed, schema: Self.mixed)
        default: return InferredType(shape: .scalar(group.name), schema: ["bsonType": .string(group.name)])
        }
    }

    private func list(_ elements: FieldCounter, _ path: String, _ title: String) -> InferredType {
        let element = self.element(elements, path + "[]", title)
        return InferredType(shape: .list, schema: ["bsonType": "array", "items": element.schema], exceptions: element.exceptions)
    }

    /// Returns the type of the elements of a list, or of the values of a dictionary. Neither may be collections.
    private func element(_ values: FieldCounter, _ path: String, _ title: String) -> InferredType {
        guard let type = type(of: values, path: path, title: title) else { return InferredType(shape: .mixed, schema: Self.mixed) }
        let hasNull = (values.counts[.null] ?? 0) > 0
        switch type.shape {
        case .list, .dictionary: return InferredType(shape: .mixed, schema: Self.mixed)
        case .embedded where hasNull: return InferredType(shape: .mixed, schema: Self.mixed)
        case .scalar(let name) where hasNull:
            return InferredType(shape: type.shape, schema: ["bsonType": [.string(name), "null"]], exceptions: type.exceptions)
        case .scalar, .embedded, .mixed: return type
        }
    }

    private func object(_ object: ObjectCounter, _ path: String, _ title: String) -> InferredType {
        let isMany = object.others != nil
        let areNames = object.names.allSatisfy(Self.isName)
        let present = object.fields.values.reduce(0) { $0 + $1.counts.values.reduce(0, +) }
        let isSparse = object.names.count >= Self.manyFields && present * 2 < object.names.count * object.count
        if isMany || !areNames || isSparse {
            let value = element(object.values, path + ".*", title)
            if isMany || !areNames || value.shape != .mixed {
                return InferredType(
                    shape: .dictionary, schema: ["bsonType": "object", "additionalProperties": value.schema], exceptions: value.exceptions)
            }
        }
        guard title.utf8.count <= Limits.classNameBytes, let type = embedded(object, path, title) else {
            return InferredType(shape: .mixed, schema: Self.mixed)
        }
        return type
    }

    /// Returns an embedded class; nil if no field of it has a value.
    private func embedded(_ object: ObjectCounter, _ path: String, _ title: String) -> InferredType? {
        var (required, properties): ([JSON], [JSON.Member]) = ([], [])
        var exceptions: [TypeException] = []
        for name in object.names {
            guard let field = object.fields[name], let type = type(of: field, path: "\(path).\(name)", title: "\(title)_\(name)") else {
                continue
            }
            properties.append(.init(name, type.schema))
            exceptions += type.exceptions
            if case .scalar = type.shape, Self.isAlways(field, object.count) { required.append(.string(name)) }
        }
        guard !properties.isEmpty else { return nil }
        return InferredType(shape: .embedded, schema: Self.schema(title, required, properties), exceptions: exceptions)
    }

    // MARK: Parts

    /// Returns `true` if a field is present and not null in all of `count` objects.
    static func isAlways(_ field: FieldCounter, _ count: Int) -> Bool { field.counts[.null] == nil && field.total == count }

    /// Returns a schema in which the property at the end of a path is not required.
    ///
    /// - Parameter path: The names of properties, and `[]` for the elements of a list.
    static func optional(_ path: ArraySlice<String>, in schema: JSON) -> JSON {
        guard let first = path.first, let members = schema.members else { return schema }
        let rest = path.dropFirst()
        return .object(
            members.compactMap { member in
                switch member.key {
                case "items" where first == "[]": return .init(member.key, optional(rest, in: member.value))
                case "properties" where first != "[]":
                    let properties = (member.value.members ?? []).map { property in
                        property.key == first ? .init(property.key, optional(rest, in: property.value)) : property
                    }
                    return .init(member.key, .object(properties))
                case "required" where rest.isEmpty:
                    let names = (member.value.array ?? []).filter { $0.string != first }
                    return names.isEmpty ? nil : .init(member.key, .array(names))
                default: return member
                }
            })
    }

    static func schema(_ title: String, _ required: [JSON], _ properties: [JSON.Member]) -> JSON {
        var members: [JSON.Member] = [.init("title", .string(title)), .init("bsonType", "object")]
        if !required.isEmpty { members.append(.init("required", .array(required))) }
        return .object(members + [.init("properties", .object(properties))])
    }

    /// Returns `true` if a text can be the name of a property.
    static func isName(_ text: String) -> Bool {
        let isLetter = { (byte: UInt8) in byte == 95 || byte >= 128 || (97...122).contains(byte | 32) }
        guard let first = text.utf8.first, isLetter(first), text.utf8.count <= Limits.propertyNameBytes else { return false }
        return text.utf8.allSatisfy { isLetter($0) || (48...57).contains($0) }
    }
}
