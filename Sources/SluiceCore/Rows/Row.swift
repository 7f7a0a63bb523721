import SluiceValues

/// The type of a cell's content. The raw values are part of no format and may change; the wire has its own numbers.
@frozen @usableFromInline
package enum CellTag: UInt8, Sendable {
    /// The row does not contain the property: a partial image, or a column that the reader must not see.
    case absent = 0
    case null
    case bool
    case int
    case float
    case double
    case decimal
    case string
    case binary
    case timestamp
    case objectId
    case uuid
    /// A list or set of scalars: encoded cells in the arena.
    case list
    /// A dictionary, embedded object or mixed container: encoded pairs in the arena.
    case dictionary
    /// A link in a mixed property: encoded class and key in the arena.
    case link
}

/// One value of a flat row in 16 bytes. `bits` holds a scalar, or the offset of longer content in the arena.
///
/// - Bool, int: `length` is 0, and `bits` the value, sign-extended.
/// - Float, double: `length` is 0, and `bits` the bit pattern.
/// - Timestamp: `length` is the nanoseconds as a bit pattern, and `bits` the seconds.
/// - ObjectId: `length` is the low word, and `bits` the high word.
/// - String, binary: `length` is the number of bytes in the arena, and `bits` their offset.
/// - UUID, decimal: `length` is 16, and `bits` the offset of 16 bytes, big-endian, high word first.
/// - List, dictionary, link: `length` is the number of bytes in the arena, and `bits` the offset of their `ValueCoding`.
@frozen @usableFromInline
package struct Cell: Sendable {
    @usableFromInline package var tag: CellTag
    @usableFromInline package var length: UInt32
    @usableFromInline package var bits: UInt64

    @inlinable package init(tag: CellTag, length: UInt32 = 0, bits: UInt64 = 0) {
        self.tag = tag
        self.length = length
        self.bits = bits
    }

    package static var absent: Cell { Cell(tag: .absent) }
    package static var null: Cell { Cell(tag: .null) }
}

/// A row read in place: cells by property index of its `ObjectType`, and the arena that their offsets point into.
///
/// Borrowed memory: valid only inside the closure that received it.
@frozen @usableFromInline
package struct RowView {
    @usableFromInline package let cells: UnsafePointer<Cell>
    @usableFromInline package let count: Int
    @usableFromInline package let arena: UnsafePointer<UInt8>

    @inlinable package init(cells: UnsafePointer<Cell>, count: Int, arena: UnsafePointer<UInt8>) {
        self.cells = cells
        self.count = count
        self.arena = arena
    }

    /// The cell of a property. It is absent if the row is shorter, which is the case for a row older than the schema.
    @inlinable package subscript(_ property: Int) -> Cell {
        property < count ? cells[property] : Cell(tag: .absent)
    }

    /// The bytes of a string, binary, UUID, decimal or container cell.
    @inlinable package func bytes(of cell: Cell) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: arena + Int(cell.bits), count: Int(cell.length))
    }
}

/// The cells of a row in a `RowBuffer`.
package struct RowRef: Sendable, Hashable {
    package var start: Int32
    package var count: Int32

    package init(start: Int32, count: Int32) {
        self.start = start
        self.count = count
    }
}

/// Many flat rows over one arena, reused from batch to batch so that the steady state allocates nothing.
///
/// To add a row, call `beginRow()`, one `append` per property in index order, and `endRow()`. Alternatively call `appendAbsent(count:)` and
/// `set`.
package struct RowBuffer: Sendable {
    package var cells: [Cell] = []
    package var arena: [UInt8] = []
    private var open: Int32 = 0

    package init() {}

    /// Removes all rows and keeps the capacity.
    package mutating func removeAll() {
        cells.removeAll(keepingCapacity: true)
        arena.removeAll(keepingCapacity: true)
        open = 0
    }

    /// The bytes in use, which bound a batch.
    package var byteCount: Int { cells.count * MemoryLayout<Cell>.size + arena.count }

    package mutating func beginRow() { open = Int32(cells.count) }

    package mutating func endRow() -> RowRef { RowRef(start: open, count: Int32(cells.count) - open) }

    /// Removes the cells of the open row. Its arena bytes remain until `removeAll`.
    package mutating func abandonRow() { cells.removeSubrange(Int(open)...) }

    package mutating func append(_ cell: Cell) { cells.append(cell) }

    /// Appends a cell and copies its content to the arena.
    package mutating func append(_ tag: CellTag, bytes: UnsafeRawBufferPointer) {
        cells.append(Cell(tag: tag, length: UInt32(bytes.count), bits: UInt64(arena.count)))
        arena.append(contentsOf: bytes)
    }

    package mutating func append(_ value: Value) { cells.append(encode(value)) }

    /// Appends a row of absent cells, to be assigned by index with `set`.
    package mutating func appendAbsent(count: Int) -> RowRef {
        let start = Int32(cells.count)
        cells.append(contentsOf: repeatElement(.absent, count: count))
        return RowRef(start: start, count: Int32(count))
    }

    package mutating func set(_ row: RowRef, _ property: Int, _ cell: Cell) { cells[Int(row.start) + property] = cell }

    package mutating func set(_ row: RowRef, _ property: Int, _ value: Value) {
        cells[Int(row.start) + property] = encode(value)
    }

    /// Appends a copy of a row of another buffer.
    package mutating func append(_ view: RowView) -> RowRef {
        let start = Int32(cells.count)
        for index in 0..<view.count {
            var cell = view.cells[index]
            if cell.tag.isInArena {
                let bytes = view.bytes(of: cell)
                cell.bits = UInt64(arena.count)
                arena.append(contentsOf: bytes)
            }
            cells.append(cell)
        }
        return RowRef(start: start, count: Int32(view.count))
    }

    package func withView<R, E: Error>(_ row: RowRef, _ body: (RowView) throws(E) -> R) throws(E) -> R {
        try withBase { cells, arena throws(E) in
            try body(RowView(cells: cells + Int(row.start), count: Int(row.count), arena: arena))
        }
    }

    /// Lends the base addresses once for a loop over many rows.
    package func withBase<R, E: Error>(
        _ body: (UnsafePointer<Cell>, UnsafePointer<UInt8>) throws(E) -> R
    ) throws(E) -> R {
        try cells.withUnsafeBufferPointer { cellBuffer throws(E) in
            try arena.withUnsafeBufferPointer { arenaBuffer throws(E) in
                let cells = cellBuffer.baseAddress ?? RowBuffer.nothing.assumingMemoryBound(to: Cell.self)
                let arena = arenaBuffer.baseAddress ?? RowBuffer.nothing.assumingMemoryBound(to: UInt8.self)
                return try body(cells, arena)
            }
        }
    }

    /// The address of a row without cells and of an arena without bytes.
    private nonisolated(unsafe) static let nothing = UnsafeRawPointer(  // Safe because: no code reads through it.
        UnsafeMutableRawPointer.allocate(byteCount: 16, alignment: 16))
}

