package import SluiceCore
import SluiceValues

/// Reads a changeset, one instruction at a time.
///
/// The input comes from a peer. Every error is `badChangeset` with the offset of the byte at fault. Memory is proportional to the input.
package struct RealmChangesetReader {
    var reader: RealmByteReader
    /// The strings so far, by index.
    var strings: [String] = []
    private var known: Set<RealmText> = []
    private var instructions = 0

    /// Instructions of one changeset. Beyond: `badChangeset`. An instruction in memory is up to 60 times as large as on the wire.
    package static let mostInstructions = 1 << 20

    package init(_ bytes: [UInt8]) { reader = RealmByteReader(bytes) }

    /// Returns all instructions of a changeset.
    package static func instructions(of bytes: [UInt8]) throws(SluiceError) -> [RealmInstruction] {
        var reader = RealmChangesetReader(bytes)
        var instructions: [RealmInstruction] = []
        while let instruction = try reader.next() { instructions.append(instruction) }
        return instructions
    }

    /// Returns the next instruction. Nil at the end of the changeset.
    package mutating func next() throws(SluiceError) -> RealmInstruction? {
        while reader.remaining > 0 {
            let start = reader.offset
            let number = try reader.integer()
            guard let tag = RealmInstructionTag(rawValue: number) else {
                throw reader.failure("there is no instruction \(number)", at: start)
            }
            if tag == .internString {
                try addString()
                continue
            }
            instructions += 1
            guard instructions <= Self.mostInstructions else {
                throw reader.failure("the changeset has more than \(Self.mostInstructions) instructions", at: start)
            }
            return try instruction(tag)
        }
        return nil
    }

    private mutating func addString() throws(SluiceError) {
        let start = reader.offset
        let index = try reader.index("index of the string")
        guard index == strings.count else {
            throw reader.failure("the string has the index \(index); expected \(strings.count)", at: start)
        }
        let text = try reader.text("string")
        guard known.insert(RealmText(text)).inserted else {
            throw reader.failure("the string '\(text.prefix(64))' is given twice", at: start)
        }
        strings.append(text)
    }

    private mutating func instruction(_ tag: RealmInstructionTag) throws(SluiceError) -> RealmInstruction? {
        switch tag {
        case .addTable: return .addTable(try table())
        case .eraseTable: return .eraseTable(try name("class"))
        case .addColumn: return .addColumn(try column())
        case .eraseColumn: return .eraseColumn(table: try name("class"), name: try name("property"))
        case .createObject: return .createObject(try object())
        case .eraseObject: return .eraseObject(try object())
        case .update: return try update()
        case .addInteger: return .addInteger(try path(), try reader.integer())
        case .arrayInsert:
            let (list, index) = try element()
            return .arrayInsert(list, at: index, try payload(), priorSize: try reader.index("prior size"))
        case .arrayMove:
            let (list, index) = try element()
            return .arrayMove(list, from: index, to: try reader.index("index"), priorSize: try reader.index("prior size"))
        case .arrayErase:
            let (list, index) = try element()
            return .arrayErase(list, at: index, priorSize: try reader.index("prior size"))
        case .clear: return .clear(try path(), try collection())
        case .setInsert: return .setInsert(try path(), try payload())
        case .setErase: return .setErase(try path(), try payload())
        case .internString: return nil
        }
    }

    // MARK: Declarations

    private mutating func table() throws(SluiceError) -> RealmTable {
        let name = try name("class")
        let start = reader.offset
        let number = try reader.integer()
        guard let kind = ObjectKind(realmNumber: number) else {
            throw reader.failure("there is no kind \(number) of classes", at: start)
        }
        return RealmTable(name, kind, key: kind == .embedded ? nil : try key(of: name))
    }

    private mutating func key(of table: String) throws(SluiceError) -> RealmTable.Key {
        let name = try name("property")
        let start = reader.offset
        let tag = try type()
        let isNullable = try reader.bool("flag for null")
        switch tag {
        case .int: return RealmTable.Key(name, .int, isNullable: isNullable)
        case .string: return RealmTable.Key(name, .string, isNullable: isNullable)
        case .objectId: return RealmTable.Key(name, .objectId, isNullable: isNullable)
        case .uuid: return RealmTable.Key(name, .uuid, isNullable: isNullable)
        case .globalKey: throw reader.failure("the class '\(table.prefix(64))' has no primary key", at: start)
        default: throw reader.failure("a primary key cannot be of the type '\(tag)'", at: start)
        }
    }

    private mutating func column() throws(SluiceError) -> RealmColumn {
        let (table, name) = (try name("class"), try name("property"))
        let start = reader.offset
        let tag = try type()
        let isNullable = try reader.bool("flag for null")
        let kind = try collection()
        let type: PropertyType
        if tag == .link {
            type = .link(to: try self.name("class"))
        } else if let plain = tag.columnType {
            type = plain
        } else {
            throw reader.failure("a property cannot be of the type '\(tag)'", at: start)
        }
        if kind == .dictionary {
            let start = reader.offset
            let key = try self.type()
            guard key == .string else { throw reader.failure("the keys of a dictionary cannot be of the type '\(key)'", at: start) }
        }
        return RealmColumn(table, name, type, isNullable: isNullable, kind)
    }

    private mutating func collection() throws(SluiceError) -> CollectionKind {
        let start = reader.offset
        let number = try reader.integer()
        guard let kind = CollectionKind(realmNumber: number) else {
            throw reader.failure("there is no kind \(number) of collections", at: start)
        }
        return kind
    }

    // MARK: Updates

    private mutating func update() throws(SluiceError) -> RealmInstruction {
        var path = try path()
        let payload = try payload()
        guard case .index(let index)? = path.steps.last else {
            return .update(path, payload, isDefault: try reader.bool("flag for a default"))
        }
        path.steps.removeLast()
        return .arrayUpdate(path, at: index, payload, priorSize: try reader.index("prior size"))
    }
}

/// A text that equals another one only if their bytes are equal.
struct RealmText: Hashable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (lhs: RealmText, rhs: RealmText) -> Bool { lhs.text.hasSameBytes(as: rhs.text) }
    func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}
