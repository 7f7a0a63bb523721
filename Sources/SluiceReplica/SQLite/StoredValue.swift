import SluiceCore
import SluiceValues

/// The encoding of values in the blobs of a client replica, version 1: a byte for the kind, then the content. Counts and lengths have 32
/// bits. All numbers are little-endian except the bytes of keys. `Limits.nestingDepth` bounds the depth.
enum StoredValue {
    /// The numbers of kinds. They are part of the file format: never change or reuse one.
    private enum Kind: UInt8 {
        case null = 0
        case no = 1
        case yes = 2
        case int = 3
        case float = 4
        case double = 5
        case decimal = 6
        case string = 7
        case binary = 8
        case timestamp = 9
        case objectId = 10
        case uuid = 11
        case list = 12
        case dictionary = 13
        case link = 14
    }

    /// The size of an empty list or dictionary, in bytes.
    static let emptyLength = 5

    /// The first bytes of mixed values that may contain a link, as a list of SQL literals.
    static var linkingKinds: String {
        [Kind.list, .dictionary, .link].map { "x'0\(String($0.rawValue, radix: 16))'" }.joined(separator: ", ")
    }

    static func encode(_ value: Value) -> [UInt8] {
        var writer = Writer()
        writer.value(value)
        return writer.bytes
    }

    /// Decodes a value. Returns `nil` if the bytes are malformed.
    static func decode(_ bytes: UnsafeRawBufferPointer) -> Value? {
        var reader = Reader(bytes: bytes)
        guard let value = reader.value(), reader.isAtEnd else { return nil }
        return value
    }

    struct Writer {
        private(set) var bytes: [UInt8] = []

        mutating func byte(_ byte: UInt8) { bytes.append(byte) }

        mutating func fixed(_ value: some FixedWidthInteger) {
            withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
        }

        mutating func counted(_ content: some Collection<UInt8>) {
            fixed(UInt32(content.count))
            bytes.append(contentsOf: content)
        }

        mutating func string(_ text: String) { counted(Array(text.utf8)) }

        private mutating func kind(_ kind: Kind) { bytes.append(kind.rawValue) }

        mutating func value(_ value: Value) {
            switch value {
            case .null: kind(.null)
            case .bool(let v): kind(v ? .yes : .no)
            case .int(let v):
                kind(.int)
                fixed(v)
            case .float(let v):
                kind(.float)
                fixed(v.bitPattern)
            case .double(let v):
                kind(.double)
                fixed(v.bitPattern)
            case .decimal(let v):
                kind(.decimal)
                bytes.append(contentsOf: v.bytes)
            case .string(let v):
                kind(.string)
                string(v)
            case .binary(let v):
                kind(.binary)
                counted(v)
            case .timestamp(let v):
                kind(.timestamp)
                fixed(v.seconds)
                fixed(v.nanoseconds)
            case .objectId(let v):
                kind(.objectId)
                bytes.append(contentsOf: v.bytes)
            case .uuid(let v):
                kind(.uuid)
                bytes.append(contentsOf: v.bytes)
            case .list(let v):
                kind(.list)
                fixed(UInt32(v.count))
                for element in v { self.value(element) }
            case .dictionary(let v):
                kind(.dictionary)
                pairs(v)
            case .link(let type, let key):
                kind(.link)
                string(type)
                self.value(key)
            }
        }

        mutating func pairs(_ pairs: [String: Value]) {
            fixed(UInt32(pairs.count))
            for (key, element) in pairs.sorted(by: { $0.key < $1.key }) {
                string(key)
                value(element)
            }
        }
    }

    struct Reader {
        let bytes: UnsafeRawBufferPointer
        private var position = 0

        init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

        var isAtEnd: Bool { position == bytes.count }

        private mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
            guard count <= bytes.count - position else { return nil }
            defer { position += count }
            return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
        }

        mutating func byte() -> UInt8? { take(1)?.first }

        mutating func fixed<T: FixedWidthInteger>(_: T.Type) -> T? {
            take(MemoryLayout<T>.size).map { T(littleEndian: $0.loadUnaligned(as: T.self)) }
        }

        /// Reads a count of elements of at least one byte each, so that a damaged count cannot request much memory.
        mutating func count() -> Int? {
            guard let count = fixed(UInt32.self), Int(count) <= bytes.count - position else { return nil }
            return Int(count)
        }

        private mutating func counted() -> UnsafeRawBufferPointer? { count().flatMap { take($0) } }

        mutating func string() -> String? { counted().map { String(decoding: $0, as: UTF8.self) } }

        mutating func value(depth: Int = 0) -> Value? {
            guard let kind = byte().flatMap(Kind.init(rawValue:)), depth <= Limits.nestingDepth else { return nil }
            switch kind {
            case .null: return .null
            case .no: return .bool(false)
            case .yes: return .bool(true)
            case .int: return fixed(Int64.self).map { .int($0) }
            case .float: return fixed(UInt32.self).map { .float(Float(bitPattern: $0)) }
            case .double: return fixed(UInt64.self).map { .double(Double(bitPattern: $0)) }
            case .decimal: return take(16).map { .decimal(Decimal128(bytes: $0)) }
            case .string: return string().map { .string($0) }
            case .binary: return counted().map { .binary(Array($0)) }
            case .timestamp: return timestamp()
            case .objectId: return take(12).map { .objectId(ObjectIdentifierBytes(bytes: $0)) }
            case .uuid: return take(16).map { .uuid(UUIDBytes(bytes: $0)) }
            case .list: return list(depth: depth)
            case .dictionary: return pairs(depth: depth).map { .dictionary($0) }
            case .link: return link(depth: depth)
            }
        }

        private mutating func timestamp() -> Value? {
            guard let seconds = fixed(Int64.self), let nanoseconds = fixed(Int32.self) else { return nil }
            return .timestamp(Timestamp(seconds: seconds, nanoseconds: nanoseconds))
        }

        private mutating func list(depth: Int) -> Value? {
            guard let count = count() else { return nil }
            var elements: [Value] = []
            elements.reserveCapacity(count)
            for _ in 0..<count {
                guard let element = value(depth: depth + 1) else { return nil }
                elements.append(element)
            }
            return .list(elements)
        }

        mutating func pairs(depth: Int = 0) -> [String: Value]? {
            guard let count = count() else { return nil }
            var pairs: [String: Value] = [:]
            for _ in 0..<count {
                guard let key = string(), let element = value(depth: depth + 1) else { return nil }
                pairs[key] = element
            }
            return pairs
        }

        private mutating func link(depth: Int) -> Value? {
            guard let type = string(), let key = value(depth: depth + 1) else { return nil }
            return .link(type: type, key: key)
        }
    }
}
