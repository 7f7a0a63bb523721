/// The language's case folding and pattern matching, on bytes.
///
/// As in Realm, `[c]` folds only A-Z and the letters U+00C0 to U+00DE without U+00D7. The folding of a byte depends at most on the byte
/// before it. It never changes the length and needs no decoding.
enum Folding {
    @inline(__always)
    static func fold(_ byte: UInt8, after previous: UInt8) -> UInt8 {
        if byte >= 0x41 && byte <= 0x5a { return byte | 0x20 }
        if previous == 0xc3 && byte >= 0x80 && byte <= 0x9e && byte != 0x97 { return byte | 0x20 }
        return byte
    }

    static func folded(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var previous: UInt8 = 0
        for byte in bytes {
            result.append(fold(byte, after: previous))
            previous = byte
        }
        return result
    }

    static func folded(_ text: String) -> String { String(decoding: folded(text.utf8), as: UTF8.self) }

    /// The upper-case letters that are folded and their lower-case forms, for SQL.
    static let upper: String = letters(0x41...0x5a) + letters(0xc0...0xd6) + letters(0xd8...0xde)
    static let lower: String = letters(0x61...0x7a) + letters(0xe0...0xf6) + letters(0xf8...0xfe)

    private static func letters(_ range: ClosedRange<UInt8>) -> String {
        String(String.UnicodeScalarView(range.map { Unicode.Scalar($0) }))
    }
}

/// A text read in place, with optional folding. Patterns are already folded.
struct Haystack {
    let bytes: UnsafeBufferPointer<UInt8>
    let folds: Bool

    var count: Int { bytes.count }

    @inline(__always)
    func byte(_ index: Int) -> UInt8 {
        let byte = bytes[index]
        return folds ? Folding.fold(byte, after: index > 0 ? bytes[index - 1] : 0) : byte
    }

    func matches(_ needle: UnsafeBufferPointer<UInt8>, at offset: Int) -> Bool {
        guard offset >= 0, offset + needle.count <= count else { return false }
        for index in 0..<needle.count where byte(offset + index) != needle[index] { return false }
        return true
    }

    func contains(_ needle: UnsafeBufferPointer<UInt8>) -> Bool {
        guard needle.count <= count else { return false }
        for offset in 0...(count - needle.count) where matches(needle, at: offset) { return true }
        return false
    }

    /// Matches LIKE: `*` is any run of bytes, `?` one character. There are no escapes, and the whole text must match. A mismatch moves only
    /// the last star, so typical patterns cost O(n) and the worst case O(n·m).
    func isLike(_ pattern: UnsafeBufferPointer<UInt8>) -> Bool {
        var text = 0
        var position = 0
        var star: (pattern: Int, text: Int)?
        while text < count {
            if position < pattern.count, pattern[position] == UInt8(ascii: "*") {
                position += 1
                star = (position, text)
            } else if position < pattern.count, pattern[position] == UInt8(ascii: "?") {
                position += 1
                text = afterCharacter(text)
            } else if position < pattern.count, pattern[position] == byte(text) {
                position += 1
                text += 1
            } else if let last = star {
                // Mismatch: the last star takes one more byte. Earlier stars need no retry, since they matched as early as possible.
                star = (last.pattern, last.text + 1)
                position = last.pattern
                text = last.text + 1
            } else {
                return false
            }
        }
        while position < pattern.count, pattern[position] == UInt8(ascii: "*") { position += 1 }
        return position == pattern.count
    }

    private func afterCharacter(_ index: Int) -> Int {
        var next = index + 1
        while next < count, bytes[next] & 0xc0 == 0x80 { next += 1 }
        return next
    }
}
