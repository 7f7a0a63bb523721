import SluiceCore
import SluiceValues

#if canImport(Glibc)
    import Glibc
#endif

/// The documents of a file of `mongoexport`: lines of JSON (NDJSON), one array, or objects over several lines.
///
/// It finds the ends of the objects, and reads no further into them.
final class JSONFileSource: DocumentSource {
    /// The largest object as text, in bytes. Base64 and escapes make the text of a document longer than the document.
    private static let objectBytes = 4 * BSONLimits.documentBytes

    let stream: ByteStream
    private var hasEnded = false

    init(_ stream: ByteStream, from offset: Int64) throws(SluiceError) {
        self.stream = stream
        try stream.skip(to: offset)
    }

    func next(into batches: inout [DocumentBatch]) throws(SluiceError) -> DocumentEvent {
        if hasEnded { return .end }
        hasEnded = try !stream.fill(&batches[0]) { () throws(SluiceError) in try skipBetween() ? objectLength() : nil }
        return hasEnded ? .ended(0) : .documents(0)
    }

    /// Skips white space, a byte order mark and the punctuation of an array.
    ///
    /// - Returns: `false` at the end of the file.
    private func skipBetween() throws(SluiceError) -> Bool {
        while try stream.require(1) {
            switch stream.buffer[stream.start] {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"), UInt8(ascii: ","), UInt8(ascii: "["),
                UInt8(ascii: "]"):
                stream.consume(1)
            case 0xEF where stream.position == 0: try skipMark()
            case UInt8(ascii: "{"): return true
            default:
                throw stream.damaged(
                    "at byte \(stream.position) a document of JSON was expected, and '\(Self.excerpt(stream))' was found")
            }
        }
        return false
    }

    private func skipMark() throws(SluiceError) {
        guard try stream.require(3), stream.buffer[stream.start..<stream.start + 3].elementsEqual([0xEF, 0xBB, 0xBF]) else {
            throw stream.damaged("it is not UTF-8")
        }
        stream.consume(3)
    }

    private static func excerpt(_ stream: ByteStream) -> String {
        let bytes = stream.buffer[stream.start...].prefix(20)
        return String(decoding: bytes.prefix { $0 >= 0x20 && $0 < 0x7F }, as: UTF8.self)
    }

    /// Returns the length of the object at the unread bytes, which is then available as a whole.
    private func objectLength() throws(SluiceError) -> Int {
        var scanner = ObjectScanner()
        var scanned = 0
        while true {
            if let length = scanner.end(stream.buffer, from: stream.start + scanned, start: stream.start) { return length }
            scanned = stream.available
            guard scanned <= Self.objectBytes else {
                throw stream.damaged("the document at byte \(stream.position) is longer than \(Self.objectBytes) bytes")
            }
            guard try stream.more() else { throw stream.damaged("it ends inside of the document at byte \(stream.position)") }
        }
    }
}

/// Finds the end of an object by its braces outside of strings.
private struct ObjectScanner {
    private var depth = 0
    private var isInString = false
    private var isEscaped = false

    /// Scans bytes up to the end of the buffer, or the brace that closes the object.
    ///
    /// - Returns: The length of the object; nil if more bytes are needed.
    mutating func end(_ buffer: [UInt8], from: Int, start: Int) -> Int? {
        for index in from..<buffer.count {
            let byte = buffer[index]
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "}"):
                depth -= 1
                if depth == 0 { return index + 1 - start }
            default: break
            }
        }
        return nil
    }
}
