/// One element of a document, in place. Its lengths have been checked, its text and nested documents have not.
///
/// Borrowed memory: valid as long as the document's bytes are.
package struct BSONElement {
    package let type: BSONType
    package let name: UnsafeRawBufferPointer
    /// The value without its type, name, length and terminator; a document, array or code with scope is whole.
    package let content: UnsafeRawBufferPointer
    /// The place of the content in the outermost document.
    package let offset: Int
    /// The subtype of binary data; 0 for other types.
    package let subtype: UInt8
}

/// A reader of the elements of one document, in place and in order. It allocates nothing.
package struct BSONCursor {
    private let bytes: UnsafeRawBufferPointer
    /// The place of the document in the outermost one.
    private let base: Int
    private var position = 4
    /// The place of the document's terminator.
    private let end: Int

    /// Opens a document.
    ///
    /// - Parameters:
    ///   - bytes: The whole document with its length and terminator, and nothing else.
    ///   - base: The place of the document in the outermost one, for errors.
    /// - Throws: `BSONError` if the length differs from the number of bytes, or the terminator is missing.
    package init(_ bytes: UnsafeRawBufferPointer, at base: Int = 0) throws(BSONError) {
        guard bytes.count >= BSONLimits.emptyDocumentBytes else {
            throw BSONError(offset: base, problem: "the document has \(bytes.count) bytes, and the smallest has 5")
        }
        let length = Int(bytes.loadUnaligned(as: Int32.self).littleEndianValue)
        guard length == bytes.count else {
            throw BSONError(offset: base, problem: "the document's length is \(length), and it has \(bytes.count) bytes")
        }
        guard bytes[length - 1] == 0 else {
            throw BSONError(offset: base + length - 1, problem: "the document has no terminator")
        }
        self.bytes = bytes
        self.base = base
        end = length - 1
    }

    /// Returns the next element; nil after the last.
    ///
    /// - Throws: `BSONError` for an unknown type, and a name or a value that reaches beyond the document.
    package mutating func next() throws(BSONError) -> BSONElement? {
        if position == end { return nil }
        let start = position
        guard let type = BSONType(rawValue: bytes[position]) else {
            throw failure(start, "0x\(Hex.encode([bytes[position]])) is not a type of BSON")
        }
        position += 1
        let name = try text("name")
        return try element(type, name)
    }

    private mutating func element(_ type: BSONType, _ name: UnsafeRawBufferPointer) throws(BSONError) -> BSONElement {
        var subtype: UInt8 = 0
        let content: UnsafeRawBufferPointer
        switch type {
        case .double, .date, .timestamp, .int64: content = try take(8, type)
        case .int32: content = try take(4, type)
        case .bool: content = try bool()
        case .objectId: content = try take(12, type)
        case .decimal128: content = try take(16, type)
        case .undefined, .null, .minKey, .maxKey: content = try take(0, type)
        case .string, .code, .symbol: content = try string(type)
        case .document, .array, .codeWithScope: content = try nested(type)
        case .binary: (content, subtype) = try binary()
        case .regularExpression: content = try regularExpression()
        case .dbPointer: content = try dbPointer()
        }
        let offset = content.baseAddress.map { $0 - (bytes.baseAddress ?? $0) } ?? position
        return BSONElement(type: type, name: name, content: content, offset: base + offset, subtype: subtype)
    }

    // MARK: Parts

    private func failure(_ position: Int, _ problem: String) -> BSONError { BSONError(offset: base + position, problem: problem) }

    private mutating func take(_ count: Int, _ type: BSONType) throws(BSONError) -> UnsafeRawBufferPointer {
        guard count <= end - position else { throw failure(position, "the \(type) reaches beyond its document") }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }

    /// Reads a length, which includes `least` bytes at least.
    private mutating func length(_ type: BSONType, least: Int) throws(BSONError) -> Int {
        let start = position
        let length = Int(try take(4, type).loadUnaligned(as: Int32.self).littleEndianValue)
        guard length >= least, length <= end - position else { throw failure(start, "the \(type)'s length is \(length)") }
        return length
    }

    private mutating func bool() throws(BSONError) -> UnsafeRawBufferPointer {
        let content = try take(1, .bool)
        guard content[0] <= 1 else { throw failure(position - 1, "\(content[0]) is not a bool") }
        return content
    }

    private mutating func string(_ type: BSONType) throws(BSONError) -> UnsafeRawBufferPointer {
        let length = try length(type, least: 1)
        let content = try take(length, type)
        guard content[length - 1] == 0 else { throw failure(position - 1, "the \(type) has no terminator") }
        return UnsafeRawBufferPointer(rebasing: content.dropLast())
    }

    /// Reads a value whose length includes the length itself.
    private mutating func nested(_ type: BSONType) throws(BSONError) -> UnsafeRawBufferPointer {
        let start = position
        let length = Int(try take(4, type).loadUnaligned(as: Int32.self).littleEndianValue)
        position = start
        guard length >= BSONLimits.emptyDocumentBytes, length <= end - position else {
            throw failure(start, "the \(type)'s length is \(length)")
        }
        return try take(length, type)
    }

    private mutating func binary() throws(BSONError) -> (UnsafeRawBufferPointer, UInt8) {
        let start = position
        let length = try length(.binary, least: 0)
        let subtype = try take(1, .binary)[0]
        let content = try take(length, .binary)
        guard subtype == 2 else { return (content, subtype) }
        // The old generic subtype repeats the length inside.
        guard length >= 4, Int(content.loadUnaligned(as: Int32.self).littleEndianValue) == length - 4 else {
            throw failure(start, "the binary data of subtype 2 has no length of its own")
        }
        return (UnsafeRawBufferPointer(rebasing: content.dropFirst(4)), subtype)
    }

    /// Reads bytes up to a NUL, and the NUL.
    private mutating func text(_ what: StaticString) throws(BSONError) -> UnsafeRawBufferPointer {
        let start = position
        while position < end, bytes[position] != 0 { position += 1 }
        guard position < end else { throw failure(start, "the \(what) has no end") }
        position += 1
        return UnsafeRawBufferPointer(rebasing: bytes[start..<position - 1])
    }

    private mutating func regularExpression() throws(BSONError) -> UnsafeRawBufferPointer {
        let start = position
        _ = try text("pattern")
        _ = try text("options")
        return UnsafeRawBufferPointer(rebasing: bytes[start..<position])
    }

    private mutating func dbPointer() throws(BSONError) -> UnsafeRawBufferPointer {
        let start = position
        _ = try string(.dbPointer)
        _ = try take(12, .dbPointer)
        return UnsafeRawBufferPointer(rebasing: bytes[start..<position])
    }
}

extension FixedWidthInteger {
    /// The integer whose bytes were read from little-endian memory.
    @inline(__always)
    var littleEndianValue: Self { Self(littleEndian: self) }
}
