extension Value {
    /// Bytes that the value takes in a record of the log, at most.
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
    /// Bytes that the row takes in a record of the log, at most: the measure, too, for rows that are handed on together.
    package var recordBytes: Int { values.reduce(0) { $0 + ($1?.recordBytes ?? 0) } }

    /// Whether a record with two of them may be too large for the log.
    package var isTooLarge: Bool { recordBytes > Limits.rowBytes }
}

extension RowBuffer {
    /// Bytes in the arena that a row takes before its values are looked at one by one: in a record none takes eight times as many.
    package static let smallBytes = Limits.rowBytes / 8

    /// The same as `Row.isTooLarge`.
    package func isTooLarge(_ row: RowRef) -> Bool {
        withView(row) { view in
            (0..<view.count).reduce(0) { $0 + (view.value($1)?.recordBytes ?? 0) } > Limits.rowBytes
        }
    }
}
