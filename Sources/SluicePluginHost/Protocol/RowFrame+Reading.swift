package import CSluicePlugin
import SluiceCore

extension RowFrame {
    /// Calls `body` with a frame in the form of sluice_rows.h. The rows are used in place; only the tables that lead to them are built.
    ///
    /// Every offset, length and count is checked before, so that plugins need no checks.
    /// - Returns: nil, without a call, if the frame is malformed.
    package static func withWrites<R>(in frame: [UInt8], _ body: (UnsafePointer<sluice_writes>) -> R) -> R? {
        unsafe frame.withUnsafeBytes { bytes in
            // The bytes of a Swift array are aligned to 16. If they should not be, copy them, because cells need 8.
            guard let base = bytes.baseAddress, UInt(bitPattern: base) % 8 != 0 else {
                return unsafe withWrites(in: FrameReader(bytes), body)
            }
            let moved = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
            defer { unsafe moved.deallocate() }
            unsafe moved.copyMemory(from: bytes)
            return unsafe withWrites(in: FrameReader(UnsafeRawBufferPointer(moved)), body)
        }
    }

    private static func withWrites<R>(in frame: FrameReader, _ body: (UnsafePointer<sluice_writes>) -> R) -> R? {
        guard let shape = frame.shape(), let columns = unsafe frame.columns(shape) else { return nil }
        return unsafe columns.withUnsafeBufferPointer { columns -> R? in
            guard let types = unsafe frame.types(shape, columns) else { return nil }
            return unsafe types.withUnsafeBufferPointer { types -> R? in
                guard let writes = unsafe frame.writes(shape, types) else { return nil }
                return unsafe writes.withUnsafeBufferPointer { writes in
                    var batch = unsafe frame.batch(types, writes)
                    unsafe batch.user_id = shape.userID
                    unsafe batch.user_type = shape.userType
                    unsafe batch.user = shape.user
                    return unsafe withUnsafePointer(to: batch) { unsafe body($0) }
                }
            }
        }
    }
}

/// The header of a frame.
@safe
private struct FrameShape {
    var typeCount: Int
    var writeCount: Int
    var types: Int
    var writes: Int
    var userID: sluice_text
    var userType: sluice_text
    var user: sluice_text
}

/// Reads a frame in place. Its methods return nil for a malformed frame.
@safe
private struct FrameReader {
    private let bytes: UnsafeRawBufferPointer
    private let base: UnsafeRawPointer

