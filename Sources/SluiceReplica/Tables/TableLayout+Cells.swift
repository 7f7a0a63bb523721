import CSQLite
import SluiceCore
import SluiceValues

/// The conversion of values to and from columns.
extension TableLayout {
    /// Binds a whole row. Borrows strings and bytes from its arena until the statement has run.
    func bind(_ row: RowView, to statement: Statement) {
        for property in 0..<kinds.count { bind(row[property], of: row, property: property, to: statement) }
    }

    private func bind(_ cell: Cell, of row: RowView, property: Int, to statement: Statement) {
        let kind = kinds[property]
        if kind == .coded && cell.tag != .null && cell.tag != .absent {
            statement.bind(property, StoredValue.encode(row.value(of: cell) ?? .null))
            return
        }
        switch cell.tag {
        case .absent: bind(defaults[property], kind: kind, at: property, to: statement)
        case .string: statement.bind(property, text: row.bytes(of: cell), copied: false)
        case .binary, .uuid, .decimal: statement.bind(property, blob: UnsafeRawBufferPointer(row.bytes(of: cell)), copied: false)
        case .null: statement.bindNull(property)
        case .bool, .int: statement.bind(property, Int64(bitPattern: cell.bits))
        case .float, .double, .timestamp, .objectId, .list, .dictionary, .link:
            bind(row.value(of: cell) ?? .null, kind: kind, at: property, to: statement)
        }
    }

    func bind(_ row: Row, to statement: Statement) {
        for property in 0..<kinds.count {
            bind(row[property] ?? defaults[property], kind: kinds[property], at: property, to: statement)
        }
    }

    /// Binds a whole row of values.
    func bind(_ values: [Value], to statement: Statement) {
        for property in 0..<kinds.count { bind(values[property], kind: kinds[property], at: property, to: statement) }
    }

    func bindKey(_ value: Value, at index: Int, to statement: Statement) {
        bind(value, kind: kinds[key], at: index, to: statement)
    }

    func bind(_ value: Value, property: Int, at index: Int, to statement: Statement) {
        bind(value, kind: kinds[property], at: index, to: statement)
    }

    /// Binds a constant of a condition on a property that is not coded.
    func bind(_ value: Value, at index: Int, to statement: Statement) {
        bind(value, kind: .binary, at: index, to: statement)
    }

    private func bind(_ value: Value, kind: ColumnKind, at index: Int, to statement: Statement) {
        if kind == .coded && !value.isNull {
            statement.bind(index, StoredValue.encode(value))
            return
        }
        switch value {
        case .null: statement.bindNull(index)
        case .bool(let v): statement.bind(index, v ? Int64(1) : 0)
        case .int(let v): statement.bind(index, v)
        case .float(let v):
            if v.isNaN || v == 0 && v.sign == .minus {
                statement.bind(index, withUnsafeBytes(of: v.bitPattern.bigEndian, Array.init))
            } else {
                statement.bind(index, Double(v))
            }
        case .double(let v):
            if v.isNaN || v == 0 && v.sign == .minus {
                statement.bind(index, withUnsafeBytes(of: v.bitPattern.bigEndian, Array.init))
            } else {
                statement.bind(index, v)
            }
        case .string(let v): statement.bind(index, v)
        case .binary(let v): statement.bind(index, v)
        case .decimal(let v): statement.bind(index, v.bytes)
        case .objectId(let v): statement.bind(index, v.bytes)
        case .uuid(let v): statement.bind(index, v.bytes)
        case .timestamp(let v): statement.bind(index, TableLayout.ordered(v))
        case .list, .dictionary, .link: statement.bind(index, StoredValue.encode(value))
        }
    }

    /// Returns the sort key of a time: sign bits flipped, big-endian. Comparing the bytes compares the times.
    private static func ordered(_ time: Timestamp) -> [UInt8] {
        let seconds = UInt64(bitPattern: time.seconds) ^ (1 << 63)
        let nanoseconds = UInt32(bitPattern: time.nanoseconds) ^ (1 << 31)
        return withUnsafeBytes(of: seconds.bigEndian, Array.init) + withUnsafeBytes(of: nanoseconds.bigEndian, Array.init)
    }

