import CSluicePlugin
import SluiceCore
package import SluicePorts
import SluiceValues

/// A batch of writes or asymmetric objects, as sent to a plugin's host: the rows of sluice_rows.h, read in place.
///
/// Both sides are of one machine and release, so numbers have the machine's byte order and the format has no version. Every offset counts
/// from the start of the frame, which is also the arena of the cells.
///
/// - Offset 0: the counts of classes and of writes, 32 bits each.
/// - Offset 8: the offsets of the classes and of the writes.
/// - Offset 16: the user's id, the user's type and the user as JSON, each as offset and length.
/// - A class, 24 bytes: offset and length of its name, offset and count of its columns, its primary key, 0.
/// - A column: offset and length of its name.
/// - A write, 24 bytes: index of its class, operation, offset and count of the cells before and after, 0 for no row.
/// - Cells: 16 bytes each, at multiples of 8. Text and bytes are at any offset.
package enum RowFrame {
    static let headerBytes = 40
    static let recordBytes = 24
    static let columnBytes = 8
    static let cellBytes = MemoryLayout<sluice_cell>.size

    /// Encodes writes of one user.
    package static func encode(_ user: UserContext, _ writes: [ProposedWrite]) -> [UInt8] {
        var types = TypeTable()
        let indices = writes.map { types.index(of: $0.type) }
        var writer = FrameWriter(capacity: 1_024 + writes.count * 1_024)
        _ = writer.room(headerBytes)
        writer.put(text: user.id.utf8, at: 16)
        writer.put(text: user.type.utf8, at: 24)
        writer.put(text: HookCoding.json(user).utf8, at: 32)
        let records = writer.table(types.types, records: writes.count)
        for (index, write) in writes.enumerated() { writer.put(write, type: indices[index], at: records + index * recordBytes) }
        return writer.bytes
    }

    /// Encodes some objects of one class, each as an insert. The class is included even without objects.
    package static func encode(_ objects: ObjectRows, _ indices: [Int]) -> [UInt8] {
        var writer = FrameWriter(capacity: 1_024 + indices.count * (recordBytes + objects.type.properties.count * 2 * cellBytes))
        _ = writer.room(headerBytes)
        let records = writer.table([objects.type], records: indices.count)
        unsafe objects.buffer.withBase { cells, arena in
            for (index, object) in indices.enumerated() {
                let row = objects.rows[object]
                let view = unsafe RowView(cells: cells + Int(row.start), count: Int(row.count), arena: arena)
                writer.put(insert: view, columns: objects.type.properties.count, at: records + index * recordBytes)
            }
        }
        return writer.bytes
    }

    /// The classes of a batch, each once.
    private struct TypeTable {
        var types: [ObjectType] = []

        /// Returns the index of a class. A linear search suffices, because most batches have one or two classes.
        mutating func index(of type: ObjectType) -> Int {
            if let index = types.lastIndex(where: { $0.name.hasSameBytes(as: type.name) && $0.properties == type.properties }) {
                return index
            }
            types.append(type)
            return types.count - 1
        }
    }
}

private struct FrameWriter {
    var bytes: [UInt8] = []

    init(capacity: Int) { bytes.reserveCapacity(capacity) }

    /// Appends zeroed bytes at a multiple of 8. Zeroing keeps this process's memory out of padding and unset cells.
    /// - Returns: their offset.
    mutating func room(_ count: Int) -> Int {
        let start = (bytes.count + 7) & ~7
        bytes.append(contentsOf: repeatElement(0, count: start - bytes.count + count))
        return start
    }

    /// Appends the classes, and room for the records of rows.
    /// - Returns: the offset of the records.
    mutating func table(_ types: [ObjectType], records: Int) -> Int {
        let typesStart = room(types.count * RowFrame.recordBytes)
        for (index, type) in types.enumerated() { put(type, at: typesStart + index * RowFrame.recordBytes) }
        let recordsStart = room(records * RowFrame.recordBytes)
        put(types.count, records, at: 0)
        put(typesStart, recordsStart, at: 8)
        return recordsStart
    }

    /// Stores two 32-bit numbers. A frame too large for them exceeds the message limit, which is checked on sending.
    mutating func put(_ first: Int, _ second: Int, at place: Int) {
        store(UInt32(truncatingIfNeeded: first), at: place)
        store(UInt32(truncatingIfNeeded: second), at: place + 4)
    }

    mutating func put(text: some Collection<UInt8>, at place: Int) { put(append(text), text.count, at: place) }

    mutating func put(_ type: ObjectType, at place: Int) {
        put(text: type.name.utf8, at: place)
        let columns = room(type.properties.count * RowFrame.columnBytes)
        put(columns, type.properties.count, at: place + 8)
        for (index, property) in type.properties.enumerated() {
            put(text: property.name.utf8, at: columns + index * RowFrame.columnBytes)
        }
        put(type.primaryKey ?? Int(SLUICE_NO_COLUMN), 0, at: place + 16)
    }

    mutating func put(_ write: ProposedWrite, type: Int, at place: Int) {
        let operation =
            switch write.operation {
            case .insert: SLUICE_INSERT
            case .update: SLUICE_UPDATE
            case .delete: SLUICE_DELETE
            }
        put(type, Int(operation.rawValue), at: place)
        // The fields are zero already, and offset 0 means no row.
        if let row = write.before { put(row, columns: write.type.properties.count, at: place + 8) }
        if let row = write.after { put(row, columns: write.type.properties.count, at: place + 16) }
    }

