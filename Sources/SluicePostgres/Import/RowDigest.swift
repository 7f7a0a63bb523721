import SluiceCore
import SluiceValues

/// A number of rows and two sums of their hashes. The order of the rows does not matter, and digests can be added and subtracted.
///
/// It finds lost, doubled and changed rows. It is no protection against forged ones.
package struct RowDigest: Hashable, Sendable {
    package var rows: Int64 = 0
    package var first: UInt64 = 0
    package var second: UInt64 = 0

    package init() {}

    package init(rows: Int64, first: UInt64, second: UInt64) {
        self.rows = rows
        self.first = first
        self.second = second
    }

    package static func + (left: RowDigest, right: RowDigest) -> RowDigest {
        RowDigest(rows: left.rows + right.rows, first: left.first &+ right.first, second: left.second &+ right.second)
    }

    package static func - (left: RowDigest, right: RowDigest) -> RowDigest {
        RowDigest(rows: left.rows - right.rows, first: left.first &- right.first, second: left.second &- right.second)
    }

    /// The sums as 32 hexadecimal digits.
    package var text: String { Hex.encode(UUIDBytes(high: first, low: second).bytes) }

    /// Adds a row, as the table will return it.
    mutating func add(_ row: RowView, _ forms: [ColumnForm]) {
        var hash = RowHash()
        for (index, form) in forms.enumerated() where !form.isGenerated { hash.add(row[index], of: row, form) }
        add(hash)
    }

    mutating func add(_ hash: RowHash) {
        let pair = hash.pair
        rows += 1
        first &+= pair.first
        second &+= pair.second
    }
}

/// The hash of one row: a fold of 64-bit products over the tags and contents of its cells.
struct RowHash {
    private var state: UInt64 = 0x9E37_79B9_7F4A_7C15

    /// Two functions of the hash.
    struct Pair: Hashable {
        var first: UInt64
        var second: UInt64
    }

    var pair: Pair { Pair(first: Self.fold(state, 0xD6E8_FEB8_6659_FD93), second: Self.fold(~state, 0xA076_1D64_78BD_642F)) }

    @inline(__always)
    private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }

    @inline(__always)
    mutating func word(_ word: UInt64) { state = Self.fold(state ^ word, 0xE703_7ED1_A0B4_28DB) &+ (word << 23 | word >> 41) &+ 1 }

    mutating func bytes(_ bytes: UnsafeRawBufferPointer) {
        word(UInt64(bytes.count))
        var index = 0
        while index + 8 <= bytes.count {
            unsafe word(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
            index += 8
        }
        var rest: UInt64 = 0
        while index < bytes.count {
            unsafe rest = rest << 8 | UInt64(bytes[index])
            index += 1
        }
        word(rest)
    }

    /// Adds a cell. Values that PostgreSQL returns as one have one hash.
    mutating func add(_ cell: Cell, of row: RowView, _ form: ColumnForm) {
        switch cell.tag {
        case .null where form.property.collection == .none: word(0)
        case .string where form.code.changesTexts, .timestamp where form.code == .date: add(row.value(of: cell), form)
        case .bool: tagged(1, cell.bits)
        case .int: tagged(2, cell.bits)
        case .string: unsafe tagged(3, row.bytes(of: cell))
        case .binary: unsafe tagged(4, row.bytes(of: cell))
        case .uuid: unsafe tagged(5, row.bytes(of: cell))
        case .objectId:
            tagged(6, cell.bits)
            word(UInt64(cell.length))
        case .timestamp:
            let time = Timestamp(seconds: Int64(bitPattern: cell.bits), nanoseconds: Int32(bitPattern: cell.length))
            tagged(7, UInt64(bitPattern: time.microseconds))
        case .double: double(Double(bitPattern: cell.bits))
        case .float: double(Double(Float(bitPattern: UInt32(truncatingIfNeeded: cell.bits))))
        default: add(row.value(of: cell), form)
        }
    }

    private mutating func add(_ value: Value?, _ form: ColumnForm) {
        var value = value ?? form.property.emptyValue
        if form.property.collection != .none, value.isNull { value = form.property.emptyValue }
        if value.isNull { return word(0) }
        tagged(9, ValueHash(form.stored(value)).rawValue)
    }

    private mutating func double(_ value: Double) {
        tagged(8, value.isNaN ? Double.nan.bitPattern : value == 0 ? 0 : value.bitPattern)
    }

    @inline(__always)
    private mutating func tagged(_ tag: UInt64, _ content: UInt64) {
        word(tag)
        word(content)
    }

    private mutating func tagged(_ tag: UInt64, _ content: UnsafeBufferPointer<UInt8>) {
        word(tag)
        unsafe bytes(UnsafeRawBufferPointer(content))
    }
}
