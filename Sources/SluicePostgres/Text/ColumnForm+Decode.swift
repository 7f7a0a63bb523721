package import SluiceCore

extension ColumnForm {
    /// Reads PostgreSQL's text form of a value (`DateStyle ISO`, `TimeZone UTC`, `bytea_output hex`) into a cell, longer
    /// content into the buffer's arena. Scalars allocate nothing.
    ///
    /// - Parameter bytes: nil for NULL.
    /// - Throws: when the value does not fit the property; the arena may have grown by then.
    @unsafe
    package func decode(_ bytes: UnsafeBufferPointer<UInt8>?, into buffer: inout RowBuffer) throws(Misfit) -> Cell {
        guard let bytes = unsafe bytes else { return try null(into: &buffer) }
        switch code {
        case .array, .set: return unsafe try array(bytes, into: &buffer)
        case .json: return unsafe try json(bytes, into: &buffer)
        default: return unsafe try scalar(code, bytes, into: &buffer)
        }
    }

    @inline(__always)
    func scalar(_ code: Code, _ bytes: UnsafeBufferPointer<UInt8>, into buffer: inout RowBuffer) throws(Misfit) -> Cell {
        switch code {
        case .int:
            if let value = unsafe TextNumbers.integer(bytes) { return Cell(tag: .int, bits: UInt64(bitPattern: value)) }
        case .string: return unsafe buffer.stored(.string, bytes)
        case .bool:
            if bytes.count == 1, unsafe bytes[0] == UInt8(ascii: "t") { return Cell(tag: .bool, bits: 1) }
            if bytes.count == 1, unsafe bytes[0] == UInt8(ascii: "f") { return Cell(tag: .bool, bits: 0) }
        case .double:
            if let value = unsafe TextNumbers.double(bytes) { return Cell(tag: .double, bits: value.bitPattern) }
        case .float:
            if let value = unsafe TextNumbers.float(bytes) { return Cell(tag: .float, bits: UInt64(value.bitPattern)) }
        case .timestamp:
            if let value = unsafe TextTimestamp.microseconds(bytes) { return .timestamp(microseconds: value) }
        case .objectId:
            if let cell = unsafe TextBytes.objectId(bytes) { return cell }
        case .uuid:
            if let cell = unsafe TextBytes.uuid(bytes, into: &buffer) { return cell }
        case .binary:
            if let cell = unsafe TextBytes.binary(bytes, into: &buffer) { return cell }
        case .decimal:
            if let value = unsafe Decimal128(String(decoding: bytes, as: UTF8.self)) { return buffer.encode(.decimal(value)) }
        case .array, .set, .json: break
        }
        throw unsafe misfit(code, bytes)
    }

    /// Reads a one-dimensional array literal such as `{1,NULL,"a \"b\""}`.
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
    /// The cell of bytes copied into the arena.
    @inline(__always)
    mutating func stored(_ tag: CellTag, _ bytes: UnsafeBufferPointer<UInt8>) -> Cell {
        let cell = Cell(tag: tag, length: UInt32(truncatingIfNeeded: bytes.count), bits: UInt64(arena.count))
        unsafe arena.append(contentsOf: bytes)
        return cell
    }
}

/// The elements of an array literal one by one.
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

    /// Goes past the bounds (`[0:2]=`) and the opening brace.
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
        return text == Array("NULL".utf8) ? .null : .element(text)
    }
}
