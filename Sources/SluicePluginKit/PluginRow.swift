import CSluicePlugin
public import SluiceValues

/// An object before or after a write, or one that is ingested.
///
/// It is read in place, one field at a time. A field costs a look-up of its name, and unread fields cost nothing. A plugin may keep a row
/// beyond the hook, which copies the batch.
public struct PluginRow: Sendable {
    enum Storage: Sendable {
        /// An object of a test, before `TestedRows` puts it into cells.
        case value(PluginValue)
        case cells(RowBatch, ColumnTable, start: Int)
    }

    let storage: Storage

    /// - Parameter value: An object in extended JSON.
    public init(_ value: PluginValue) { storage = .value(value) }

    init(_ batch: RowBatch, _ table: ColumnTable, start: Int) { storage = .cells(batch, table, start: start) }

    /// Returns a field in extended JSON, or nil if the object does not have it.
    public subscript(_ name: String) -> PluginValue? {
        switch storage {
        case .value(let object): object[name]
        case .cells: cell(name) { $0.value($1) } ?? nil
        }
    }

    /// The whole object in extended JSON, with its members in the order of their names.
    public var value: PluginValue {
        switch storage {
        case .value(let object): object
        case .cells(let batch, let table, let start):
            batch.read { reader in
                .object(
                    table.sorted.compactMap { column in
                        reader.value(reader.cell(start, column)).map { PluginValue.Member(table.names[column], $0) }
                    })
            }
        }
    }

    /// `true` if a field is null or absent.
    public func isNull(_ name: String) -> Bool {
        switch storage {
        case .value(let object): object[name]?.isNull ?? true
        case .cells: cell(name) { $1.isNull } ?? true
        }
    }

    /// Returns a boolean field, or nil if it is null, absent or of another type.
    public func bool(_ name: String) -> Bool? {
        switch storage {
        case .value(let object): object[name]?.bool
        case .cells: cell(name) { $1.is(SLUICE_TAG_BOOL) ? $1.bits != 0 : nil } ?? nil
        }
    }

    /// Returns an int field, or nil if it is null, absent or of another type.
    public func int(_ name: String) -> Int64? {
        switch storage {
        case .value(let object): object[name]?.int
        case .cells: cell(name) { $1.is(SLUICE_TAG_INT) ? Int64(bitPattern: $1.bits) : nil } ?? nil
        }
    }

    /// Returns an int, a float or a double as a double, or nil for another type.
    public func number(_ name: String) -> Double? {
        switch storage {
        case .value(let object): return object[name]?.number
        case .cells:
            return cell(name) { _, cell in
                switch sluice_tag(rawValue: UInt32(cell.tag)) {
                case SLUICE_TAG_INT: Double(Int64(bitPattern: cell.bits))
                case SLUICE_TAG_FLOAT: ExtendedForm.shortest(cell.float)
                case SLUICE_TAG_DOUBLE: Double(bitPattern: cell.bits)
                default: nil
                }
            } ?? nil
        }
    }

    /// Returns a string field, or nil if it is null, absent or of another type.
    public func string(_ name: String) -> String? {
        switch storage {
        case .value(let object): object[name]?.string
        case .cells: cell(name) { $1.is(SLUICE_TAG_STRING) ? $0.text($1) : nil } ?? nil
        }
    }

    /// `true` if a field is this text, byte for byte. It allocates no string.
    public func has(_ name: String, equalTo text: String) -> Bool {
        switch storage {
        case .value(let object): object[name]?.string.map { $0.utf8.elementsEqual(text.utf8) } ?? false
        case .cells:
            cell(name) { reader, cell in
                guard cell.is(SLUICE_TAG_STRING), Int(cell.length) == text.utf8.count else { return false }
                return unsafe reader.bytes(cell).elementsEqual(text.utf8)
            } ?? false
        }
    }

    /// `true` if a field has the same value in another row, as `[name]` returns it. An absent field equals null.
    public func hasSame(_ name: String, as other: PluginRow) -> Bool {
        if case .cells(let batch, let table, let start) = storage, case .cells(let theirs, let columns, let place) = other.storage,
            batch === theirs, table === columns, let column = table.column(name),
            batch.read({ $0.areAlike($0.cell(start, column), $0.cell(place, column)) })
        {
            return true
        }
        return self[name] ?? .null == other[name] ?? .null
    }

    /// Reads the cell of a field, or returns nil if there is no such column.
    private func cell<R: Sendable>(_ name: String, _ body: (CellReader, sluice_cell) -> R) -> R? {
        guard case .cells(let batch, let table, let start) = storage, let column = table.column(name) else { return nil }
        return batch.read { body($0, $0.cell(start, column)) }
    }
}

extension PluginRow: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, PluginValue)...) { self.init(.object(elements.map { .init($0.0, $0.1) })) }
}

extension PluginRow: Hashable {
    public static func == (lhs: PluginRow, rhs: PluginRow) -> Bool { lhs.value == rhs.value }
    public func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