    mutating func put(insert row: RowView, columns: Int, at place: Int) {
        put(0, Int(SLUICE_INSERT.rawValue), at: place)
        let cells = room(columns * RowFrame.cellBytes)
        put(cells, columns, at: place + 16)
        for index in 0..<columns { put(row[index], of: row, at: cells + index * RowFrame.cellBytes) }
    }

    /// Stores a cell. Both sides have equal cells except for decimals, which plugins receive as text, and nested values.
    private mutating func put(_ cell: Cell, of row: RowView, at place: Int) {
        switch cell.tag {
        case .absent: break
        case .null: self.cell(SLUICE_TAG_NULL, at: place)
        case .bool: self.cell(SLUICE_TAG_BOOL, bits: cell.bits, at: place)
        case .int: self.cell(SLUICE_TAG_INT, bits: cell.bits, at: place)
        case .float: self.cell(SLUICE_TAG_FLOAT, bits: cell.bits, at: place)
        case .double: self.cell(SLUICE_TAG_DOUBLE, bits: cell.bits, at: place)
        case .timestamp: self.cell(SLUICE_TAG_DATE, length: cell.length, bits: cell.bits, at: place)
        case .objectId: self.cell(SLUICE_TAG_OBJECT_ID, length: cell.length, bits: cell.bits, at: place)
        case .string: unsafe self.cell(SLUICE_TAG_STRING, content: row.bytes(of: cell), at: place)
        case .binary: unsafe self.cell(SLUICE_TAG_BINARY, content: row.bytes(of: cell), at: place)
        case .uuid: unsafe self.cell(SLUICE_TAG_UUID, content: row.bytes(of: cell), at: place)
        case .decimal, .list, .dictionary, .link: put(row.value(of: cell) ?? .null, at: place)
        }
    }

    private mutating func put(_ row: Row, columns: Int, at place: Int) {
        let cells = room(columns * RowFrame.cellBytes)
        put(cells, columns, at: place)
        for (index, value) in row.values.prefix(columns).enumerated() {
            if let value { put(value, at: cells + index * RowFrame.cellBytes) }
        }
    }

    private mutating func put(_ value: Value, at place: Int) {
        switch value {
        case .null: cell(SLUICE_TAG_NULL, at: place)
        case .bool(let v): cell(SLUICE_TAG_BOOL, bits: v ? 1 : 0, at: place)
        case .int(let v): cell(SLUICE_TAG_INT, bits: UInt64(bitPattern: v), at: place)
        case .float(let v): cell(SLUICE_TAG_FLOAT, bits: UInt64(v.bitPattern), at: place)
        case .double(let v): cell(SLUICE_TAG_DOUBLE, bits: v.bitPattern, at: place)
        case .decimal(let v): cell(SLUICE_TAG_DECIMAL, content: v.description.utf8, at: place)
        case .string(let v): cell(SLUICE_TAG_STRING, content: v.utf8, at: place)
        case .binary(let v): cell(SLUICE_TAG_BINARY, content: v, at: place)
        case .timestamp(let v):
            cell(SLUICE_TAG_DATE, length: UInt32(bitPattern: v.nanoseconds), bits: UInt64(bitPattern: v.seconds), at: place)
        case .objectId(let v): cell(SLUICE_TAG_OBJECT_ID, length: v.low, bits: v.high, at: place)
        case .uuid(let v): cell(SLUICE_TAG_UUID, content: v.bytes, at: place)
        case .list(let elements): cells(SLUICE_TAG_LIST, elements, at: place)
        case .dictionary(let pairs):
            // Sort by bytes, so that equal values have equal frames.
            let sorted = pairs.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            cells(SLUICE_TAG_DICTIONARY, sorted.flatMap { [.string($0.key), $0.value] }, at: place)
        case .link(let type, let key): cells(SLUICE_TAG_LINK, [.string(type), key], at: place)
        }
    }

    private mutating func cell(_ tag: sluice_tag, length: UInt32 = 0, bits: UInt64 = 0, at place: Int) {
        bytes[place] = UInt8(truncatingIfNeeded: tag.rawValue)
        store(length, at: place + 4)
        store(bits, at: place + 8)
    }

    private mutating func cell(_ tag: sluice_tag, content: some Collection<UInt8>, at place: Int) {
        let start = append(content)
        cell(tag, length: UInt32(truncatingIfNeeded: content.count), bits: UInt64(start), at: place)
    }

    private mutating func cells(_ tag: sluice_tag, _ values: [Value], at place: Int) {
        let start = room(values.count * RowFrame.cellBytes)
        cell(tag, length: UInt32(truncatingIfNeeded: values.count), bits: UInt64(start), at: place)
        for (index, value) in values.enumerated() { put(value, at: start + index * RowFrame.cellBytes) }
    }

    private mutating func append(_ content: some Collection<UInt8>) -> Int {
        defer { bytes.append(contentsOf: content) }
        return bytes.count
    }

    private mutating func store<T: FixedWidthInteger>(_ value: T, at place: Int) {
        unsafe bytes.withUnsafeMutableBytes { unsafe $0.storeBytes(of: value, toByteOffset: place, as: T.self) }
    }
}
