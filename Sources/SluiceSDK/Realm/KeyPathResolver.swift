import SluiceCore

/// Reads the values that a key path reaches from an object, combined into one comparable value.
struct KeyPathResolver {
    let core: RealmCore
    /// Receives the objects that are read on the way.
    var visit: ((FollowedElements.Visit) -> Void)?

    /// The value at the end of a path. O(objects on the way).
    func value(_ object: ObjectBase, _ path: ArraySlice<KeyPathFilter.Step>) -> Value {
        guard let step = path.first, let row = object._row else { return .null }
        if step.property.kind.isComputed { return behind(inverses(row.key, step), path) }
        return behind(row.current(step.slot) ?? .null, path)
    }

    /// The value behind the first property of a path.
    /// - Parameter value: The value of that property.
    private func behind(_ value: Value, _ path: ArraySlice<KeyPathFilter.Step>) -> Value {
        guard let step = path.first, let target = step.property.kind.target else { return value }
        let rest = path.dropFirst()
        switch value {
        case .null: return .null
        case .list(let elements):
            let seen = elements.map { one($0, target, rest) }
            // Lists do not show links to objects that are absent from the device.
            return .list(target is Object.Type ? seen.filter { $0 != .null } : seen)
        case .dictionary(let entries) where step.property.kind.collection == .dictionary:
            return .dictionary(entries.mapValues { one($0, target, rest) })
        default: return one(value, target, rest)
        }
    }

    /// The value behind one link or embedded object.
    /// - Parameters:
    ///   - value: The key of a link, or the fields of an embedded object.
    ///   - path: The rest of the path. If it is empty, the link itself counts; a link to an absent object reads as nil.
    private func one(_ value: Value, _ target: ObjectBase.Type, _ path: ArraySlice<KeyPathFilter.Step>) -> Value {
        if target is EmbeddedObject.Type {
            guard let step = path.first else { return value }
            guard case .dictionary(let fields) = value else { return .null }
            return behind(fields[step.property.column] ?? step.property.absent, path)
        }
        if value == .null { return .null }
        let type = core.classes.type(of: target)
        visit?(.init(type: type, key: value))
        guard let step = path.first else { return core.reading.contains(type, value) ? value : .null }
        guard let row = core.reading.row(type, value) else { return .null }
        // The key is part of the value: a link to another object with equal values is a change.
        if step.property.kind.isComputed { return .list([value, behind(inverses(value, step), path)]) }
        return .list([value, behind(row[step.slot] ?? .null, path)])
    }

    private func inverses(_ key: Value, _ step: KeyPathFilter.Step) -> Value {
        guard let target = step.property.kind.target, let origin = step.property.origin else { return .null }
        let keys = core.reading.origins(of: key, type: target, property: origin)
        if let visit, let (type, slot) = KeyPathResolver.origin(of: step, core) {
            // The target is visited by its inverse property, since a new link to it changes only the other object.
            visit(.init(type: type, key: key, inverse: slot))
            for origin in keys { visit(.init(type: type, key: origin)) }
        }
        return .list(keys)
    }

    /// The class and the slot of the property that an inverse link follows; nil for any other property.
    static func origin(of step: KeyPathFilter.Step, _ core: RealmCore) -> (type: Int, slot: Int)? {
        guard step.property.kind.isComputed, let target = step.property.kind.target, let origin = step.property.origin,
            let slot = ModelSchema.of(target).slot(of: origin)
        else { return nil }
        return (core.classes.type(of: target), slot)
    }
}
