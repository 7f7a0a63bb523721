import SluiceCore

@testable import SluiceRealm

/// The values of one object with the history that conflicts need.
///
/// One life of an object: a deletion ends it with its history, since "erase wins" voids everything that was written to it. In the
/// gateway's store, a register is a property's value in its row with its `PropertyClock`. A list is a row's list with its `ListClock`. A
/// deletion is the `Deletion` of `ObjectClocks`. `RealmEditTranslator` gives the edits for them. The versions here are positions in the
/// change log there, and stamps are those of `WriteStamp` with the file as the client.
struct RealmIntegratedObject: Hashable, Sendable {
    enum Field: Hashable, Sendable {
        case value(RealmRegister)
        case list(RealmListHistory)
        case keyed(RealmKeyedValues)
    }

    /// The result of one instruction.
    enum Outcome: Hashable {
        /// Recipients apply the instruction.
        case accepted(RealmInstruction)
        /// A concurrent write wins. Recipients need nothing.
        case dropped
        /// All holders need the property's content.
        case conflict(String)
        /// The place is inside an element, an embedded object or a mixed value, or has another kind.
        case unsupported
    }

    /// By the property's name. A property that was never written is missing.
    private(set) var fields: [String: Field] = [:]

    init() {}

    /// The values of the properties that were written. Sets are sorted.
    var values: [String: Value] {
        fields.compactMapValues { field in
            switch field {
            case .value(let register): register.value
            case .list(let list): .list(list.values)
            case .keyed(let keyed): keyed.value
            }
        }
    }

    /// Returns `true` if the history of the property reaches back to the file's base.
    func admits(_ file: UInt64, base: UInt64, to property: String) -> Bool {
        switch fields[property] {
        case .value(let register)?: register.forgotten.admits(file, base: base)
        case .list(let list)?: list.forgotten.admits(file, base: base)
        case .keyed?, nil: true
        }
    }

    mutating func prune(seenByAll horizon: UInt64, _ bounds: RealmIntegrationBounds) {
        for name in fields.keys { mutate(name) { $0.prune(seenByAll: horizon, bounds) } }
    }

    /// Takes the field out while it changes, so that its storage is not copied.
    private mutating func mutate<Result>(_ name: String, _ body: (inout Field) -> Result) -> Result? {
        guard var field = fields.removeValue(forKey: name) else { return nil }
        defer { fields[name] = field }
        return body(&field)
    }

    /// Records a Clear of the property's list in a file's stream.
    mutating func sentClear(of property: String, to file: UInt64, version: UInt64, stamp: RealmStamp) {
        _ = mutate(property) { field in
            guard case .list(var list) = field else { return }
            list.sentClear(to: file, version: version, stamp: stamp)
            field = .list(list)
        }
    }

    // MARK: Instructions

    mutating func apply(_ instruction: RealmInstruction, by writer: RealmWriter) -> Outcome {
        switch instruction {
        case .update(let path, let payload, let isDefault): update(path, payload, isDefault, instruction, writer)
        case .addInteger(let path, let amount): add(amount, path, instruction, writer)
        case .setInsert(let path, .value(let member)): setMember(path, member, .bool(true), instruction, writer)
        case .setErase(let path, .value(let member)): setMember(path, member, nil, instruction, writer)
        case .clear(let path, let kind): clear(path, kind, instruction, writer)
        case .arrayInsert(let path, let index, .value(let value), _):
            edit(path, instruction, writer) { $0.insert(value, at: index, by: writer) }
        case .arrayUpdate(let path, let index, .value(let value), _):
            edit(path, instruction, writer) { $0.set(value, at: index, by: writer) }
        case .arrayErase(let path, let index, _): edit(path, instruction, writer) { $0.remove(at: index, by: writer) }
        case .arrayMove(let path, let from, let to, _): edit(path, instruction, writer) { $0.move(from: from, to: to, by: writer) }
        default: .unsupported
        }
    }

    private mutating func update(
        _ path: RealmPath, _ payload: RealmPayload, _ isDefault: Bool, _ instruction: RealmInstruction, _ writer: RealmWriter
    ) -> Outcome {
        switch (path.steps.count, path.steps.first, payload) {
        case (0, nil, .value(let value)):
            guard case .value(var register) = fields[path.field] ?? .value(RealmRegister()) else { return .unsupported }
            let (sent, isAccepted) = register.set(value, isDefault: isDefault, by: writer)
            fields[path.field] = .value(register)
            return isAccepted ? .accepted(.update(path, .value(sent ?? value), isDefault: isDefault)) : .dropped
        case (1, .key(let key)?, .value(let value)): return set(.key(key), value, .dictionary, path, instruction, writer)
        case (1, .key(let key)?, .erased): return set(.key(key), nil, .dictionary, path, instruction, writer)
        default: return .unsupported
        }
    }

    private mutating func add(
        _ amount: Int64, _ path: RealmPath, _ instruction: RealmInstruction, _ writer: RealmWriter
    ) -> Outcome {
        guard path.steps.isEmpty, case .value(var register) = fields[path.field] ?? .value(RealmRegister()) else { return .unsupported }
        let isAccepted = register.add(amount, by: writer)
        fields[path.field] = .value(register)
        return isAccepted ? .accepted(instruction) : .dropped
    }

