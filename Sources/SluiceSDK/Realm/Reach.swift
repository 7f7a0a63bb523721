import SluiceCore

/// What a path of properties leads to from an object, put together so that it can be compared.
struct Reach {
    let core: RealmCore

    /// O(objects on the way).
    func what(_ object: ObjectBase, _ path: ArraySlice<KeyPathFilter.Step>) -> Value {
        guard let step = path.first, let row = object._row else { return .null }
        if step.property.kind.isComputed { return behind(inverses(row.key, step), path) }
        return behind(row.current(step.slot) ?? .null, path)
    }

    /// - Parameter value: of the property that the path begins with.
    private func behind(_ value: Value, _ path: ArraySlice<KeyPathFilter.Step>) -> Value {
        let rest = path.dropFirst()
        guard let step = path.first, !rest.isEmpty, let target = step.property.kind.target else { return value }
        switch value {
        case .null: return .null
        case .list(let elements): return .list(elements.map { one($0, target, rest) })
        case .dictionary(let entries) where step.property.kind.collection == .dictionary:
            return .dictionary(entries.mapValues { one($0, target, rest) })
        default: return one(value, target, rest)
        }
    }

    /// - Parameter value: a link's key, or the fields of an embedded object.
    private func one(_ value: Value, _ target: ObjectBase.Type, _ path: ArraySlice<KeyPathFilter.Step>) -> Value {
        guard let step = path.first else { return .null }
        if target is EmbeddedObject.Type {
            guard case .dictionary(let fields) = value else { return .null }
            return behind(fields[step.property.column] ?? step.property.absent, path)
        }
        if step.property.kind.isComputed { return .list([value, behind(inverses(value, step), path)]) }
        guard let row = core.row(core.type(of: target), value) else { return .null }
        return .list([value, behind(row[step.slot] ?? .null, path)])
    }

    private func inverses(_ key: Value, _ step: KeyPathFilter.Step) -> Value {
        guard let target = step.property.kind.target, let origin = step.property.origin else { return .null }
        return .list(core.origins(of: key, type: target, property: origin))
    }
}
