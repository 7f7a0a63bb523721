import SluiceCore

@testable import SluiceRealm

// Changes as an app writes them: the tests translate them back and apply them. The gateway sends whole values.
extension RealmObjectWriter {
    /// Returns the instructions that change an object which the client holds. Equal states give none.
    /// - Parameters:
    ///   - before: The client's values. A property without a value is empty (`Property.emptyValue`).
    ///   - after: The new values. A property without a value is not changed.
    ///   - counters: The amounts that were added to integers. An amount that explains the whole change is sent as an addition.
    func update(
        _ object: ObjectKey, from before: [String: Value], to after: [String: Value], counters: [String: Int64] = [:]
    ) throws(SluiceError) -> [RealmInstruction] {
        let type = try type(of: object)
        var emitter = RealmEmitter(typing: RealmTyping(schema: schema), object: object)
        for (index, property) in type.properties.enumerated() where index != type.primaryKey {
            guard let new = after[property.name] else { continue }
            let old = before[property.name] ?? property.emptyValue
            if old == new { continue }
            if let amount = counters[property.name], case (.int(let from), .int(let to)) = (old, new), from &+ amount == to {
                emitter.instructions.append(.addInteger(RealmPath(object, property.name), amount))
            } else {
                try emitter.change(RealmCursor(property), from: old, to: new)
            }
        }
        return emitter.instructions
    }

    /// Returns the instructions that replace a list as a whole, whatever the client's copy holds.
    func repair(_ object: ObjectKey, _ name: String, _ value: Value) throws(SluiceError) -> [RealmInstruction] {
        guard let property = try type(of: object)[name], property.collection == .list else {
            throw RealmEmitter.failure("'\(object.type).\(name)' is no list")
        }
        var emitter = RealmEmitter(typing: RealmTyping(schema: schema), object: object)
        emitter.instructions = [.clear(RealmPath(object, name), .list)]
        try emitter.fill(RealmCursor(property), with: value)
        return emitter.instructions
    }
}
