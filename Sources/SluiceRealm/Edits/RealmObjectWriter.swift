package import SluiceCore

/// Writes objects and their changes as instructions for a client that holds a known state.
///
/// Values are those of rows: a link of a typed property is its target's key. The errors of all functions are `internalError`, for a value
/// that does not fit the app's schema.
package struct RealmObjectWriter {
    let schema: Schema
    /// By the index of the class.
    private let plans: [RealmClassPlan]

    package init(_ schema: Schema) {
        self.schema = schema
        plans = schema.types.enumerated().map { RealmClassPlan($1, at: $0) }
    }

    /// Returns the instructions for an object that enters a client's view. They erase a copy that the client may hold, so that they can be
    /// repeated. Each mixed property has a container first (`prepareContainers`).
    package func enter(_ object: ObjectKey, _ values: [String: Value]) throws(SluiceError) -> [RealmInstruction] {
        let type = try type(of: object)
        var emitter = RealmEmitter(typing: RealmTyping(schema: schema), object: object)
        emitter.instructions = [.eraseObject(object), .createObject(object)]
        for (index, property) in type.properties.enumerated() where index != type.primaryKey {
            try emitter.enter(property, values[property.name])
        }
        return emitter.instructions
    }

    /// Returns the instruction for an object that is deleted or leaves a client's view. Links to it stay as they are.
    package func leave(_ object: ObjectKey) -> [RealmInstruction] { [.eraseObject(object)] }

    func type(of object: ObjectKey) throws(SluiceError) -> ObjectType { try plan(of: object).type }

    func plan(of object: ObjectKey) throws(SluiceError) -> RealmClassPlan {
        guard let index = schema.index(of: object.type) else { throw RealmEmitter.failure("the app has no class '\(object.type)'") }
        return plans[index]
    }
}

/// A place in an object, with its type.
struct RealmCursor {
    /// The property of the object.
    let field: String
    /// The property itself, or the field of the innermost embedded object on the way.
    var holder: Property
    var place: RealmPlace
    var steps: [RealmStep] = []

    init(_ property: Property) {
        field = property.name
        holder = property
        place = RealmPlace(property)
    }

    /// The place of an element or entry.
    func entered(_ step: RealmStep) -> RealmCursor {
        var inner = self
        inner.steps.append(step)
        inner.place = place.isMixed ? .mixed : .element(of: holder)
        return inner
    }

    /// The place of a field of an embedded object.
    func field(_ property: Property) -> RealmCursor {
        var inner = self
        inner.steps.append(.key(property.name))
        inner.holder = property
        inner.place = RealmPlace(property)
        return inner
    }
}

/// Writes the instructions of one object.
struct RealmEmitter {
    let typing: RealmTyping
    let object: ObjectKey
    var instructions: [RealmInstruction] = []

    init(typing: RealmTyping, object: ObjectKey) {
        self.typing = typing
        self.object = object
    }

    static func failure(_ sentence: String) -> SluiceError {
        SluiceError(.internalError, "An object cannot be written for a Realm client: \(sentence).")
    }

    private func unfit(_ value: Value, _ cursor: RealmCursor) -> SluiceError {
        Self.failure("'\(object.type).\(cursor.holder.name)' is \(cursor.holder.typeText), but holds \(value.typeName)")
    }

    func path(_ cursor: RealmCursor) -> RealmPath { RealmPath(object, cursor.field, cursor.steps) }

    // MARK: New values

    /// Writes the value of a property of a new object; nil for none.
    mutating func enter(_ property: Property, _ value: Value?) throws(SluiceError) {
        if property.isMixed {
            try fillMixed(RealmCursor(property), with: value ?? .null)
        } else if let value {
            try fill(RealmCursor(property), with: value)
        }
    }

    /// Writes a value to a place that the client has empty.
    mutating func fill(_ cursor: RealmCursor, with value: Value) throws(SluiceError) {
        switch (cursor.place.collection, value) {
        case (.none, .null): break
        case (.none, _): try set(cursor, to: value)
        default: try fillCollection(cursor, with: value)
        }
    }

    private mutating func fillCollection(_ cursor: RealmCursor, with value: Value) throws(SluiceError) {
        switch (cursor.place.collection, value) {
        case (.list, .list(let elements)):
            for (index, element) in elements.enumerated() { try insert(element, cursor, at: index, priorSize: index) }
        case (.set, .list(let members)):
            for member in members { instructions.append(.setInsert(path(cursor), .value(try scalar(member, cursor.entered(.index(0)))))) }
        case (.dictionary, .dictionary(let entries)):
            for (key, entry) in entries.inByteOrder { try set(cursor.entered(.key(key)), to: entry) }
        case (_, .null): break
        default: throw unfit(value, cursor)
        }
    }

    /// Writes a value to a property without collection, a field or a key.
    mutating func set(_ cursor: RealmCursor, to value: Value) throws(SluiceError) {
        guard cursor.place.collection == .none else { return try fillCollection(cursor, with: value) }
        instructions.append(.update(path(cursor), try payload(value, cursor)))
        try fillInside(cursor, with: value)
    }

    mutating func insert(_ value: Value, _ list: RealmCursor, at index: Int, priorSize: Int) throws(SluiceError) {
        let element = list.entered(.index(index))
        instructions.append(.arrayInsert(path(list), at: index, try payload(value, element), priorSize: priorSize))
        try fillInside(element, with: value)
    }

    /// Writes the content of a container that an instruction has just made.
    mutating func fillInside(_ cursor: RealmCursor, with value: Value) throws(SluiceError) {
        switch (cursor.place.type, value) {
        case (.embedded, .dictionary(let fields)):
            // Mixed fields come first, while the client has the embedded object as the last one of its class.
            let types = try fieldTypes(cursor)
            for field in types.filter(\.isMixed) + types.filter({ !$0.isMixed }) {
                guard let value = fields[field.name] else { continue }
                try fill(cursor.field(field), with: value)
            }
        case (.mixed, .list(let elements)):
            for (index, element) in elements.enumerated() { try insert(element, cursor, at: index, priorSize: index) }
        case (.mixed, .dictionary(let entries)):
            for (key, entry) in entries.inByteOrder { try set(cursor.entered(.key(key)), to: entry) }
        default: break
        }
    }

    func fieldTypes(_ cursor: RealmCursor) throws(SluiceError) -> [Property] {
        guard case .embedded(let name) = cursor.place.type, let type = typing.schema[name] else {
            throw Self.failure("the app has no embedded class for '\(cursor.holder.name)'")
        }
        return type.properties
    }

    // MARK: Payloads

    func payload(_ value: Value, _ cursor: RealmCursor) throws(SluiceError) -> RealmPayload {
        switch (cursor.place.type, value) {
        case (.embedded, .dictionary): .container(.object)
        case (.mixed, .list): .container(.list)
        case (.mixed, .dictionary): .container(.dictionary)
        default: .value(try scalar(value, cursor))
        }
    }

    private func scalar(_ value: Value, _ cursor: RealmCursor) throws(SluiceError) -> Value {
        switch (cursor.place.type, value) {
        case (_, .list), (_, .dictionary): throw unfit(value, cursor)
        case (_, .null), (.mixed, _): return value
        case (.link(let target), _): return .link(type: target, key: value)
        default: return value
        }
    }
}

extension Dictionary<String, Value> {
    /// The entries in the order of their keys' bytes.
    var inByteOrder: [(key: String, value: Value)] { sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) } }
}
