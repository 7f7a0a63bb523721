import SluiceCore

/// A reader of decimal tokens: a header line, then entries in a body. Every method throws on bytes that do not fit; none traps.
struct TokenReader {
    let bytes: [UInt8]
    private(set) var position = 0
    private var isLineEnded = false
    private var isInBody: Bool

    init(_ bytes: [UInt8], isBody: Bool = false) {
        self.bytes = bytes
        isInBody = isBody
    }

    /// The number of bytes after the position.
    var remaining: Int { bytes.count - position }

    /// Reads the name of a message.
    mutating func name() throws(SluiceError) -> String {
        let start = position
        while position < bytes.count, position - start < 20, bytes[position] == UInt8(ascii: "_") || Self.isLowercase(bytes[position]) {
            position += 1
        }
        let name = String(decoding: bytes[start..<position], as: UTF8.self)
        guard !name.isEmpty, endToken() else {
            throw SluiceError(.badSyntax, "A message does not begin with a name.", value: excerpt, fix: "Use a supported SDK.")
        }
        return name
    }

    /// Reads a number of at most 63 bits.
    mutating func number(_ field: StaticString) throws(SluiceError) -> UInt64 {
        guard !isLineEnded else { throw fault(field, "is missing") }
        let start = position
        var value: UInt64 = 0
        while position < bytes.count, position - start < 19 {
            let digit = bytes[position] &- UInt8(ascii: "0")
            guard digit <= 9 else { break }
            // Nineteen digits fit 64 bits.
            value = value * 10 + UInt64(digit)
            position += 1
        }
        guard position > start, value <= UInt64(Int64.max), endToken() else { throw fault(field, "is not a number of 63 bits") }
        return value
    }

    mutating func flag(_ field: StaticString) throws(SluiceError) -> Bool {
        switch try number(field) {
        case 0: return false
        case 1: return true
        default: throw fault(field, "is neither 0 nor 1")
        }
    }

    mutating func size(_ field: StaticString, atMost limit: Int) throws(SluiceError) -> Int {
        let size = try number(field)
        guard size <= UInt64(limit) else {
            throw SluiceError(
                .limitsExceeded, "\(field) is \(size), and the limit is \(limit).", fix: "Split the write into several transactions.")
        }
        return Int(size)
    }

    /// Reads a fraction between 0 and 1, with at most 20 characters.
    mutating func fraction(_ field: StaticString) throws(SluiceError) -> Double {
        guard !isLineEnded else { throw fault(field, "is missing") }
        let start = position
        while position < bytes.count, position - start < 20, bytes[position] != UInt8(ascii: " "), bytes[position] != UInt8(ascii: "\n") {
            position += 1
        }
        guard let value = Double(String(decoding: bytes[start..<position], as: UTF8.self)), (0...1).contains(value), endToken() else {
            throw fault(field, "is not between 0 and 1")
        }
        return value
    }

    /// Ends the header line. What follows is the body.
    mutating func endLine() throws(SluiceError) {
        guard isLineEnded else { throw SluiceError(.badSyntax, "A header has too many fields.", value: excerpt) }
        isInBody = true
        isLineEnded = false
    }

    /// Reads bytes of the body.
    mutating func take(_ count: Int, _ field: StaticString) throws(SluiceError) -> [UInt8] {
        guard count >= 0, count <= remaining else {
            throw SluiceError(.badSyntax, "\(field) has \(count) bytes, and \(remaining) are left.", value: excerpt)
        }
        defer { position += count }
        return Array(bytes[position..<position + count])
    }

    /// Reads a text of the body.
    mutating func text(_ count: Int, _ field: StaticString) throws(SluiceError) -> String {
        guard let text = String(validating: try take(count, field), as: UTF8.self) else { throw fault(field, "is not UTF-8") }
        return text
    }

    /// Checks that the message ends here.
    func finish() throws(SluiceError) {
        guard remaining == 0 else { throw SluiceError(.badSyntax, "\(remaining) bytes follow a message's end.", value: excerpt) }
    }

    /// Consumes the space after a token, or in a header the line's end.
    private mutating func endToken() -> Bool {
        guard position < bytes.count else { return false }
        switch bytes[position] {
        case UInt8(ascii: " "): break
        case UInt8(ascii: "\n") where !isInBody: isLineEnded = true
        default: return false
        }
        position += 1
        return true
    }

    private static func isLowercase(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }

    private func fault(_ field: StaticString, _ problem: String) -> SluiceError {
        SluiceError(.badSyntax, "\(field) \(problem).", value: excerpt, fix: "Use a supported SDK.")
    }

    /// The first bytes of the message, for operators.
    private var excerpt: String {
        String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }.prefix(80), as: UTF8.self)
    }
}

/// A writer of header lines and entries.
struct TokenWriter {
    /// The room for a header line.
    private static let room = 192
    /// The digits of the largest number.
    private static let mostDigits = 20

    private(set) var bytes: [UInt8] = []

    /// Begins a header line, which `endLine` ends.
    /// - Parameter room: The bytes that follow the line.
    init(_ name: StaticString, room: Int) {
        bytes.reserveCapacity(Self.room + room)
        bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }

    /// A header line.
    init(_ name: StaticString, _ fields: [UInt64]) {
        self.init(name, room: 0)
        for field in fields { self.field(field) }
        endLine()
    }

    /// Entries without a header line.
    init() {}

    /// A message with a body.
    init(_ name: StaticString, _ fields: [UInt64], body: [UInt8]) {
        self.init(name, room: body.count)
        for field in fields { self.field(field) }
        endLine()
        append(body)
    }

    /// Returns the number of digits that a number has.
    static func digits(of number: UInt64) -> Int {
        var (digits, rest) = (1, number)
        while rest >= 10 {
            digits += 1
            rest /= 10
        }
        return digits
    }

    /// Writes a field of a header line.
    mutating func field(_ number: UInt64) {
        bytes.append(UInt8(ascii: " "))
        append(number)
    }

    /// Writes a field of a header line.
    mutating func field(_ text: String) {
        bytes.append(UInt8(ascii: " "))
        bytes.append(contentsOf: text.utf8)
    }

    mutating func endLine() { bytes.append(UInt8(ascii: "\n")) }

    mutating func append(_ body: [UInt8]) { bytes.append(contentsOf: body) }

    /// Writes the numbers of an entry, each followed by a space, and its changeset.
    mutating func entry(_ fields: [UInt64], _ changeset: [UInt8]) {
        for field in fields { number(field) }
        bytes.append(contentsOf: changeset)
    }

    /// Writes a number of an entry, followed by a space.
    mutating func number(_ number: UInt64) {
        append(number)
        bytes.append(UInt8(ascii: " "))
    }

    /// Writes the digits of a number, without a string.
    private mutating func append(_ number: UInt64) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.mostDigits) { digits in
            var (rest, begin) = (number, digits.count)
            repeat {
                begin -= 1
                digits.initializeElement(at: begin, to: UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
                rest /= 10
            } while rest > 0
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[begin...]))
        }
    }
}
