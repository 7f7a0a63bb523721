import SluiceCore
import SluiceValues

/// Documents of one collection as bytes, in the order of the source.
struct DocumentBatch {
    /// The size by which a batch grows before a reader returns, in bytes.
    static let pieceBytes = 256 << 10

    /// The bytes of all documents, one behind the other.
    private(set) var bytes: [UInt8] = []
    /// The end of each document in `bytes`.
    private(set) var ends: [Int] = []
    /// The place of each document in the uncompressed source, in bytes.
    private(set) var offsets: [Int64] = []

    var count: Int { ends.count }

    mutating func append(_ document: UnsafeRawBufferPointer, at offset: Int64) {
        bytes.append(contentsOf: document)
        ends.append(bytes.count)
        offsets.append(offset)
    }

    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        offsets.removeAll(keepingCapacity: true)
    }

    subscript(index: Int) -> ArraySlice<UInt8> { bytes[(index == 0 ? 0 : ends[index - 1])..<ends[index]] }
}

/// The form of the documents of a source.
enum DocumentForm: Hashable, Sendable {
    case bson
    /// Extended JSON, v1 or v2.
    case json
}

/// A reader of a source's documents. It blocks, and its memory is bounded by the largest document.
protocol DocumentSource: AnyObject {
    var stream: ByteStream { get }

    /// Reads some documents of one collection and appends them to the batch of its index.
    ///
    /// - Throws: `badRequest` for a damaged source, `configMissing` for an unreadable one.
    func next(into batches: inout [DocumentBatch]) throws(SluiceError) -> DocumentEvent
}

enum DocumentEvent: Hashable {
    /// The batch of this collection may have grown.
    case documents(Int)
    /// The collection has no more documents.
    case ended(Int)
    /// The source is at its end.
    case end
}

/// The documents of a `.bson` file, which stand one behind the other.
final class BSONFileSource: DocumentSource {
    let stream: ByteStream
    private var hasEnded = false

    /// - Parameter offset: The place of the first document to read.
    init(_ stream: ByteStream, from offset: Int64) throws(SluiceError) {
        self.stream = stream
        try stream.skip(to: offset)
    }

    func next(into batches: inout [DocumentBatch]) throws(SluiceError) -> DocumentEvent {
        if hasEnded { return .end }
        hasEnded = try !stream.fill(&batches[0]) { () throws(SluiceError) in try stream.documentLength() }
        return hasEnded ? .ended(0) : .documents(0)
    }
}

extension ByteStream {
    /// Moves documents into a batch until it has grown by a piece.
    ///
    /// - Parameter next: The length of the next document, which is then available as a whole; nil at the end of the file.
    /// - Returns: `false` at the end of the file.
    func fill(_ batch: inout DocumentBatch, _ next: () throws(SluiceError) -> Int?) throws(SluiceError) -> Bool {
        let target = batch.bytes.count + DocumentBatch.pieceBytes
        while batch.bytes.count < target {
            guard let length = try next() else { return false }
            batch.append(self, length)
        }
        return true
    }

    /// Returns the length of the next BSON document, which is then available as a whole; nil at the end of the file.
    ///
    /// - Throws: `badRequest` if the length is none of a document, or the file ends inside.
    func documentLength() throws(SluiceError) -> Int? {
        guard try require(4) else {
            if available == 0 { return nil }
            throw damaged("it ends inside of the length of a document, at byte \(position)")
        }
        let length = Int(int32)
        guard length >= BSONLimits.emptyDocumentBytes, length <= BSONLimits.documentBytes else {
            throw damaged("\(length) at byte \(position) is not the length of a BSON document")
        }
        guard try require(length) else { throw damaged("it ends inside of the document at byte \(position)") }
        return length
    }

    /// The little-endian integer at the unread bytes.
    ///
    /// - Precondition: Four bytes are available.
    var int32: Int32 {
        buffer.withUnsafeBytes { Int32(littleEndian: $0.loadUnaligned(fromByteOffset: start, as: Int32.self)) }
    }
}

extension DocumentBatch {
    /// Moves the next `count` bytes of a stream here as a document.
    mutating func append(_ stream: ByteStream, _ count: Int) {
        stream.buffer.withUnsafeBytes {
            append(UnsafeRawBufferPointer(rebasing: $0[stream.start..<stream.start + count]), at: stream.position)
        }
        stream.consume(count)
    }
}