    private static func word<T: FixedWidthInteger>(_ bytes: UnsafeRawBufferPointer, at offset: Int, _: T.Type) -> T {
        T(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: T.self))
    }

    /// Appends the statement's current row, whose columns begin at `first`. A column with a storage class that does not fit its property
    /// reads as null.
    func read(_ statement: Statement, from first: Int = 0, into buffer: inout RowBuffer) -> RowRef {
        buffer.beginRow()
        for property in 0..<kinds.count { append(statement, first + property, kinds[property], to: &buffer) }
        return buffer.endRow()
    }

    func append(_ statement: Statement, _ column: Int, _ kind: ColumnKind, to buffer: inout RowBuffer) {
        switch (kind, statement.storage(column)) {
        case (.bool, SQLITE_INTEGER): buffer.append(Cell(tag: .bool, bits: statement.int(column) != 0 ? 1 : 0))
        case (.int, SQLITE_INTEGER): buffer.append(Cell(tag: .int, bits: statement.unsigned(column)))
        case (.string, SQLITE_TEXT): buffer.append(.string, bytes: statement.bytes(column))
        case (.binary, SQLITE_BLOB): buffer.append(.binary, bytes: statement.bytes(column))
        default: buffer.append(value(statement, column, kind))
        }
    }

    func value(_ statement: Statement, _ column: Int, _ kind: ColumnKind) -> Value {
        // A non-zero number needs no check of the storage class: null and blobs read as 0.
        if kind == .int, case let number = statement.int(column), number != 0 { return .int(number) }
        if kind == .double, case let number = statement.double(column), number != 0 { return .double(number) }
        switch (kind, statement.storage(column)) {
        case (.bool, SQLITE_INTEGER): return .bool(statement.int(column) != 0)
        case (.int, SQLITE_INTEGER): return .int(statement.int(column))
        case (.float, SQLITE_FLOAT), (.float, SQLITE_INTEGER): return .float(Float(statement.double(column)))
        case (.double, SQLITE_FLOAT), (.double, SQLITE_INTEGER): return .double(statement.double(column))
        case (.string, SQLITE_TEXT): return .string(statement.string(column))
        case (_, SQLITE_BLOB): return value(of: statement.bytes(column), kind)
        default: return .null
        }
    }

    private func value(of bytes: UnsafeRawBufferPointer, _ kind: ColumnKind) -> Value {
        switch (kind, bytes.count) {
        case (.binary, _): .binary(Array(bytes))
        case (.coded, _): StoredValue.decode(bytes) ?? .null
        case (.float, 4): .float(Float(bitPattern: TableLayout.word(bytes, at: 0, UInt32.self)))
        case (.double, 8): .double(Double(bitPattern: TableLayout.word(bytes, at: 0, UInt64.self)))
        // By words: the initializers from collections are generic, and several times slower across modules.
        case (.decimal, 16):
            .decimal(
                Decimal128(high: TableLayout.word(bytes, at: 0, UInt64.self), low: TableLayout.word(bytes, at: 8, UInt64.self)))
        case (.objectId, 12):
            .objectId(
                ObjectIdentifierBytes(
                    high: TableLayout.word(bytes, at: 0, UInt64.self), low: TableLayout.word(bytes, at: 8, UInt32.self)))
        case (.uuid, 16):
            .uuid(UUIDBytes(high: TableLayout.word(bytes, at: 0, UInt64.self), low: TableLayout.word(bytes, at: 8, UInt64.self)))
        case (.timestamp, 12):
            .timestamp(
                Timestamp(
                    seconds: Int64(bitPattern: TableLayout.word(bytes, at: 0, UInt64.self) ^ (1 << 63)),
                    nanoseconds: Int32(bitPattern: TableLayout.word(bytes, at: 8, UInt32.self) ^ (1 << 31))))
        default: .null
        }
    }

    func readKey(_ statement: Statement, _ column: Int = 0) -> Value { value(statement, column, kinds[key]) }
}
