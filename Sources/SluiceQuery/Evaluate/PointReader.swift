import SluiceCore

extension Geometry.Place {
    /// Reads the place of a GeoJSON point from an embedded object in a row's arena, without allocation. Returns nil for other objects.
    init?(_ cell: Cell, _ arena: UnsafePointer<UInt8>) {
        guard cell.tag == .dictionary else { return nil }
        var reader = PointReader(bytes: UnsafeBufferPointer(start: arena + Int(cell.bits), count: Int(cell.length)))
        guard let (longitude, latitude) = reader.coordinates() else { return nil }
        self.init(longitude: longitude, latitude: latitude)
    }
}

/// Finds the two members of a point in the bytes of a dictionary, see `ValueCoding`. Malformed bytes are not a point.
private struct PointReader {
    let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0

    init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    mutating func coordinates() -> (Double, Double)? {
        guard let count = fixed(UInt32.self) else { return nil }
        var isPoint = false
        var found: (Double, Double)?
        for _ in 0..<count {
            guard let key = counted(), let tag = tag() else { return nil }
            if tag == .string, equals(key, "type") {
                guard let text = counted() else { return nil }
                isPoint = equals(text, "Point")
            } else if tag == .list, equals(key, "coordinates") {
                let start = position
                found = pair()
                position = start
                guard skip(.list, depth: 0) else { return nil }
            } else if !skip(tag, depth: 0) {
                return nil
            }
        }
        return isPoint ? found : nil
    }

    private mutating func pair() -> (Double, Double)? {
        guard let count = fixed(UInt32.self), count >= 2, let longitude = number(), let latitude = number() else { return nil }
        return (longitude, latitude)
    }

    private mutating func number() -> Double? {
        tag() == .double ? fixed(UInt64.self).map { Double(bitPattern: $0) } : nil
    }

    // MARK: Bytes

    private func equals(_ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        for (index, offset) in range.enumerated() where bytes[offset] != text.utf8Start[index] { return false }
        return true
    }

    private mutating func take(_ count: Int) -> Range<Int>? {
        guard count <= bytes.count - position else { return nil }
        defer { position += count }
        return position..<position + count
    }

    private mutating func fixed<T: FixedWidthInteger>(_: T.Type) -> T? {
        guard let range = take(MemoryLayout<T>.size), let base = bytes.baseAddress else { return nil }
        return T(littleEndian: UnsafeRawPointer(base + range.lowerBound).loadUnaligned(as: T.self))
    }

    private mutating func counted() -> Range<Int>? { fixed(UInt32.self).flatMap { take(Int($0)) } }

    private mutating func tag() -> CellTag? { take(1).flatMap { CellTag(rawValue: bytes[$0.lowerBound]) } }

    private mutating func skip(_ tag: CellTag, depth: Int) -> Bool {
        switch tag {
        case .absent: return false
        case .null: return true
        case .bool: return take(1) != nil
        case .float: return take(4) != nil
        case .int, .double: return take(8) != nil
        case .timestamp, .objectId: return take(12) != nil
        case .decimal, .uuid: return take(16) != nil
        case .string, .binary: return counted() != nil
        case .link: return counted() != nil && skipTagged(depth)
        case .list, .dictionary:
            guard let count = fixed(UInt32.self) else { return false }
            for _ in 0..<count {
                if tag == .dictionary, counted() == nil { return false }
                if !skipTagged(depth) { return false }
            }
            return true
        }
    }

    private mutating func skipTagged(_ depth: Int) -> Bool {
        guard depth < Limits.nestingDepth, let tag = tag() else { return false }
        return skip(tag, depth: depth + 1)
    }
}
