import SluiceCore

/// The properties that an observer asks for with key paths: `["name", "dogs.age"]`, or Swift key paths.
///
/// A part is the name that the class has for a property; `*` stands for all of them. The last part may be a link or a
/// collection: then its own changes count, not those of the objects that it leads to.
struct KeyPathFilter {
    struct Step {
        let schema: ModelSchema
        let slot: Int

        var property: ModelSchema.Property { schema.properties[slot] }
    }

    /// Never empty; the first step of each is of the class that is observed.
    let paths: [[Step]]

    /// The properties of the class itself that are named, first or alone.
    var slots: Set<Int> { Set(paths.map { $0[0].slot }) }

    /// A path that leads nowhere is misuse, which ends the program.
    init(_ keyPaths: [String], of schema: ModelSchema) {
        paths = keyPaths.flatMap { KeyPathFilter.paths($0.split(separator: ".", omittingEmptySubsequences: false)[...], schema, $0) }
    }

    /// Nil for nil: no filter.
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
                // A star goes on through links only.
                if part == "*" { return [[step]] }
                throwRealmException("Invalid key path '\(whole)': property '\(schema.name).\(part)' is not a link.")
            }
            return paths(rest, ModelSchema.of(target), whole).map { [step] + $0 }
        }
    }
}

extension ModelSchema {
    /// A Swift key path as a text: `\Person.dogs[0].name` is `dogs.name`.
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

    /// Slots that reading has passed through, as texts: one for each way from the object to a value. A property that the class
    /// computes from several has several.
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

/// A Swift key path over persisted properties as key path text.
public func _name<T: ObjectBase>(for keyPath: PartialKeyPath<T>) -> String { ModelSchema.of(T.self).text(of: keyPath) }
