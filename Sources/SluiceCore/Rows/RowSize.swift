extension Value {
    /// An upper bound of the bytes that the value takes in a record of the change log.
    package var recordBytes: Int {
        switch self {
        case .null, .bool: 6
        case .int, .float, .double: 14
        case .decimal, .objectId, .uuid, .timestamp: 24
        case .string(let text): 14 + text.utf8.count
        case .binary(let bytes): 14 + bytes.count
        case .list(let elements): elements.reduce(14) { $0 + $1.recordBytes }
        case .dictionary(let entries): entries.reduce(14) { $0 + 14 + $1.key.utf8.count + $1.value.recordBytes }
        case .link(let type, let key): 28 + type.utf8.count + key.recordBytes
        }
    }
}

extension Row {
    /// An upper bound of the bytes that the row takes in a record of the change log. It also bounds groups of rows that are passed
    /// together.
    package var recordBytes: Int { values.reduce(0) { $0 + ($1?.recordBytes ?? 0) } }

    /// `true` if a record with two such rows may be too large for the change log.
    package func isLarger(than bound: RowBound) -> Bool { recordBytes > bound.bytes }
}

extension RowBuffer {
    /// `true` if a record with two such rows may be too large for the change log.
    package func isLarger(_ row: RowRef, than bound: RowBound) -> Bool {
        withView(row) { view in
            (0..<view.count).reduce(0) { $0 + (view.value($1)?.recordBytes ?? 0) } > bound.bytes
        }
    }
}