    private mutating func setMember(
        _ path: RealmPath, _ member: Value, _ value: Value?, _ instruction: RealmInstruction, _ writer: RealmWriter
    ) -> Outcome {
        path.steps.isEmpty ? set(.member(member), value, .set, path, instruction, writer) : .unsupported
    }

    private mutating func set(
        _ slot: RealmKeyedValues.Slot, _ value: Value?, _ kind: CollectionKind, _ path: RealmPath, _ instruction: RealmInstruction,
        _ writer: RealmWriter
    ) -> Outcome {
        guard case .keyed(var keyed) = fields[path.field] ?? .keyed(RealmKeyedValues(kind)), keyed.kind == kind else { return .unsupported }
        let isAccepted = keyed.set(slot, value, by: writer)
        fields[path.field] = .keyed(keyed)
        return isAccepted ? .accepted(instruction) : .dropped
    }

    private mutating func clear(
        _ path: RealmPath, _ kind: CollectionKind, _ instruction: RealmInstruction, _ writer: RealmWriter
    ) -> Outcome {
        if kind == .list {
            return edit(path, instruction, writer) { list in
                list.clear(by: writer)
                return true
            }
        }
        guard path.steps.isEmpty, kind != .none, case .keyed(var keyed) = fields[path.field] ?? .keyed(RealmKeyedValues(kind)),
            keyed.kind == kind
        else { return .unsupported }
        let isConflict = keyed.clear(by: writer)
        fields[path.field] = .keyed(keyed)
        return isConflict ? .conflict(path.field) : .accepted(instruction)
    }

    /// - Parameter body: Returns `true` if recipients may apply the instruction, unless there are concurrent edits.
    private mutating func edit(
        _ path: RealmPath, _ instruction: RealmInstruction, _ writer: RealmWriter, _ body: (inout RealmListHistory) -> Bool
    ) -> Outcome {
        guard path.steps.isEmpty, case .list = fields[path.field] ?? .list(RealmListHistory()) else { return .unsupported }
        guard case .list(var list)? = fields.removeValue(forKey: path.field) ?? .list(RealmListHistory()) else { return .unsupported }
        let isRead = body(&list)
        // The writer and the server disagree on the list if an index is not there. The whole list brings both together again.
        let isConflict = list.hasConflict(writer) || !isRead
        list.note(writer, isConflict: isConflict)
        fields[path.field] = .list(list)
        return isConflict ? .conflict(path.field) : .accepted(instruction)
    }

    // MARK: Content

    /// Returns the instructions for a file that receives the object anew, whatever it holds. Its pending changes of the object are void.
    func entering(_ object: ObjectKey) -> [RealmInstruction] {
        [.eraseObject(object), .createObject(object)] + fields.keys.sorted().flatMap { content(of: $0, object) }
    }

    /// Returns the instructions that replace a collection as a whole.
    func repair(_ property: String, _ object: ObjectKey) -> [RealmInstruction] {
        let kind: CollectionKind
        switch fields[property] {
        case .keyed(let keyed)?: kind = keyed.kind
        default: kind = .list
        }
        return [.clear(RealmPath(object, property), kind)] + content(of: property, object)
    }

    /// Returns the instructions that fill an empty property.
    private func content(of property: String, _ object: ObjectKey) -> [RealmInstruction] {
        let path = RealmPath(object, property)
        switch fields[property] {
        case .value(let register)?: return register.value.map { [.update(path, .value($0))] } ?? []
        case .list(let list)?:
            return list.values.enumerated().map { .arrayInsert(path, at: $0.offset, .value($0.element), priorSize: $0.offset) }
        case .keyed(let keyed)?: return keyed.content(path)
        case nil: return []
        }
    }
}

extension RealmIntegratedObject.Field {
    fileprivate mutating func prune(seenByAll horizon: UInt64, _ bounds: RealmIntegrationBounds) {
        switch self {
        case .value(var register):
            register.prune(seenByAll: horizon, bounds)
            self = .value(register)
        case .list(var list):
            list.prune(seenByAll: horizon, bounds)
            self = .list(list)
        case .keyed(var keyed):
            keyed.prune(seenByAll: horizon, bounds)
            self = .keyed(keyed)
        }
    }
}

extension RealmKeyedValues {
    fileprivate var value: Value {
        var keys: [String: Value] = [:]
        var members: [Value] = []
        for (slot, register) in entries {
            guard let value = register.value else { continue }
            switch slot {
            case .key(let key): keys[key] = value
            case .member(let member): members.append(member)
            }
        }
        return kind == .dictionary ? .dictionary(keys) : .set(members)
    }

    fileprivate func content(_ path: RealmPath) -> [RealmInstruction] {
        switch value {
        case .dictionary(let entries):
            entries.inByteOrder.map { .update(RealmPath(path.object, path.field, [.key($0.key)]), .value($0.value)) }
        case .list(let members): members.map { .setInsert(path, .value($0)) }
        default: []
        }
    }
}
