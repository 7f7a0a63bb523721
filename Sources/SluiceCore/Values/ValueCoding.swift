import SluiceValues

/// The encoding of containers in a row's arena: in memory only, never on a wire or a disk.
///
/// A value is a tag byte and its content. Integers are little-endian; counts and lengths have 32 bits. `Limits.nestingDepth` bounds the
/// depth; deeper input is malformed.
package enum ValueCoding {
    package static func tag(of value: Value) -> CellTag {
        switch value {
        case .null: .null
        case .bool: .bool
        case .int: .int
        case .float: .float
        case .double: .double
        case .decimal: .decimal
        case .string: .string
        case .binary: .binary
        case .timestamp: .timestamp
        case .objectId: .objectId
        case .uuid: .uuid
        case .list: .list
        case .dictionary: .dictionary
        case .link: .link
        }
    }

    /// Returns the content of a value without its tag.
    package static func encode(_ value: Value) -> [UInt8] {
        var writer = Writer()
        writer.content(value)
        return writer.bytes
    }

    /// Decodes content of the given tag, or returns nil if the bytes are malformed.
    package static func decode(_ bytes: UnsafeBufferPointer<UInt8>, as tag: CellTag) -> Value? {
        var reader = Reader(bytes: bytes)
        guard let value = reader.content(tag, depth: 0), reader.isAtEnd else { return nil }
        return value
    }

    private struct Writer {
        var bytes: [UInt8] = []

        mutating func fixed(_ value: some FixedWidthInteger) {
            withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
        }

        mutating func counted(_ content: some Collection<UInt8>) {
            fixed(UInt32(content.count))
            bytes.append(contentsOf: content)
        }

        mutating func tagged(_ value: Value) {
            bytes.append(ValueCoding.tag(of: value).rawValue)
            content(value)
        }

        mutating func content(_ value: Value) {
            switch value {
            case .null: break
            case .bool(let v): bytes.append(v ? 1 : 0)
            case .int(let v): fixed(v)
            case .float(let v): fixed(v.bitPattern)
            case .double(let v): fixed(v.bitPattern)
            case .decimal(let v): bytes.append(contentsOf: v.bytes)
            case .string(let v): counted(Array(v.utf8))
            case .binary(let v): counted(v)
            case .timestamp(let v):
                fixed(v.seconds)
                fixed(v.nanoseconds)
            case .objectId(let v): bytes.append(contentsOf: v.bytes)
            case .uuid(let v): bytes.append(contentsOf: v.bytes)
            case .list(let v):
                fixed(UInt32(v.count))
                for element in v { tagged(element) }
            case .dictionary(let v):
                fixed(UInt32(v.count))
                for (key, element) in v.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
                    counted(Array(key.utf8))
                    tagged(element)
                }
            case .link(let type, let key):
                counted(Array(type.utf8))
                tagged(key)
            }
        }
    }

    private struct Reader {
        let bytes: UnsafeBufferPointer<UInt8>
        var position = 0

        var isAtEnd: Bool { position == bytes.count }

        mutating func take(_ count: Int) -> UnsafeBufferPointer<UInt8>? {
            guard count <= bytes.count - position else { return nil }
            defer { position += count }
            return UnsafeBufferPointer(rebasing: bytes[position..<position + count])
        }

        mutating func fixed<T: FixedWidthInteger>(_: T.Type) -> T? {
            guard let slice = take(MemoryLayout<T>.size) else { return nil }
            return T(littleEndian: UnsafeRawBufferPointer(slice).loadUnaligned(as: T.self))
        }

        mutating func counted() -> UnsafeBufferPointer<UInt8>? {
            guard let count = fixed(UInt32.self) else { return nil }
            return take(Int(count))
        }

        mutating func string() -> String? { counted().map { String(decoding: $0, as: UTF8.self) } }

        mutating func tagged(depth: Int) -> Value? {
            guard let byte = take(1)?.first, let tag = CellTag(rawValue: byte), depth < Limits.nestingDepth else { return nil }
            return content(tag, depth: depth + 1)
        }

        mutating func content(_ tag: CellTag, depth: Int) -> Value? {
            switch tag {
            case .absent: nil
            case .null: .null
            case .bool: take(1).map { .bool($0[0] != 0) }
            case .int: fixed(Int64.self).map { .int($0) }
            case .float: fixed(UInt32.self).map { .float(Float(bitPattern: $0)) }
            case .double: fixed(UInt64.self).map { .double(Double(bitPattern: $0)) }
            case .decimal: take(16).map { .decimal(Decimal128(bytes: $0)) }
            case .string: string().map { .string($0) }
            case .binary: counted().map { .binary(Array($0)) }
            case .timestamp: timestamp()
            case .objectId: take(12).map { .objectId(ObjectIdentifierBytes(bytes: $0)) }
            case .uuid: take(16).map { .uuid(UUIDBytes(bytes: $0)) }
            case .list: list(depth: depth)
            case .dictionary: dictionary(depth: depth)
            case .link: link(depth: depth)
            }
        }

        mutating func timestamp() -> Value? {
            guard let seconds = fixed(Int64.self), let nanoseconds = fixed(Int32.self) else { return nil }
            return .timestamp(Timestamp(seconds: seconds, nanoseconds: nanoseconds))
        }

        mutating func list(depth: Int) -> Value? {
            // An element has at least one byte, so a larger count is malformed. The check bounds the work for a hostile count.
            guard let count = fixed(UInt32.self), Int(count) <= bytes.count - position else { return nil }
            var elements: [Value] = []
            for _ in 0..<count {
                guard let element = tagged(depth: depth) else { return nil }
                elements.append(element)
            }
            return .list(elements)
        }

        mutating func dictionary(depth: Int) -> Value? {
            // As in a list: the remaining bytes bound the count.
            guard let count = fixed(UInt32.self), Int(count) <= bytes.count - position else { return nil }
            var pairs: [String: Value] = [:]
            for _ in 0..<count {
                guard let key = string(), let element = tagged(depth: depth) else { return nil }
                pairs[key] = element
            }
            return .dictionary(pairs)
        }

        mutating func link(depth: Int) -> Value? {
            guard let type = string(), let key = tagged(depth: depth) else { return nil }
            return .link(type: type, key: key)
        }
    }
}
