package import SluiceCore
import SluiceValues

extension ColumnForm {
    /// Decodes PostgreSQL's text form of a value into a cell.
    ///
    /// The settings are `DateStyle ISO`, `IntervalStyle iso_8601`, `TimeZone UTC` and `bytea_output hex`.
    ///
    /// Longer content goes into the buffer's arena. Scalars allocate nothing.
    /// - Parameter bytes: The text; nil for NULL.
    /// - Throws: `Misfit` if the value does not fit the property. The arena may have grown by then.
    @unsafe
    package func decode(_ bytes: UnsafeBufferPointer<UInt8>?, into buffer: inout RowBuffer) throws(Misfit) -> Cell {
        guard let bytes = unsafe bytes else { return try null(into: &buffer) }
        switch code {
        case .array, .set: return unsafe try array(bytes, into: &buffer)
        case .json: return unsafe try json(bytes, into: &buffer)
        default: return unsafe try scalar(code, bytes, into: &buffer)
        }
    }

    /// Returns the cell of a scalar; nil if the text is malformed, and for containers.
    @inline(__always)
    static func quick(_ code: Code, _ bytes: UnsafeBufferPointer<UInt8>, into buffer: inout RowBuffer) -> Cell? {
        switch code {
        case .int: return unsafe TextNumbers.integer(bytes).map { Cell(tag: .int, bits: UInt64(bitPattern: $0)) }
        case .string, .time, .zonedTime, .interval: return unsafe buffer.stored(.string, bytes)
        case .bool:
            guard bytes.count == 1 else { return nil }
            if unsafe bytes[0] == UInt8(ascii: "t") { return Cell(tag: .bool, bits: 1) }
            return unsafe bytes[0] == UInt8(ascii: "f") ? Cell(tag: .bool, bits: 0) : nil
        case .double: return unsafe TextNumbers.double(bytes).map { Cell(tag: .double, bits: $0.bitPattern) }
        case .float: return unsafe TextNumbers.float(bytes).map { Cell(tag: .float, bits: UInt64($0.bitPattern)) }
        case .timestamp: return unsafe TextTimestamp.microseconds(bytes).map { .timestamp(microseconds: $0) }
        case .localTime: return unsafe TextTimestamp.microseconds(local: bytes).map { .timestamp(microseconds: $0) }
        case .date: return unsafe TextTimestamp.microseconds(date: bytes).map { .timestamp(microseconds: $0) }
        case .character: return unsafe buffer.stored(.string, TextBytes.withoutPadding(bytes))
        case .objectId: return unsafe TextBytes.objectId(bytes)
        case .uuid: return unsafe TextBytes.uuid(bytes, into: &buffer)
        case .binary: return unsafe TextBytes.binary(bytes, into: &buffer)
        case .decimal: return unsafe Decimal128(String(decoding: bytes, as: UTF8.self)).map { buffer.encode(.decimal($0)) }
        case .array, .set, .json: return nil
        }
    }

    private func scalar(_ code: Code, _ bytes: UnsafeBufferPointer<UInt8>, into buffer: inout RowBuffer) throws(Misfit) -> Cell {
        guard let cell = unsafe Self.quick(code, bytes, into: &buffer) else { throw unsafe misfit(code, bytes) }
        return cell
    }

    /// Decodes a one-dimensional array literal such as `{1,NULL,"a \"b\""}`.
    private func array(_ bytes: UnsafeBufferPointer<UInt8>, into buffer: inout RowBuffer) throws(Misfit) -> Cell {
        var reader = unsafe ArrayLiteral(bytes: bytes)
        guard reader.open() else {
            throw unsafe misfit("expected \(columnType), found '\(String(decoding: bytes.prefix(60), as: UTF8.self))'")
        }
        var values: [Value] = []
        var scratch = RowBuffer()
        while true {
            switch reader.next() {
            case .end: return buffer.encode(code == .set ? Value.set(values) : .list(values))
            case .null:
                if isRequired { throw misfit("an element is NULL and the elements are required") }
                values.append(.null)
            case .element(let text):
                scratch.removeAll()
                let value: Value? = unsafe try text.withUnsafeBufferPointer { text throws(Misfit) in
                    let cell = unsafe try scalar(element, text, into: &scratch)
                    return unsafe scratch.withBase { cells, arena in
                        unsafe RowView(cells: cells, count: 0, arena: arena).value(of: cell)
                    }
                }
                values.append(value ?? .null)
            case .malformed: throw unsafe misfit("expected \(columnType), found '\(String(decoding: bytes.prefix(60), as: UTF8.self))'")
            }
        }
    }
}

extension Cell {
    static func timestamp(microseconds: Int64) -> Cell {
        let nanoseconds = Int32(microseconds % 1_000_000) * 1_000
        return Cell(tag: .timestamp, length: UInt32(bitPattern: nanoseconds), bits: UInt64(bitPattern: microseconds / 1_000_000))
    }
}

extension RowBuffer {
    /// Returns the cell of bytes that are copied into the arena.
    @inline(__always)
    mutating func stored(_ tag: CellTag, _ bytes: UnsafeBufferPointer<UInt8>) -> Cell {
        let cell = Cell(tag: tag, length: UInt32(truncatingIfNeeded: bytes.count), bits: UInt64(arena.count))
        unsafe arena.append(contentsOf: bytes)
        return cell
    }
}

/// A reader of the elements of an array literal.
@safe
private struct ArrayLiteral {
    enum Item {
        case end, null, malformed
        case element([UInt8])
    }

    private let bytes: UnsafeBufferPointer<UInt8>
    private let count: Int
    private var position = 0
    private var isFirst = true

    init(bytes: UnsafeBufferPointer<UInt8>) {
        unsafe self.bytes = bytes
        count = bytes.count
    }

    private var current: UInt8? { position < count ? unsafe bytes[position] : nil }

    /// Skips the bounds (`[0:2]=`) and the opening brace. Returns `false` without a brace.
    mutating func open() -> Bool {
        if current == UInt8(ascii: "[") {
            while let byte = current, byte != UInt8(ascii: "=") { position += 1 }
            position += 1
        }
        guard current == UInt8(ascii: "{") else { return false }
        position += 1
        return true
    }

    mutating func next() -> Item {
        if current == UInt8(ascii: "}") {
            position += 1
            return position == count ? .end : .malformed
        }
        if !isFirst {
            guard current == UInt8(ascii: ",") else { return .malformed }
            position += 1
        }
        isFirst = false
        switch current {
        // An array of more dimensions does not fit.
        case nil, UInt8(ascii: "{"): return .malformed
        case UInt8(ascii: "\""): return quoted()
        default: return plain()
        }
    }

    private mutating func quoted() -> Item {
        position += 1
        var text: [UInt8] = []
        while let byte = current, byte != UInt8(ascii: "\"") {
            if byte == UInt8(ascii: "\\") { position += 1 }
            guard let content = current else { return .malformed }
            text.append(content)
            position += 1
        }
        guard current != nil else { return .malformed }
        position += 1
        return .element(text)
    }

    private mutating func plain() -> Item {
        let start = position
        while let byte = current, byte != UInt8(ascii: ","), byte != UInt8(ascii: "}") { position += 1 }
        let text = unsafe Array(bytes[start..<position])
        // Only an unquoted NULL is null.
        return text == Array("NULL".utf8) ? .null : .element(text)
    }
}
