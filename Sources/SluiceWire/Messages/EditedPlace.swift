import SluiceCore

/// The place that an edit's path leads to, as the schema declares it.
struct EditedPlace {
    /// `nil` if the place is untyped (inside a `mixed`) and accepts anything.
    private var property: Property?
    /// `true` if the place is an element of a collection. An element is null only if elements may be.
    private var isElement = false

    /// Follows a path from a property.
    /// - Throws: `badChangeset` if a step does not fit, `unknownProperty` for an unknown field of an embedded object.
    init(_ property: Property, _ path: [EditStep], in schema: Schema) throws(SluiceError) {
        self.property = property
        for step in path { try enter(step, schema) }
    }

    private mutating func enter(_ step: EditStep, _ schema: Schema) throws(SluiceError) {
        guard let here = property else { return }
        isElement = here.collection != .none
        switch (here.collection, step, here.type) {
        case (.list, .element, _), (.dictionary, .key, _):
            property = Property(id: here.id, name: here.name, type: here.type, collection: .none, isOptional: here.isOptional)
            if here.type == .mixed { property = nil }
        case (.none, .key(let name), .embedded(let type)):
            guard let field = schema[type]?[name] else {
                throw SluiceError(.unknownProperty, "\(type) has no property \(name).")
            }
            property = field
        case (.none, _, .mixed): property = nil
        default: throw SluiceError(.badChangeset, "A change enters \(here.name) as another type.")
        }
    }

    func check(_ action: Edit.Action, type: ObjectType, in schema: Schema) throws(SluiceError) {
        guard let property else { return }
        switch action {
        case .set(let value, _):
            _ = try property.written(value, type: type, in: schema)
            if isElement { try property.checkElement(value, type: type, in: schema) }
        case .insert(let value, _, _), .setInsert(let value):
            try checkElement(value, of: property, type)
            try property.checkElement(value, type: type, in: schema)
        case .add where property.type != .int && property.type != .mixed || property.collection != .none:
            throw SluiceError(.badChangeset, "\(type.name).\(property.name) is not an integer that can be counted.")
        case .remove where !isElement && property.isRequired:
            throw SluiceError(.badChangeset, "\(property.name) inside of \(type.name) is required and cannot be removed.")
        case .add, .become, .remove, .clear, .move, .setErase: break
        }
    }

    private func checkElement(_ value: Value, of property: Property, _ type: ObjectType) throws(SluiceError) {
        guard property.collection != .none, ValueKinds(of: property.type).contains(value.kind) || property.type == .mixed else {
            if property.type == .mixed { return }
            throw SluiceError(.wrongValueType, "\(type.name).\(property.name) does not take this \(value.typeName).")
        }
    }
}