    init(_ bytes: UnsafeRawBufferPointer) {
        unsafe self.bytes = bytes
        unsafe base = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 8)!
    }

    func shape() -> FrameShape? {
        guard unsafe bytes.count >= RowFrame.headerBytes else { return nil }
        let (typeCount, writeCount) = (number(0), number(4))
        let (types, writes) = (number(8), number(12))
        guard has(typeCount, of: RowFrame.recordBytes, at: types), has(writeCount, of: RowFrame.recordBytes, at: writes),
            let userID = unsafe text(16), let userType = unsafe text(24), let user = unsafe text(32)
        else { return nil }
        return unsafe FrameShape(
            typeCount: typeCount, writeCount: writeCount, types: types, writes: writes, userID: userID, userType: userType, user: user)
    }

    /// Returns the names of the columns of all classes, one class after the other.
    func columns(_ shape: FrameShape) -> [sluice_text]? {
        var columns: [sluice_text] = unsafe []
        for index in 0..<shape.typeCount {
            let record = shape.types + index * RowFrame.recordBytes
            let (start, count) = (number(record + 8), number(record + 12))
            // Also bound the sum, or overlapping column lists would make the result larger than the frame.
            guard unsafe has(columns.count + count, of: RowFrame.columnBytes, at: 0), has(count, of: RowFrame.columnBytes, at: start)
            else { return nil }
            for column in 0..<count {
                guard let name = unsafe text(start + column * RowFrame.columnBytes) else { return nil }
                unsafe columns.append(name)
            }
        }
        return unsafe columns
    }

    /// Returns the classes. `columns` must be the result of `columns(_:)` and outlive them.
    func types(_ shape: FrameShape, _ columns: UnsafeBufferPointer<sluice_text>) -> [sluice_type]? {
        var types: [sluice_type] = unsafe []
        var first = 0
        for index in 0..<shape.typeCount {
            let record = shape.types + index * RowFrame.recordBytes
            guard let name = unsafe text(record) else { return nil }
            let (count, key) = (number(record + 12), number(record + 16))
            // Plugins use the key as an index without checking it.
            guard key < count || key == Int(SLUICE_NO_COLUMN) else { return nil }
            let start = unsafe columns.baseAddress.map { unsafe $0 + first }
            unsafe types.append(
                sluice_type(name: name, columns: count == 0 ? nil : start, column_count: UInt32(count), primary_key: UInt32(key)))
            first += count
        }
        return unsafe types
    }

    /// Returns the writes. `types` must outlive them.
    func writes(_ shape: FrameShape, _ types: UnsafeBufferPointer<sluice_type>) -> [sluice_write]? {
        var writes: [sluice_write] = unsafe []
        unsafe writes.reserveCapacity(shape.writeCount)
        // Bound all rows together by the cells that fit, or overlapping rows could multiply the work.
        var budget = unsafe bytes.count / RowFrame.cellBytes
        for index in 0..<shape.writeCount {
            let record = shape.writes + index * RowFrame.recordBytes
            let (type, operation) = (number(record), number(record + 4))
            guard type < types.count, operation <= Int(SLUICE_DELETE.rawValue), let start = types.baseAddress else { return nil }
            let columns = unsafe Int(types[type].column_count)
            guard let before = unsafe row(record + 8, columns, &budget), let after = unsafe row(record + 16, columns, &budget) else {
                return nil
            }
            unsafe writes.append(
                sluice_write(type: start + type, operation: UInt32(operation), reserved: 0, before: before, after: after))
        }
        return unsafe writes
    }

    func batch(_ types: UnsafeBufferPointer<sluice_type>, _ writes: UnsafeBufferPointer<sluice_write>) -> sluice_writes {
        unsafe sluice_writes(
            size: UInt32(MemoryLayout<sluice_writes>.size), write_size: UInt32(MemoryLayout<sluice_write>.stride),
            type_size: UInt32(MemoryLayout<sluice_type>.stride), write_count: UInt32(writes.count), type_count: UInt32(types.count),
            reserved: 0, user_id: sluice_text(), user_type: sluice_text(), user: sluice_text(), types: types.baseAddress,
            writes: writes.baseAddress, arena: base.assumingMemoryBound(to: UInt8.self), arena_length: bytes.count)
    }

    /// Returns a row with as many cells as its class has columns, or a null row.
    private func row(_ place: Int, _ columns: Int, _ budget: inout Int) -> sluice_row? {
        let (start, count) = (number(place), number(place + 4))
        let arena = unsafe base.assumingMemoryBound(to: UInt8.self)
        // Offset 0 is the header, so it means that the row is absent.
        if start == 0 { return unsafe sluice_row(cells: nil, arena: arena, count: 0, reserved: 0) }
        guard count == columns, areCells(start, count, depth: 0, &budget) else { return nil }
        let cells = unsafe (base + start).assumingMemoryBound(to: sluice_cell.self)
        return unsafe sluice_row(cells: cells, arena: arena, count: UInt32(count), reserved: 0)
    }

    /// Checks cells and everything inside them: alignment, bounds, tags and nesting depth.
    private func areCells(_ start: Int, _ count: Int, depth: Int, _ budget: inout Int) -> Bool {
        budget -= count
        guard start % 8 == 0, has(count, of: RowFrame.cellBytes, at: start), budget >= 0, depth <= Limits.nestingDepth else {
            return false
        }
        for index in 0..<count {
            let cell = unsafe base.load(fromByteOffset: start + index * RowFrame.cellBytes, as: sluice_cell.self)
            let (place, length) = (Int(truncatingIfNeeded: cell.bits), Int(cell.length))
            switch sluice_tag(rawValue: UInt32(cell.tag)) {
            case SLUICE_TAG_ABSENT, SLUICE_TAG_NULL, SLUICE_TAG_BOOL, SLUICE_TAG_INT, SLUICE_TAG_FLOAT, SLUICE_TAG_DOUBLE, SLUICE_TAG_DATE,
                SLUICE_TAG_OBJECT_ID:
                continue
            case SLUICE_TAG_DECIMAL, SLUICE_TAG_STRING, SLUICE_TAG_BINARY:
                guard has(length, of: 1, at: place) else { return false }
            case SLUICE_TAG_UUID:
                guard length == 16, has(length, of: 1, at: place) else { return false }
            case SLUICE_TAG_LIST:
                guard areCells(place, length, depth: depth + 1, &budget) else { return false }
            case SLUICE_TAG_DICTIONARY:
                guard length % 2 == 0, areCells(place, length, depth: depth + 1, &budget) else { return false }
            case SLUICE_TAG_LINK:
                guard length == 2, areCells(place, length, depth: depth + 1, &budget) else { return false }
            default: return false
            }
        }
        return true
    }

    /// Reads a 32-bit number. The caller has checked that the frame contains `place`.
    private func number(_ place: Int) -> Int { unsafe Int(base.loadUnaligned(fromByteOffset: place, as: UInt32.self)) }

    private func text(_ place: Int) -> sluice_text? {
        let (start, length) = (number(place), number(place + 4))
        guard has(length, of: 1, at: start) else { return nil }
        return unsafe sluice_text(data: (base + start).assumingMemoryBound(to: CChar.self), length: length)
    }

    private func has(_ count: Int, of size: Int, at start: Int) -> Bool {
        // Divide instead of multiplying, which could overflow.
        unsafe start >= 0 && start <= bytes.count && count <= (bytes.count - start) / size
    }
}
