/// A parameter of a statement. PostgreSQL derives its type from the statement, except for `bytes`, which is `bytea`.
package enum PostgresParameter: Hashable, Sendable {
    case null
    /// The text form of the type that the statement expects. A NUL character is rejected with SQLSTATE 22021, because PostgreSQL
    /// cannot store it.
    case text(String)
    case bytes([UInt8])

    package static func int(_ value: some BinaryInteger) -> Self { .text(String(value)) }
    package static func bool(_ value: Bool) -> Self { .text(value ? "t" : "f") }
    /// `true` for a text that PostgreSQL cannot store.
    var hasNUL: Bool { if case .text(let text) = self { text.utf8.contains(0) } else { false } }

    package static func optional(_ text: String?) -> Self { text.map { .text($0) } ?? .null }
}

extension PostgresParameter: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByNilLiteral {
    package init(stringLiteral value: String) { self = .text(value) }
    package init(integerLiteral value: Int64) { self = .int(value) }
    package init(nilLiteral: ()) { self = .null }
}

/// The parameters of one statement in libpq's form, in buffers that the next statement reuses.
struct ParameterBuffer {
    private var content: [UInt8] = []
    private var offsets: [Int] = []
    private var lengths: [Int32] = []
    private var formats: [Int32] = []
    private var types: [UInt32] = []
    private static let byteaType: UInt32 = 17

    mutating func fill(_ parameters: [PostgresParameter]) {
        content.removeAll(keepingCapacity: true)
        offsets.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        formats.removeAll(keepingCapacity: true)
        types.removeAll(keepingCapacity: true)
        for parameter in parameters {
            switch parameter {
            case .null: add(offset: -1, length: 0, isBinary: false)
            case .text(let text):
                add(offset: content.count, length: text.utf8.count, isBinary: false)
                content.append(contentsOf: text.utf8)
                content.append(0)
            case .bytes(let bytes):
                add(offset: content.count, length: bytes.count, isBinary: true)
                content.append(contentsOf: bytes)
                content.append(0)
            }
        }
    }

    private mutating func add(offset: Int, length: Int, isBinary: Bool) {
        offsets.append(offset)
        lengths.append(Int32(clamping: length))
        formats.append(isBinary ? 1 : 0)
        types.append(isBinary ? Self.byteaType : 0)
    }

    /// The parameters as C arrays, valid only inside `withLent`.
    @unsafe struct Lent {
        var count: Int32
        var values: UnsafePointer<UnsafePointer<CChar>?>?
        var lengths: UnsafePointer<Int32>?
        var formats: UnsafePointer<Int32>?
        var types: UnsafePointer<UInt32>?
    }

    func withLent<R>(_ body: (Lent) throws -> R) rethrows -> R {
        try unsafe content.withUnsafeBytes { content in
            let base = content.baseAddress
            let values: [UnsafePointer<CChar>?] = unsafe offsets.map { offset in
                unsafe offset < 0 ? nil : base.map { unsafe ($0 + offset).assumingMemoryBound(to: CChar.self) }
            }
            return try unsafe values.withUnsafeBufferPointer { values in
                try unsafe lengths.withUnsafeBufferPointer { lengths in
                    try unsafe formats.withUnsafeBufferPointer { formats in
                        try unsafe types.withUnsafeBufferPointer { types in
                            try unsafe body(
                                Lent(
                                    count: Int32(types.count), values: values.baseAddress, lengths: lengths.baseAddress,
                                    formats: formats.baseAddress, types: types.baseAddress))
                        }
                    }
                }
            }
        }
    }
}
