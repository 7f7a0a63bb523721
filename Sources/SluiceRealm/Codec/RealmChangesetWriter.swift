package import SluiceCore
import SluiceValues

/// Writes a changeset: first all strings, then the instructions.
package struct RealmChangesetWriter {
    /// The numbers of a class's name and of its properties' names in the changeset.
    struct ClassNumbers {
        /// The plan of the class, known by its identity.
        let plan: any AnyObject & Sendable
        let name: Int64
        /// By property index; -1 before the first use.
        var properties: [Int64]
    }

    private var numbers: [RealmText: Int] = [:]
    private var strings = RealmByteWriter()
    /// The instructions ahead of `body`.
    private var head = RealmByteWriter()
    var body = RealmByteWriter()
    /// The class and key of the row that is being written.
    var place = RealmByteWriter()
    /// The bytes of the class in `place`.
    var classBytes = 0
    /// The numbers of names in rows, by the index of the class, without those of the last row's class.
    var classes: [ClassNumbers?] = []
    /// The plan and the index of the last row's class, the number of its name, and those of its properties' names.
    var lastPlan: (any AnyObject & Sendable)?
    var lastIndex = 0
    var lastName: Int64 = 0
    var lastProperties: [Int64] = []

    package init() {}

    /// - Parameter bytes: The expected bytes of the instructions. Room for them is made at once.
    package init(expecting bytes: Int) { body.reserve(bytes) }

    /// The changeset so far. Empty if no instruction was added.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        for part in [strings, head, body] { bytes += part.bytes }
        return bytes
    }

    /// The number of bytes so far.
    package var count: Int { strings.bytes.count + head.bytes.count + body.bytes.count }

    /// The present end, for `revert`.
    package var end: Int { body.bytes.count }

    /// Removes the instructions behind an earlier end. Their names stay, and take some bytes.
    package mutating func revert(to end: Int) { body.truncate(to: end) }

    /// Writes an instruction ahead of those of `append`, and behind those of earlier calls.
    /// - Throws: `internalError` for an instruction that the protocol cannot express. Nothing usable is written then.
    package mutating func open(with instruction: RealmInstruction) throws(SluiceError) {
        swap(&head, &body)
        defer { swap(&head, &body) }
        try append(instruction)
    }

    /// Returns the changeset of the instructions.
    /// - Throws: The errors of `append`.
    package static func bytes(of instructions: some Sequence<RealmInstruction>) throws(SluiceError) -> [UInt8] {
        var writer = RealmChangesetWriter()
        for instruction in instructions { try writer.append(instruction) }
        return writer.bytes
    }

    /// - Throws: `internalError` for an instruction that the protocol cannot express. Nothing usable is written then.
    package mutating func append(_ instruction: RealmInstruction) throws(SluiceError) {
        switch instruction {
        case .addTable(let table): try append(table)
        case .addColumn(let column): append(column)
        case .eraseTable(let name):
            tag(.eraseTable)
            self.name(name)
        case .eraseColumn(let table, let name):
            tag(.eraseColumn)
            self.name(table)
            self.name(name)
        case .createObject(let object):
            tag(.createObject)
            try self.object(object)
        case .eraseObject(let object):
            tag(.eraseObject)
            try self.object(object)
        default: try append(inside: instruction)
        }
    }

    /// Writes an instruction that has a path.
    private mutating func append(inside instruction: RealmInstruction) throws(SluiceError) {
        switch instruction {
        case .update(let path, let payload, let isDefault):
            if case .index? = path.steps.last { throw Self.failure("an update of an element has no prior size") }
            try begin(.update, path, payload)
            body.integer(isDefault ? 1 : 0)
        case .arrayUpdate(let list, let index, let payload, let size):
            try begin(.update, list.element(index), payload)
            body.integer(Int64(size))
        case .arrayInsert(let list, let index, let payload, let size):
            try begin(.arrayInsert, list.element(index), payload)
            body.integer(Int64(size))
        case .arrayMove(let list, let from, let to, let size):
            try begin(.arrayMove, list.element(from))
            body.integer(Int64(to))
            body.integer(Int64(size))
        case .arrayErase(let list, let index, let size):
            try begin(.arrayErase, list.element(index))
            body.integer(Int64(size))
        case .addInteger(let path, let amount):
            try begin(.addInteger, path)
            body.integer(amount)
        case .clear(let path, let collection):
            try begin(.clear, path)
            body.integer(collection.realmNumber)
        case .setInsert(let path, let payload): try begin(.setInsert, path, payload)
        case .setErase(let path, let payload): try begin(.setErase, path, payload)
        default: throw Self.failure("an instruction has no form")
        }
    }

    static func failure(_ sentence: String) -> SluiceError {
        SluiceError(.internalError, "A changeset for a Realm client cannot be written: \(sentence).")
    }

    // MARK: Declarations

    private mutating func append(_ table: RealmTable) throws(SluiceError) {
        tag(.addTable)
        name(table.name)
        body.integer(table.kind.realmNumber)
        if table.kind == .embedded { return }
        guard let key = table.key else { throw Self.failure("the class '\(table.name)' has no primary key") }
        name(key.name)
        type(RealmTypeTag(column: key.type))
        body.integer(key.isNullable ? 1 : 0)
    }

    private mutating func append(_ column: RealmColumn) {
        tag(.addColumn)
        name(column.table)
        name(column.name)
        type(RealmTypeTag(column: column.type))
        body.integer(column.isNullable ? 1 : 0)
        body.integer(column.collection.realmNumber)
        switch column.type {
        case .link(let target), .embedded(let target): name(target)
        default: break
        }
        if column.collection == .dictionary { type(.string) }
    }

    // MARK: Parts

    mutating func tag(_ tag: RealmInstructionTag) { body.integer(tag.rawValue) }
    mutating func type(_ tag: RealmTypeTag) { body.integer(tag.rawValue) }

    /// Writes a reference to a string, and the string before its first reference.
    private mutating func name(_ text: String) { body.integer(number(of: text)) }

    /// Returns the number of a string, and writes the string before its first use.
    mutating func number(of text: String) -> Int64 {
        let key = RealmText(text)
        if let number = numbers[key] { return Int64(number) }
        let number = Int64(numbers.count)
        numbers[key] = numbers.count
        strings.integer(RealmInstructionTag.internString.rawValue)
        strings.integer(number)
        strings.counted(text)
        return number
    }

    private mutating func object(_ object: ObjectKey) throws(SluiceError) {
        name(object.type)
        try key(object.key)
    }

    private mutating func key(_ key: Value) throws(SluiceError) {
        guard case .string(let text) = key else { return try body.key(key) }
        type(.string)
        name(text)
    }

    private mutating func begin(_ tag: RealmInstructionTag, _ path: RealmPath, _ payload: RealmPayload) throws(SluiceError) {
        try begin(tag, path)
        try self.payload(payload)
    }

    private mutating func begin(_ tag: RealmInstructionTag, _ path: RealmPath) throws(SluiceError) {
        self.tag(tag)
        try object(path.object)
        name(path.field)
        body.integer(Int64(path.steps.count))
        for step in path.steps {
            switch step {
            case .index(let index): body.integer(Int64(index))
            case .key(let key):
                body.integer(-1)
                name(key)
            }
        }
    }

    private mutating func payload(_ payload: RealmPayload) throws(SluiceError) {
        switch payload {
        case .container(let container): type(container.realmTag)
        case .erased: type(.erased)
        case .value(let value): try self.payload(value)
        }
    }

    mutating func payload(_ value: Value) throws(SluiceError) {
        if case .link(let target, let key) = value { try link(target, key) } else { try body.value(value) }
    }

    mutating func link(_ target: String, _ key: Value) throws(SluiceError) {
        type(.link)
        name(target)
        try self.key(key)
    }
}

extension RealmPath {
    fileprivate func element(_ index: Int) -> RealmPath { RealmPath(object, field, steps + [.index(index)]) }
}
