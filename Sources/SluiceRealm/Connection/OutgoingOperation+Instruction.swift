package import SluiceCore

// The operations of codec instructions.
extension OutgoingOperation {
    /// The operation of one instruction.
    /// - Throws: `internalError` for a key that is no primary key, or a number that is no index of a list.
    package init(_ instruction: RealmInstruction) throws(SluiceError) {
        switch instruction {
        case .addTable(let table): self = .addTable(table.name)
        case .eraseTable(let name): self = .eraseTable(name)
        case .addColumn(let column): self = .addColumn(table: column.table, name: column.name)
        case .eraseColumn(let table, let name): self = .eraseColumn(table: table, name: name)
        case .createObject(let object): self = .create(try Object(object))
        case .eraseObject(let object): self = .erase(try Object(object))
        case .update(let path, let payload, _): self = try Self.write(path, Shape(payload))
        // A client adds to the place that the path names, as an update writes it.
        case .addInteger(let path, _): self = try Self.write(path, .value)
        case .arrayUpdate(let path, let index, _, _): self = .set(try Path(path), index: try Self.number(index))
        case .arrayInsert(let path, let index, _, let size):
            self = .insert(try Path(path), index: try Self.number(index), size: try Self.number(size))
        case .arrayMove(let path, let from, let to, let size):
            self = .move(try Path(path), from: try Self.number(from), to: try Self.number(to), size: try Self.number(size))
        case .arrayErase(let path, let index, let size):
            self = .remove(try Path(path), index: try Self.number(index), size: try Self.number(size))
        case .clear(let path, _): self = .clear(try Path(path))
        // A set keeps its place, and the client needs none of its members for the change.
        case .setInsert(let path, _), .setErase(let path, _): self = .update(try Path(path), .list)
        }
    }

    /// Returns the operations of a changeset, in order.
    /// - Throws: `badChangeset` with the offset of the byte at fault.
    package static func operations(of changeset: [UInt8]) throws(SluiceError) -> [OutgoingOperation] {
        var reader = RealmChangesetReader(changeset)
        var operations: [OutgoingOperation] = []
        while let instruction = try reader.next() { operations.append(try OutgoingOperation(instruction)) }
        return operations
    }

    /// A write of the place at the path. At an index, it is a write of a list's element.
    private static func write(_ path: RealmPath, _ shape: Shape) throws(SluiceError) -> OutgoingOperation {
        guard case .index(let index)? = path.steps.last else { return .update(try Path(path), shape) }
        var list = path
        list.steps.removeLast()
        return .set(try Path(list), index: try number(index))
    }

    static func number(_ number: Int) throws(SluiceError) -> UInt32 {
        guard let index = UInt32(exactly: number) else {
            throw SluiceError(.internalError, "A changeset names the index or size \(number) of a list.", fix: "Report this defect.")
        }
        return index
    }
}

extension OutgoingOperation.Object {
    /// - Throws: `internalError` for a key that is no primary key.
    package init(_ object: ObjectKey) throws(SluiceError) {
        var writer = RealmByteWriter()
        // Outside of a changeset a string has its length before it.
        if case .string = object.key { try writer.value(object.key) } else { try writer.key(object.key) }
        self.init(table: object.type, key: writer.bytes)
    }
}

extension OutgoingOperation.Path {
    fileprivate init(_ path: RealmPath) throws(SluiceError) {
        var elements: [Element] = []
        for step in path.steps {
            switch step {
            case .index(let index): elements.append(.index(try OutgoingOperation.number(index)))
            case .key(let key): elements.append(.key(key))
            }
        }
        self.init(object: try OutgoingOperation.Object(path.object), property: path.field, elements: elements)
    }
}

extension OutgoingOperation.Shape {
    fileprivate init(_ payload: RealmPayload) {
        self = if case .container(.list) = payload { .list } else { .value }
    }
}