extension CellTag {
    /// `true` if `bits` is an offset in the arena.
    package var isInArena: Bool {
        switch self {
        case .string, .binary, .uuid, .decimal, .list, .dictionary, .link: true
        case .absent, .null, .bool, .int, .float, .double, .timestamp, .objectId: false
        }
    }
}

extension RowBuffer {
    private mutating func store(_ tag: CellTag, _ bytes: some Collection<UInt8>) -> Cell {
        let cell = Cell(tag: tag, length: UInt32(bytes.count), bits: UInt64(arena.count))
        arena.append(contentsOf: bytes)
        return cell
    }

    /// Returns the cell of a value and copies longer content to the arena.
    package mutating func encode(_ value: Value) -> Cell {
        switch value {
        case .null: .null
        case .bool(let v): Cell(tag: .bool, bits: v ? 1 : 0)
        case .int(let v): Cell(tag: .int, bits: UInt64(bitPattern: v))
        case .float(let v): Cell(tag: .float, bits: UInt64(v.bitPattern))
        case .double(let v): Cell(tag: .double, bits: v.bitPattern)
        case .decimal(let v): store(.decimal, v.bytes)
        case .string(let v): store(.string, v.utf8)
        case .binary(let v): store(.binary, v)
        case .timestamp(let v):
            Cell(tag: .timestamp, length: UInt32(bitPattern: v.nanoseconds), bits: UInt64(bitPattern: v.seconds))
        case .objectId(let v): Cell(tag: .objectId, length: v.low, bits: v.high)
        case .uuid(let v): store(.uuid, v.bytes)
        case .list, .dictionary, .link:
            store(ValueCoding.tag(of: value), ValueCoding.encode(value))
        }
    }
}

extension RowView {
    /// Returns the owning value of a cell, or nil if it is absent. A malformed container reads as null.
    package func value(of cell: Cell) -> Value? {
        switch cell.tag {
        case .absent: return nil
        case .null: return .null
        case .bool: return .bool(cell.bits != 0)
        case .int: return .int(Int64(bitPattern: cell.bits))
        case .float: return .float(Float(bitPattern: UInt32(truncatingIfNeeded: cell.bits)))
        case .double: return .double(Double(bitPattern: cell.bits))
        case .decimal: return .decimal(Decimal128(bytes: bytes(of: cell)))
        case .string: return .string(String(decoding: bytes(of: cell), as: UTF8.self))
        case .binary: return .binary(Array(bytes(of: cell)))
        case .timestamp:
            return .timestamp(
                Timestamp(seconds: Int64(bitPattern: cell.bits), nanoseconds: Int32(bitPattern: cell.length)))
        case .objectId: return .objectId(ObjectIdentifierBytes(high: cell.bits, low: cell.length))
        case .uuid: return .uuid(UUIDBytes(bytes: bytes(of: cell)))
        case .list, .dictionary, .link: return ValueCoding.decode(bytes(of: cell), as: cell.tag) ?? .null
        }
    }

    /// Returns the owning value of a property, or nil if it is absent.
    package func value(_ property: Int) -> Value? { value(of: self[property]) }

    /// Returns all values by property index, nil if absent.
    package func values() -> [Value?] { (0..<count).map { value($0) } }
}

/// One row in owning form, as stores, tests and the merge pass it. An absent value is nil.
package struct Row: Hashable, Sendable {
    package var values: [Value?]

    package init(_ values: [Value?]) { self.values = values }
    package init(_ view: RowView) { values = view.values() }

    package subscript(_ property: Int) -> Value? {
        get { property < values.count ? values[property] : nil }
        set { values[property] = newValue }
    }
}

extension RowBuffer {
    package mutating func append(_ row: Row) -> RowRef {
        beginRow()
        for value in row.values {
            if let value { append(value) } else { append(Cell.absent) }
        }
        return endRow()
    }
}

extension Row {
    /// Creates a row from values by property name. A missing value is absent.
    package init(_ values: [String: Value], of type: ObjectType) { self.init(type.properties.map { values[$0.name] }) }
}
