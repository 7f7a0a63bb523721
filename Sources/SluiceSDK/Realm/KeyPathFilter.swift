import SluiceCore

/// The properties that an observer selects with key paths: `["name", "dogs.age"]`, or Swift key paths.
///
/// Each component is a property name of the model class; `*` matches all properties.
/// If the last component is a link or a collection, its own changes count, not those of the linked objects.
struct KeyPathFilter {
    struct Step {
        let schema: ModelSchema
        let slot: Int

        var property: ModelSchema.Property { schema.properties[slot] }
    }

    /// The paths, never empty. The first step of each is a property of the observed class.
    let paths: [[Step]]

    /// The slots of the observed class's properties at the start of the paths.
    var slots: Set<Int> { Set(paths.map { $0[0].slot }) }

    /// Parses key paths. Traps if a path does not exist.
    init(_ keyPaths: [String], of schema: ModelSchema) {
        paths = keyPaths.flatMap { KeyPathFilter.paths($0.split(separator: ".", omittingEmptySubsequences: false)[...], schema, $0) }
    }

    /// Parses optional key paths; nil if there is no filter.
    static func of(_ keyPaths: [String]?, _ schema: ModelSchema) -> KeyPathFilter? { keyPaths.map { KeyPathFilter($0, of: schema) } }

    private static func paths(_ parts: ArraySlice<Substring>, _ schema: ModelSchema, _ whole: String) -> [[Step]] {
        guard let part = parts.first else { return [] }
        let slots: [Int]
        if part == "*" {
            slots = Array(schema.properties.indices)
        } else if let slot = schema.slot(of: String(part)) {
            slots = [slot]
        } else {
            throwRealmException("Invalid property name: property '\(part)' not found in object of type '\(schema.name)'")
        }
        let rest = parts.dropFirst()
        return slots.flatMap { slot -> [[Step]] in
            let step = Step(schema: schema, slot: slot)
            if rest.isEmpty { return [[step]] }
            guard let target = step.property.kind.target else {
                // A star continues through links only; other properties end the path.
                if part == "*" { return [[step]] }
                throwRealmException("Invalid key path '\(whole)': property '\(schema.name).\(part)' is not a link.")
            }
            return paths(rest, ModelSchema.of(target), whole).map { [step] + $0 }
        }
    }
}

extension ModelSchema {
    /// The text of a Swift key path: `\Person.dogs[0].name` becomes `dogs.name`. Traps if it reads no `@Persisted` property.
    func text(of keyPath: AnyKeyPath) -> String {
        let slots = trace(keyPath)
        var schema = self
        var names: [String] = []
        for slot in slots {
            let property = schema.properties[Int(slot)]
            names.append(property.name)
            if let target = property.kind.target { schema = ModelSchema.of(target) }
        }
        if names.isEmpty { throwRealmException("The key path \(keyPath) leads to no @Persisted property.") }
        return names.joined(separator: ".")
    }

    /// The key path texts of the slots that a trace has read, one for each path from the object to a value.
    /// A computed property that reads several properties has several.
    func texts(of slots: [Int32]) -> [String] {
        var texts: [String] = []
        var (schema, names): (ModelSchema, [String]) = (self, [])
        for slot in slots {
            let property = schema.properties[Int(slot)]
            names.append(property.name)
            if let target = property.kind.target {
                schema = ModelSchema.of(target)
            } else {
                texts.append(names.joined(separator: "."))
                (schema, names) = (self, [])
            }
        }
        if !names.isEmpty { texts.append(names.joined(separator: ".")) }
        return texts
    }
}

/// The key path text of a Swift key path over persisted properties. Traps if it reads none.
public func _name<T: ObjectBase>(for keyPath: PartialKeyPath<T>) -> String { ModelSchema.of(T.self).text(of: keyPath) }
