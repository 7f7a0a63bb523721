package import SluiceCore
package import SluiceRealm
import SluiceValues

/// A client's objects, changed by instructions as a client applies them. It is stricter than clients: it checks each size and index.
package struct RealmModel: Sendable {
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
        package init(_ description: String) { self.description = description }
    }

    package let schema: Schema
    package private(set) var objects: [ObjectKey: [String: Value]] = [:]
    private var blocks = RealmFileBlocks()

    package init(_ schema: Schema, _ objects: [ObjectKey: [String: Value]] = [:]) {
        self.schema = schema
        self.objects = objects
    }

    package mutating func apply(_ instructions: [RealmInstruction]) throws {
        for instruction in instructions { try apply(instruction) }
    }

    package mutating func apply(_ instruction: RealmInstruction) throws {
        let schema = schema
        switch instruction {
        case .createObject(let object):
            guard let type = schema[object.type] else { throw Fault("no class \(object.type)") }
            guard objects[object] == nil else { return }
            objects[object] = Self.empty(type)
            if type.hasMixedValue { try blocks.create(object) }
        case .eraseObject(let object):
            if objects.removeValue(forKey: object) != nil { try blocks.erase(object) }
        case .update(let path, .erased, _): try erase(path)
        case .update(let path, let payload, _):
            if isNewContainer(payload, path) { blocks.putContainer(path.object, path.field) }
            try change(path) { value, kind in value = try Self.value(payload, kind, old: value, schema) }
        case .addInteger(let path, let amount):
            try change(path) { value, _ in
                // An addition to null has no effect.
                if value == .null { return }
                guard case .int(let number) = value else { throw Fault("an addition to \(value)") }
                value = .int(number &+ amount)
            }
        case .clear(let path, let collection):
            try change(path) { value, kind in
                guard kind.collection == collection || kind.isMixed else { throw Fault("a clear of \(kind)") }
                value = collection == .dictionary ? .dictionary([:]) : .list([])
            }
        case .setInsert(let path, let payload):
            try changeList(path) { elements, kind in
                let member = try Self.value(payload, kind.element, old: .null, schema)
                guard case .list(let members) = Value.set(elements + [member]) else { return }
                elements = members
            }
        case .setErase(let path, let payload):
            try changeList(path) { elements, kind in
                let member = try Self.value(payload, kind.element, old: .null, schema)
                elements.removeAll { $0 == member }
            }
        default: try applyToList(instruction)
        }
    }

    private mutating func applyToList(_ instruction: RealmInstruction) throws {
        let schema = schema
        switch instruction {
        case .arrayInsert(let path, let index, let payload, let size):
            try changeList(path, size: size, atMost: size, index) { elements, kind in
                elements.insert(try Self.value(payload, kind.element, old: .null, schema), at: index)
            }
        case .arrayUpdate(let path, let index, let payload, let size):
            try changeList(path, size: size, atMost: size - 1, index) { elements, kind in
                elements[index] = try Self.value(payload, kind.element, old: elements[index], schema)
            }
        case .arrayErase(let path, let index, let size):
            try changeList(path, size: size, atMost: size - 1, index) { elements, _ in elements.remove(at: index) }
        case .arrayMove(let path, let from, let to, let size):
            guard to < size, to != from else { throw Fault("a move from \(from) to \(to) of \(size)") }
            try changeList(path, size: size, atMost: size - 1, from) { elements, _ in elements.insert(elements.remove(at: from), at: to) }
        default: throw Fault("a declaration: \(instruction)")
        }
    }

    /// Returns `true` if the payload is a list or dictionary for a mixed property that has no value of the kind.
    private func isNewContainer(_ payload: RealmPayload, _ path: RealmPath) -> Bool {
        guard path.steps.isEmpty, let property = schema[path.object.type]?[path.field], property.type == .mixed else { return false }
        switch (property.collection, payload, objects[path.object]?[path.field]) {
        case (.none, .container(.list), .list), (.none, .container(.dictionary), .dictionary): return false
        case (.none, .container, _): return true
        default: return false
        }
    }

    // MARK: Values

    /// The type of a place.
    struct Kind {
        var type: PropertyType
        var collection: CollectionKind
        var isMixed: Bool { collection == .none && type == .mixed }
        var element: Kind { Kind(type: type, collection: .none) }
    }

    package static func empty(_ type: ObjectType) -> [String: Value] {
        var values: [String: Value] = [:]
        for (index, property) in type.properties.enumerated() where index != type.primaryKey { values[property.name] = property.emptyValue }
        return values
    }

    private static func value(_ payload: RealmPayload, _ kind: Kind, old: Value, _ schema: Schema) throws -> Value {
        switch (payload, kind.type) {
        case (.value(.link(let type, let key)), .link(let target)):
            guard type == target else { throw Fault("a link to \(type)") }
            return key
        case (.value(let value), _): return value
        case (.container(.object), .embedded(let name)):
            guard let type = schema[name] else { throw Fault("no class \(name)") }
            if case .dictionary = old { return old }
            return .dictionary(empty(type))
        case (.container(.list), .mixed): if case .list = old { return old } else { return .list([]) }
        case (.container(.dictionary), .mixed): if case .dictionary = old { return old } else { return .dictionary([:]) }
        default: throw Fault("\(payload) for \(kind)")
        }
    }

    // MARK: Places

    private mutating func change(_ path: RealmPath, _ body: (inout Value, Kind) throws -> Void) throws {
        guard var values = objects[path.object] else { throw Fault("no object \(path.object)") }
        guard let property = schema[path.object.type]?[path.field] else { throw Fault("no property \(path.field)") }
        var value = values[path.field] ?? .null
        try descend(path.steps[...], &value, Kind(type: property.type, collection: property.collection), body)
        values[path.field] = value
        objects[path.object] = values
    }

    private func descend(
        _ steps: ArraySlice<RealmStep>, _ value: inout Value, _ kind: Kind, _ body: (inout Value, Kind) throws -> Void
    ) throws {
        guard let step = steps.first else { return try body(&value, kind) }
        switch (step, value) {
        case (.index(let index), .list(var elements)) where elements.indices.contains(index):
            try descend(steps.dropFirst(), &elements[index], kind.element, body)
            value = .list(elements)
        case (.key(let key), .dictionary(var entries)):
            var inner = kind.element
            if kind.collection == .none, case .embedded(let name) = kind.type {
                guard let field = schema[name]?[key] else { throw Fault("no field \(key)") }
                inner = Kind(type: field.type, collection: field.collection)
            }
            guard entries[key] != nil || steps.count == 1 else { throw Fault("no key \(key)") }
            var entry = entries[key] ?? .null
            try descend(steps.dropFirst(), &entry, inner, body)
            entries[key] = entry
            value = .dictionary(entries)
        default: throw Fault("no \(step) in \(value)")
        }
    }

    private mutating func erase(_ path: RealmPath) throws {
        guard case .key(let key)? = path.steps.last else { throw Fault("a removal without a key") }
        var outer = path
        outer.steps.removeLast()
        try change(outer) { value, _ in
            guard case .dictionary(var entries) = value, entries.removeValue(forKey: key) != nil else { throw Fault("no key \(key)") }
            value = .dictionary(entries)
        }
    }

    private mutating func changeList(
        _ path: RealmPath, size: Int? = nil, atMost: Int = .max, _ index: Int = 0, _ body: (inout [Value], Kind) throws -> Void
    ) throws {
        try change(path) { value, kind in
            guard case .list(var elements) = value else { throw Fault("\(value) is no list") }
            guard size.map({ $0 == elements.count }) ?? true else { throw Fault("a size of \(size ?? 0), not \(elements.count)") }
            guard (0...atMost).contains(index) else { throw Fault("an index of \(index)") }
            try body(&elements, kind)
            value = .list(elements)
        }
    }
}

extension ObjectType {
    /// `true` if a property of its own can have a list or dictionary without being one.
    fileprivate var hasMixedValue: Bool { properties.contains { $0.type == .mixed && $0.collection == .none } }
}
