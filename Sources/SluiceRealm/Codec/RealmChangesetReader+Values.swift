import SluiceCore
import SluiceValues

extension RealmChangesetReader {
    /// Reads a reference to a string.
    mutating func name(_ kind: String) throws(SluiceError) -> String {
        let start = reader.offset
        let index = try reader.index("\(kind)'s string")
        guard strings.indices.contains(index) else {
            throw reader.failure("the \(kind) refers to string \(index) of \(strings.count)", at: start)
        }
        return strings[index]
    }

    mutating func type() throws(SluiceError) -> RealmTypeTag {
        let start = reader.offset
        let number = try reader.integer()
        guard let tag = RealmTypeTag(rawValue: number) else { throw reader.failure("there is no type \(number)", at: start) }
        return tag
    }

    // MARK: Objects and paths

    mutating func object() throws(SluiceError) -> ObjectKey { ObjectKey(type: try name("class"), key: try key()) }

    /// Reads a primary key. Unlike in a payload, a string is a reference.
    private mutating func key() throws(SluiceError) -> Value {
        let start = reader.offset
        switch try type() {
        case .null: return .null
        case .int: return .int(try reader.integer())
        case .string: return .string(try name("primary key"))
        case .objectId: return .objectId(ObjectIdentifierBytes(bytes: try reader.raw(12, "ObjectId")))
        case .uuid: return .uuid(UUIDBytes(bytes: try reader.raw(16, "UUID")))
        case .globalKey: throw reader.failure("the object's class has no primary key", at: start)
        case let other: throw reader.failure("a primary key cannot be of the type '\(other)'", at: start)
        }
    }

    mutating func path() throws(SluiceError) -> RealmPath {
        var path = RealmPath(try object(), try name("property"))
        let start = reader.offset
        let count = try reader.index("number of steps")
        // A step has a byte or more.
        guard count <= min(Limits.nestingDepth, reader.remaining) else {
            throw reader.failure("a path has \(count) steps; the limit is \(Limits.nestingDepth)", at: start)
        }
        path.steps.reserveCapacity(count)
        for _ in 0..<count { path.steps.append(try step()) }
        return path
    }

    private mutating func step() throws(SluiceError) -> RealmStep {
        let start = reader.offset
        let number = try reader.integer()
        if number == -1 { return .key(try name("key")) }
        guard let index = UInt32(exactly: number) else {
            throw reader.failure("a step of a path is \(number), which is not between -1 and \(UInt32.max)", at: start)
        }
        return .index(Int(index))
    }

    /// Reads a path that ends in the index of an element.
    mutating func element() throws(SluiceError) -> (list: RealmPath, index: Int) {
        let start = reader.offset
        var path = try path()
        guard case .index(let index)? = path.steps.popLast() else {
            throw reader.failure("the path of a list's element does not end in an index", at: start)
        }
        return (path, index)
    }

    // MARK: Payloads

    mutating func payload() throws(SluiceError) -> RealmPayload {
        let start = reader.offset
        let tag = try type()
        switch tag {
        case .list: return .container(.list)
        case .set: return .container(.set)
        case .dictionary: return .container(.dictionary)
        case .object: return .container(.object)
        case .erased: return .erased
        case .globalKey: throw reader.failure("a value cannot be of the type '\(tag)'", at: start)
        default: return .value(try value(tag))
        }
    }

    private mutating func value(_ tag: RealmTypeTag) throws(SluiceError) -> Value {
        switch tag {
        case .int: .int(try reader.integer())
        case .bool: .bool(try reader.bool("bool"))
        case .string: .string(try reader.text("string"))
        case .binary: .binary(Array(try reader.counted("binary value")))
        case .timestamp: .timestamp(try timestamp())
        case .float: .float(Float(bitPattern: try reader.word("float")))
        case .double: .double(Double(bitPattern: try reader.word("double")))
        case .decimal: .decimal(try decimal())
        case .link: .link(type: try name("link's class"), key: try key())
        case .objectId: .objectId(ObjectIdentifierBytes(bytes: try reader.raw(12, "ObjectId")))
        case .uuid: .uuid(UUIDBytes(bytes: try reader.raw(16, "UUID")))
        case .null, .set, .list, .erased, .dictionary, .object, .globalKey: .null
        }
    }

    private mutating func timestamp() throws(SluiceError) -> Timestamp {
        let start = reader.offset
        let (seconds, nanoseconds) = (try reader.integer(), try reader.integer())
        guard let time = Timestamp(seconds: seconds, checking: nanoseconds) else {
            throw reader.failure("there is no date of \(seconds) seconds and \(nanoseconds) nanoseconds", at: start)
        }
        return time
    }

    private mutating func decimal() throws(SluiceError) -> Decimal128 {
        let coefficient = try reader.coefficient()
        let start = reader.offset
        let exponent = try reader.integer()
        let isNegative = try reader.bool("sign of the decimal")
        guard let value = Decimal128(realm: coefficient, exponent: exponent, isNegative: isNegative) else {
            throw reader.failure("the exponent of the decimal is \(exponent), which is out of range", at: start)
        }
        return value
    }
}
