package import SluiceCore

/// Finds the links in the values of an object: in properties, collections, mixed values and embedded objects.
package struct LinkWalk {
    private let schema: Schema

    package init(schema: Schema) { self.schema = schema }

    /// `true` if a property can hold a link.
    /// - Parameter target: The class to link to, or nil for any.
    package func canLink(_ property: Property, to target: String? = nil) -> Bool { canLink(property, to: target, within: []) }

    private func canLink(_ property: Property, to target: String?, within outer: Set<String>) -> Bool {
        switch property.type {
        case .mixed: return true
        case .link(let name): return target == nil || name == target
        case .embedded(let name):
            guard !outer.contains(name), let type = schema[name] else { return false }
            return type.properties.contains { canLink($0, to: target, within: outer.union([name])) }
        default: return false
        }
    }

    /// Calls the body with the class and key of each target. The third argument is the property's index for a link of the object itself,
    /// and nil for one of an embedded object.
    package func visit(_ values: [Value], of type: ObjectType, _ body: (String, Value, Int?) -> Void) {
        for (index, value) in values.enumerated() { visit(value, type, index, isOwn: true, body) }
    }

    /// Visits the links in one property's value.
    package func visit(_ value: Value, _ type: ObjectType, _ index: Int, _ body: (String, Value, Int?) -> Void) {
        visit(value, type, index, isOwn: true, body)
    }

    private func visit(_ value: Value, _ type: ObjectType, _ index: Int, isOwn: Bool, _ body: (String, Value, Int?) -> Void) {
        let property = type.properties[index]
        for element in elements(value, property.collection) where !element.isNull {
            switch (property.type, element) {
            case (.link(let target), _): body(target, element, isOwn ? index : nil)
            case (.mixed, _): visit(mixed: element, isOwn ? index : nil, body)
            case (.embedded(let name), .dictionary(let inner)):
                guard let embedded = schema[name] else { break }
                for (index, property) in embedded.properties.enumerated() {
                    visit(inner[property.name] ?? .null, embedded, index, isOwn: false, body)
                }
            default: break
            }
        }
    }

    private func visit(mixed value: Value, _ property: Int?, _ body: (String, Value, Int?) -> Void) {
        switch value {
        case .link(let target, let key): body(target, key, property)
        case .list(let members): for member in members { visit(mixed: member, property, body) }
        case .dictionary(let members): for member in members.values { visit(mixed: member, property, body) }
        default: break
        }
    }

    private func elements(_ value: Value, _ collection: CollectionKind) -> [Value] {
        switch (collection, value) {
        case (.none, _): [value]
        case (_, .list(let elements)): elements
        case (_, .dictionary(let pairs)): Array(pairs.values)
        default: []
        }
    }
}
