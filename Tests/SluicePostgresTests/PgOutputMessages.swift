import SluiceCore
import SluicePorts
import SluicePostgres

/// Builds pgoutput messages by hand.
enum PgOutputMessages {
    /// A column of a row: nil is NULL, `unchanged` the large value that was not sent.
    enum Column: ExpressibleByStringLiteral, ExpressibleByNilLiteral {
        case text(String), null, unchanged
        init(stringLiteral value: String) { self = .text(value) }
        init(nilLiteral: ()) { self = .null }
    }

    static func begin(_ lsn: UInt64, time: Int64 = 0, xid: UInt32 = 7) -> [UInt8] {
        [UInt8(ascii: "B")] + big(lsn) + big(UInt64(bitPattern: time)) + big(xid)
    }

    static func commit(_ lsn: UInt64, end: UInt64) -> [UInt8] {
        [UInt8(ascii: "C"), 0] + big(lsn) + big(end) + big(0 as UInt64)
    }

    static func relation(_ id: UInt32, schema: String = "public", _ table: String, _ columns: [String]) -> [UInt8] {
        var bytes = [UInt8(ascii: "R")] + big(id) + zero(schema) + zero(table) + [UInt8(ascii: "f")] + big(UInt16(columns.count))
        for column in columns { bytes += [0] + zero(column) + big(25 as UInt32) + big(UInt32.max) }
        return bytes
    }

    static func insert(_ id: UInt32, _ row: [Column]) -> [UInt8] { [UInt8(ascii: "I")] + big(id) + [UInt8(ascii: "N")] + tuple(row) }

    static func update(_ id: UInt32, _ old: [Column]?, _ new: [Column]) -> [UInt8] {
        [UInt8(ascii: "U")] + big(id) + (old.map { [UInt8(ascii: "O")] + tuple($0) } ?? []) + [UInt8(ascii: "N")] + tuple(new)
    }

    static func delete(_ id: UInt32, _ old: [Column], kind: Unicode.Scalar = "O") -> [UInt8] {
        [UInt8(ascii: "D")] + big(id) + [UInt8(truncatingIfNeeded: kind.value)] + tuple(old)
    }

    static func truncate(_ ids: [UInt32]) -> [UInt8] { [UInt8(ascii: "T")] + big(UInt32(ids.count)) + [0] + ids.flatMap { big($0) } }

    static func message(_ prefix: String, _ content: String, isTransactional: Bool = true) -> [UInt8] {
        [UInt8(ascii: "M"), isTransactional ? 1 : 0] + big(0 as UInt64) + zero(prefix) + big(UInt32(content.utf8.count))
            + Array(content.utf8)
    }

    private static func tuple(_ row: [Column]) -> [UInt8] {
        big(UInt16(row.count))
            + row.flatMap { column -> [UInt8] in
                switch column {
                case .text(let text): [UInt8(ascii: "t")] + big(UInt32(text.utf8.count)) + Array(text.utf8)
                case .null: [UInt8(ascii: "n")]
                case .unchanged: [UInt8(ascii: "u")]
                }
            }
    }

    private static func zero(_ text: String) -> [UInt8] { Array(text.utf8) + [0] }
    private static func big(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { unsafe Array($0) } }
}

extension PgOutputDecoder {
    mutating func decode(_ message: [UInt8], into batch: inout CaptureBatch) throws(MalformedMessage) {
        try message.withUnsafeBufferPointer { (bytes) throws(MalformedMessage) in try decode(bytes, into: &batch) }
    }
}

extension CaptureBatch {
    func row(_ ref: RowRef?) -> [Value?]? { ref.map { rows.withView($0) { $0.values() } } }

    /// What happened, one line each: operation, ordinal, old and new values.
    var story: [String] {
        changes.map { change in
            func text(_ ref: RowRef?) -> String {
                guard let values = row(ref) else { return "-" }
                return values.map { value in
                    switch value {
                    case nil: "absent"
                    case .null?: "null"
                    case .int(let int)?: "\(int)"
                    case .string(let string)?: string
                    case .some(let other): "\(other)"
                    }
                }.joined(separator: ",")
            }
            return "\(change.operation) \(change.position.ordinal) \(text(change.before)) -> \(text(change.after))"
        }
    }
}
