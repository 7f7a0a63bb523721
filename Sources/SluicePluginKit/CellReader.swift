import CSluicePlugin
import SluiceValues

/// Reads cells in place. The host has checked that offsets and lengths are within the arena.
@safe struct CellReader {
    private let arena: UnsafeRawPointer

    init(arena: UnsafeRawPointer) { unsafe self.arena = arena }

    func cell(_ start: Int, _ index: Int) -> sluice_cell {
        unsafe arena.load(fromByteOffset: start + index * MemoryLayout<sluice_cell>.stride, as: sluice_cell.self)
    }

    func bytes(_ cell: sluice_cell) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: arena + Int(cell.bits), count: Int(cell.length))
    }

    func text(_ cell: sluice_cell) -> String { unsafe String(decoding: bytes(cell), as: UTF8.self) }

    /// Returns the cell in extended JSON, or nil if it is absent.
    func value(_ cell: sluice_cell) -> PluginValue? {
        switch sluice_tag(rawValue: UInt32(cell.tag)) {
        case SLUICE_TAG_ABSENT: nil
        case SLUICE_TAG_NULL: .null
        case SLUICE_TAG_BOOL: .bool(cell.bits != 0)
        case SLUICE_TAG_INT: .int(Int64(bitPattern: cell.bits))
        case SLUICE_TAG_FLOAT: ExtendedForm.json(ExtendedForm.shortest(cell.float))
        case SLUICE_TAG_DOUBLE: ExtendedForm.json(Double(bitPattern: cell.bits))
        case SLUICE_TAG_DECIMAL: ["$numberDecimal": .string(text(cell))]
        case SLUICE_TAG_STRING: .string(text(cell))
        case SLUICE_TAG_BINARY: ExtendedForm.json(base64: unsafe Base64.encode(unsafe bytes(cell)))
        case SLUICE_TAG_DATE: ExtendedForm.timestamp(Timestamp(seconds: cell.seconds, nanoseconds: cell.nanoseconds)).json
        case SLUICE_TAG_OBJECT_ID: ExtendedForm.objectId(ObjectIdentifierBytes(high: cell.bits, low: cell.length)).json
        case SLUICE_TAG_UUID: unsafe ExtendedForm.uuid(UUIDBytes(bytes: unsafe bytes(cell))).json
        case SLUICE_TAG_LIST: .array((0..<Int(cell.length)).map { inside(cell, $0) })
        case SLUICE_TAG_DICTIONARY: dictionary(cell)
        case SLUICE_TAG_LINK: ["$ref": inside(cell, 0), "$id": inside(cell, 1)]
        default: .null
        }
    }

    private func inside(_ cell: sluice_cell, _ index: Int) -> PluginValue {
        value(self.cell(Int(cell.bits), index)) ?? .null
    }

    private func dictionary(_ cell: sluice_cell) -> PluginValue {
        .object(
            stride(from: 0, to: Int(cell.length), by: 2).map { index in
                PluginValue.Member(text(self.cell(Int(cell.bits), index)), inside(cell, index + 1))
            })
    }

    /// `true` if two cells have equal contents, bit for bit. `false` for containers that are not empty, which are not compared.
    func areAlike(_ left: sluice_cell, _ right: sluice_cell) -> Bool {
        guard left.tag == right.tag, left.length == right.length else { return false }
        switch sluice_tag(rawValue: UInt32(left.tag)) {
        case SLUICE_TAG_DECIMAL, SLUICE_TAG_STRING, SLUICE_TAG_BINARY, SLUICE_TAG_UUID:
            return unsafe bytes(left).elementsEqual(bytes(right))
        case SLUICE_TAG_LIST, SLUICE_TAG_DICTIONARY, SLUICE_TAG_LINK: return left.length == 0
        default: return left.bits == right.bits
        }
    }
}

extension sluice_cell {
    var isNull: Bool { UInt32(tag) <= SLUICE_TAG_NULL.rawValue }
    func `is`(_ other: sluice_tag) -> Bool { UInt32(tag) == other.rawValue }

    var float: Float { Float(bitPattern: UInt32(truncatingIfNeeded: bits)) }
    var seconds: Int64 { Int64(bitPattern: bits) }
    var nanoseconds: Int32 { Int32(bitPattern: length) }
}
