package import SluiceCore

/// Splits a body that arrives in pieces into records: the lines of NDJSON, the elements of a JSON array, or one JSON value.
///
/// Memory is bounded by the current record, at most `recordBytes`. A longer record is skipped to its end and reported. The content of a
/// record is not validated.
package struct RecordCutter: Sendable {
    package enum Form: Sendable { case lines, json }

    package struct Record: Hashable, Sendable {
        /// The line of NDJSON or the position in the array, from 1.
        package var number: Int
        /// The bytes as received; nil for a record over `recordBytes`.
        package var bytes: [UInt8]?
    }

    private enum Place {
        /// Before anything but white space.
        case start
        case line
        /// In an array: between `[` or `,` and the end of an element.
        case element
        /// In a body that is one value.
        case whole
        case end
    }

    private let recordBytes: Int
    private var place: Place
    private var number = 0
    private var record: [UInt8] = []
    private var isTooLong = false
    /// The number of open containers in the element, and the state of its current string.
    private var depth = 0
    private var isInString = false
    private var isEscaped = false
    /// `true` while the element has only white space.
    private var isBlank = true

    package init(_ form: Form, recordBytes: Int = Limits.ingestObjectBytes) {
        place = form == .lines ? .line : .start
        self.recordBytes = recordBytes
    }

    /// Adds the next piece of the body and appends the records that it completes.
    /// - Throws: `badJSON` if the body is no array of records. Records before that position have been appended.
    package mutating func feed(_ bytes: some Collection<UInt8>, into records: inout [Record]) throws(SluiceError) {
        let outcome = bytes.withContiguousStorageIfAvailable { buffer in
            Result { () throws(SluiceError) in try self.cut(buffer, into: &records) }
        }
        if let outcome { try outcome.get() } else { try feed(Array(bytes), into: &records) }
    }

    /// Ends the body.
    /// - Throws: `badJSON` if an array has not ended, and for a body without any value that is not NDJSON.
    package mutating func finish(into records: inout [Record]) throws(SluiceError) {
        switch place {
        case .line: endLine(&records)
        case .whole: end(&records)
        case .start: throw SluiceError(.badJSON, "The body is empty.", fix: "Send a JSON object, an array of them, or NDJSON.")
        case .element:
            throw SluiceError(.badJSON, "The array ends in the middle, in element \(number + 1).", fix: "Send the rest again.")
        case .end: break
        }
        place = .end
    }

    private mutating func cut(_ bytes: UnsafeBufferPointer<UInt8>, into records: inout [Record]) throws(SluiceError) {
        var start = 0
        while start < bytes.count {
            switch place {
            case .line: start = cutLine(bytes, start, &records)
            case .start: start = begin(bytes, start)
            case .element: start = try cutElement(bytes, start, &records)
            case .whole:
                keep(bytes[start...])
                start = bytes.count
            case .end:
                guard let other = bytes[start...].first(where: { !Self.isSpace($0) }) else { return }
                throw SluiceError(.badJSON, "The character '\(Character(Unicode.Scalar(other)))' follows the end of the array.")
            }
        }
    }

    // MARK: Lines

    private mutating func cutLine(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ records: inout [Record]) -> Int {
        // The line continues in the next piece.
        guard let end = Self.newline(in: UnsafeRawBufferPointer(bytes), from: start) else {
            keep(bytes[start...])
            return bytes.count
        }
        keep(bytes[start..<end])
        endLine(&records)
        return end + 1
    }

    /// Returns the offset of the first newline, or nil. Compares eight bytes at a time, since most lines are long.
    private static func newline(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var index = start
        while index + 8 <= bytes.count {
            // A byte of `others` is zero where the body has a newline. Its highest bit is set in `found`, as may be those of later bytes.
            let others = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)) ^ 0x0a0a_0a0a_0a0a_0a0a
            let found = (others &- 0x0101_0101_0101_0101) & ~others & 0x8080_8080_8080_8080
            if found != 0 { return index + found.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "\n") { return index }
            index += 1
        }
        return nil
    }

    /// Ends a line. A blank line is counted and skipped.
    private mutating func endLine(_ records: inout [Record]) {
        if !isTooLong, record.allSatisfy(Self.isSpace) {
            number += 1
            record.removeAll(keepingCapacity: true)
        } else {
            end(&records)
        }
    }

    // MARK: Elements

    private mutating func begin(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int) -> Int {
        guard let first = bytes[start...].firstIndex(where: { !Self.isSpace($0) }) else { return bytes.count }
        place = bytes[first] == UInt8(ascii: "[") ? .element : .whole
        return place == .element ? first + 1 : first
    }

    private mutating func cutElement(
        _ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ records: inout [Record]
    ) throws(SluiceError) -> Int {
        var index = start
        while index < bytes.count {
            let byte = bytes[index]
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
            } else if depth == 0, byte == UInt8(ascii: ",") || byte == UInt8(ascii: "]") {
                keep(bytes[start..<index])
                endElement(isLast: byte == UInt8(ascii: "]"), &records)
                return index + 1
            } else {
                try look(at: byte)
            }
            index += 1
        }
        keep(bytes[start...])
        return bytes.count
    }

    /// Handles a byte of an element outside of its strings.
    private mutating func look(at byte: UInt8) throws(SluiceError) {
        switch byte {
        case UInt8(ascii: "\""): isInString = true
        case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
        case UInt8(ascii: "]"): depth -= 1
        case UInt8(ascii: "}"):
            guard depth > 0 else { throw SluiceError(.badJSON, "Element \(number + 1) of the array closes what it has not opened.") }
            depth -= 1
        default: if Self.isSpace(byte) { return }
        }
        isBlank = false
    }

    private mutating func endElement(isLast: Bool, _ records: inout [Record]) {
        if isLast { place = .end }
        // An empty array has no element.
        if isLast, isBlank, number == 0, !isTooLong { return }
        end(&records)
        isBlank = true
    }

    // MARK: Both

    private mutating func keep(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) {
        if isTooLong || bytes.isEmpty { return }
        if record.count + bytes.count > recordBytes {
            // Drop the bytes at once: only the end of the record matters from here on.
            isTooLong = true
            record = []
        } else {
            record.append(contentsOf: bytes)
        }
    }

    private mutating func end(_ records: inout [Record]) {
        number += 1
        records.append(Record(number: number, bytes: isTooLong ? nil : record))
        record = []
        isTooLong = false
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0D || byte == 0x09 || byte == 0x0A }
}
