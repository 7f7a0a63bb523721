import SluiceCore
import SluiceValues

/// A file of a dump or an export, with what it is.
struct ImportFile: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case bson, json, archive
    }

    let path: String
    let kind: Kind
    let fingerprint: String
    /// The size of the file as it is, compressed or not.
    let bytes: Int64

    var isArchive: Bool { kind == .archive }
    var form: DocumentForm { kind == .json ? .json : .bson }

    /// Finds out what a file is, by its first bytes.
    ///
    /// - Throws: `configMissing` if it cannot be read, `badRequest` if it is none of the known forms.
    init(_ path: String) throws(SluiceError) {
        let stream = try ByteStream(path: path)
        self.path = path
        bytes = stream.fileBytes
        kind = try ImportFile.kind(stream)
        fingerprint = try ByteStream.fingerprint(path)
    }

    private static func kind(_ stream: ByteStream) throws(SluiceError) -> Kind {
        if try stream.require(4) {
            let first = stream.int32
            if UInt32(bitPattern: first) == ArchivePrelude.magic { return .archive }
            // A text has no byte below 9, and the length of a document has a last byte of 0 or 1.
            if first >= Int32(BSONLimits.emptyDocumentBytes), first <= Int32(BSONLimits.documentBytes) { return .bson }
        } else if stream.available == 0 {
            // An empty collection.
            return stream.path.contains(".json") || stream.path.contains(".ndjson") ? .json : .bson
        }
        let text = stream.buffer[stream.start...].prefix(64).first { ![0xEF, 0xBB, 0xBF, 0x20, 0x09, 0x0A, 0x0D].contains($0) }
        if text == nil || text == UInt8(ascii: "{") || text == UInt8(ascii: "[") { return .json }
        throw SluiceError(
            .badRequest, "\(stream.path) is no BSON file, archive of mongodump, or JSON of mongoexport.",
            fix: "Name files that mongodump or mongoexport wrote. gzip is recognised; encrypted or other compressed files are not.")
    }

    /// Opens the documents of a file of one collection.
    ///
    /// - Parameter offset: The place of the first document to read.
    func documents(from offset: Int64) throws(SluiceError) -> any DocumentSource {
        let stream = try ByteStream(path: path)
        return kind == .json ? try JSONFileSource(stream, from: offset) : try BSONFileSource(stream, from: offset)
    }
}
