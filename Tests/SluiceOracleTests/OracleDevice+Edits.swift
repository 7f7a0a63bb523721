import SluiceCore
import SluiceMerge
import SluiceReplica
import TestSupport

/// Changes inside of values, as apps make them: of one element, member, key or field, so that what others change beside it stays.
extension OracleDevice {
    /// Does nothing where there is no object, or nothing to change.
    /// - Returns: the field that it has changed.
    func edit(_ transaction: WriteTransaction, _ index: Int, _ key: Value, _ random: inout SplitMix64) throws -> String? {
        let type = schema.types[index]
        let inner = type.properties.indices.filter { Self.isContainer(type.properties[$0]) }
        guard !inner.isEmpty, let row = try transaction.store.row(type: index, key: key) else { return nil }
        let slot = random.pick(inner)
        guard var value = row[slot], let edit = edit(&value, of: type.properties[slot], &random) else { return nil }
        OracleTests.trace("\(name) edits \(type.properties[slot].name) of \(type.name) \(key): \(edit.path) \(edit.changes)")
        try transaction.set(type: index, key: key, property: slot, value, by: edit)
        return type.properties[slot].name
    }

    private static func isContainer(_ property: Property) -> Bool {
        if case .embedded = property.type { true } else { property.collection != .none }
    }

    private func edit(_ value: inout Value, of property: Property, _ random: inout SplitMix64) -> ShownEdit? {
        switch (property.collection, value) {
        case (.list, .list(var elements)):
            defer { value = .list(elements) }
            return ShownEdit([change(&elements, property, &random)])
        case (.set, .list(let members)):
            let member = app.element(property, &random, isElement: true)
            let isNew = random.chance(60)
            value = Value.set(members.filter { $0 != member } + (isNew ? [member] : []))
            return ShownEdit([isNew ? .setInsert(member) : .setErase(member)])
        case (.dictionary, .dictionary(var pairs)):
            let (key, isRemoved) = (random.pick(["a", "é", "z"]), random.chance(30))
            pairs[key] = isRemoved ? nil : app.element(property, &random, isElement: true)
            value = .dictionary(pairs)
            return ShownEdit([pairs[key].map { .setKey(key, $0) } ?? .removeKey(key)])
        case (.none, .dictionary(var fields)):
            guard let field = OracleApp.place.properties.randomElement(using: &random) else { return nil }
            fields[field.name] = app.value(field, &random)
            value = .dictionary(fields)
            return ShownEdit(path: [.key(field.name)], [.set(fields[field.name] ?? .null)])
        default: return nil
        }
    }

    private func change(_ elements: inout [Value], _ property: Property, _ random: inout SplitMix64) -> ShownEdit.Change {
        let kind = elements.isEmpty ? 0 : random.below(10)
        let at = random.below(max(elements.count, 1))
        switch kind {
        case 0...3:
            let (place, element) = (random.below(elements.count + 1), app.element(property, &random, isElement: true))
            elements.insert(element, at: place)
            return .insert(element, at: place)
        case 4, 5:
            elements.remove(at: at)
            return .removeElement(at)
        case 6, 7:
            elements[at] = app.element(property, &random, isElement: true)
            return .setElement(at, elements[at])
        case 8:
            let to = random.below(elements.count)
            elements.insert(elements.remove(at: at), at: to)
            return .move(from: at, to: to)
        default:
            elements = []
            return .clear(.list)
        }
    }
}
