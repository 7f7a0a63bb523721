package import SluiceCore
import SwiftProtobuf

extension PBChangeset {
    /// - Throws: `unknownType` or `unknownProperty` if the schema lacks a name of the changeset.
    package init(_ changeset: Changeset, schema: Schema) throws(SluiceError) {
        self.init()
        number = changeset.number
        time = changeset.time.rawValue
        baseLsn = changeset.base.rawValue
        changes.reserveCapacity(changeset.changes.count)
        for change in changeset.changes { changes.append(try PBObjectChange(change, schema: schema)) }
    }
}

extension PBObjectChange {
    /// - Throws: `unknownType` or `unknownProperty` if the schema lacks a name of the change.
    package init(_ change: ObjectChange, schema: Schema) throws(SluiceError) {
        self.init()
        let objectType = try schema.type(named: change.object.type)
        type = objectType.name
        primaryKey = PBValue(change.object.key)
        kind =
            switch change.kind {
            case .create: .create
            case .set: .set
            case .delete: .remove
            }
        if !change.values.isEmpty { values = try PBRow(change.values, type: objectType) }
        for name in change.defaults { defaults.append(try objectType.number(of: name)) }
        defaults.sort()
        for (name, amount) in change.counters {
            let number = try objectType.number(of: name)
            counters.append(
                PBCounterChange.with {
                    $0.property = number
                    $0.amount = amount
                })
        }
        counters.sort { $0.property < $1.property }
        for edit in change.edits { edits.append(try PBEdit(edit, type: objectType)) }
        for (name, hash) in change.seen {
            let number = try objectType.number(of: name)
            seen.append(
                PBSeenValue.with {
                    $0.property = number
                    $0.hash = hash.rawValue
                })
        }
        seen.sort { $0.property < $1.property }
    }
}

extension Changeset {
    /// Decodes a changeset and checks it against the schema.
    /// - Throws: `badChangeset` if it contradicts itself; `unknownType`, `unknownProperty` or `wrongValueType` if it contradicts the
    ///   schema; `badSyntax` for malformed values.
    package init(_ message: PBChangeset, schema: Schema) throws(SluiceError) {
        let changes = try message.changes.map { change throws(SluiceError) in try ObjectChange(change, schema: schema) }
        self.init(
            number: message.number, time: HybridTime(rawValue: message.time), base: LSN(rawValue: message.baseLsn),
            changes: changes)
    }
}

extension ObjectChange {
    /// - Throws: the errors of the changeset's initialiser.
    package init(_ message: PBObjectChange, schema: Schema) throws(SluiceError) {
        let type = try schema.type(named: message.type)
        guard let keyIndex = type.primaryKey else {
            throw SluiceError(.badChangeset, "\(type.name) is an embedded type: its objects have no key of their own.")
        }
        let kind: Kind
        switch message.kind {
        case .create: kind = .create
        case .set: kind = .set
        case .remove: kind = .delete
        case .unspecified, .UNRECOGNIZED:
            throw SluiceError(.badChangeset, "A change of \(type.name) has the unknown kind \(message.kind.rawValue).")
        }
        let keyProperty = type.properties[keyIndex]
        let key = try keyProperty.checked(try Value(message.primaryKey), type: type)
        guard !key.isNull || keyProperty.isOptional else {
            throw SluiceError(.badChangeset, "A change of \(type.name) has no primary key.")
        }
        self.init(object: ObjectKey(type: type.name, key: key), kind: kind)
        for field in message.values.fields {
            let property = try type.property(number: field.property)
            values[property.name] = try property.written(try Value(field.value), type: type, in: schema)
        }
        for number in message.defaults { defaults.insert(try type.property(number: number).name) }
        for counter in message.counters {
            let property = try type.property(number: counter.property)
            guard property.type == .int, property.collection == .none else {
                throw SluiceError(.badChangeset, "\(type.name).\(property.name) is not an integer that can be counted.")
            }
            counters[property.name, default: 0] &+= counter.amount
        }
        for edit in message.edits { edits.append(try Edit(edit, type: type, schema: schema)) }
        for value in message.seen { seen[try type.property(number: value.property).name] = ValueHash(rawValue: value.hash) }
    }
}

extension Schema {
    /// Returns the class with this name. - Throws: `unknownType`.
    package func type(named name: String) throws(SluiceError) -> ObjectType {
        guard let type = self[name] else { throw SluiceError(.unknownType, "The class \(name) does not exist.") }
        return type
    }
}
