import SluiceCore
import SluiceValues

/// The start of an archive of `mongodump --archive`: its version, and a description of each collection.
struct ArchivePrelude: Hashable, Sendable {
    /// The first four bytes of an archive, little-endian.
    static let magic: UInt32 = 0x8199_E26D
    /// The number after the last document of a part.
    static let terminator: Int32 = -1

    struct Collection: Hashable, Sendable {
        var database: String
        var name: String
        /// `collection`, `view` or `timeseries`; empty in archives of old tools.
        var kind: String
    }

    var version = ""
    var collections: [Collection] = []

    /// Reads the prelude at the start of a stream.
    ///
    /// - Throws: `badRequest` for another version than 0.1, and for a damaged prelude.
    init(_ stream: ByteStream) throws(SluiceError) {
        guard try stream.require(4), UInt32(bitPattern: stream.int32) == Self.magic else {
            throw stream.damaged("it does not begin like an archive of mongodump")
        }
        stream.consume(4)
        guard let header = try stream.archiveDocument() else { throw stream.damaged("its header is missing") }
        version = header["version"]?.string ?? ""
        guard version == "0.1" else {
            throw SluiceError(
                .badRequest, "\(stream.path) is an archive of version '\(version)', and only 0.1 is known.",
                fix: "Make the dump without --archive.")
        }
        while let document = try stream.archiveDocument() {
            guard let database = document["db"]?.string, let name = document["collection"]?.string else {
                throw stream.damaged("the description of a collection before byte \(stream.position) has no name")
            }
            collections.append(Collection(database: database, name: name, kind: document["type"]?.string ?? ""))
        }
    }
}

extension ByteStream {
    /// Reads a document; nil for a terminator.
    fileprivate func archiveDocument() throws(SluiceError) -> JSON? {
        if try isTerminator() { return nil }
        let offset = position
        guard let length = try documentLength() else { throw damaged("it ends in the middle, at byte \(position)") }
        var batch = DocumentBatch()
        batch.append(self, length)
        do throws(BSONError) { return try BSON.json(batch.bytes) } catch {
            throw damaged("the document at byte \(offset) is malformed at \(error)")
        }
    }

    /// Skips a terminator if it is next.
    fileprivate func isTerminator() throws(SluiceError) -> Bool {
        guard try require(4), int32 == ArchivePrelude.terminator else { return false }
        consume(4)
        return true
    }
}

/// The documents of some collections of an archive, whose blocks are interleaved.
///
/// A block is the name of a collection, documents and a terminator. The last block of a collection has no documents and the checksum of
/// all of them.
final class ArchiveSource: DocumentSource {
    /// A collection of an archive.
    struct Name: Hashable, Sendable {
        var database: String
        var collection: String
    }

    let stream: ByteStream
    private let indexes: [Name: Int]
    private var checksums: [CRC64]
    private var open: Set<Name> = []
    private var ended: Set<Name> = []
    /// The collection of the block that is being read.
    private var current: Name?

    /// - Parameter names: The collections to read, by index. The blocks of others are skipped.
    init(_ stream: ByteStream, names: [Name]) throws(SluiceError) {
        self.stream = stream
        indexes = Dictionary(names.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        checksums = names.map { _ in CRC64() }
        _ = try ArchivePrelude(stream)
    }

    func next(into batches: inout [DocumentBatch]) throws(SluiceError) -> DocumentEvent {
        while true {
            if let current {
                if let index = indexes[current] {
                    if try read(index, &batches) { self.current = nil }
                    return .documents(index)
                }
                try skipBlock()
                self.current = nil
            }
            guard try stream.require(1) else { return try atEnd() }
            if let ended = try beginBlock() { return .ended(ended) }
        }
    }

    /// Reads documents of a block.
    ///
    /// - Returns: `true` at the end of the block.
    private func read(_ index: Int, _ batches: inout [DocumentBatch]) throws(SluiceError) -> Bool {
        let target = batches[index].bytes.count + DocumentBatch.pieceBytes
        while batches[index].bytes.count < target {
            if try stream.isTerminator() { return true }
            guard let length = try stream.documentLength() else {
                throw stream.damaged("it ends inside of a block, at byte \(stream.position)")
            }
            stream.buffer.withUnsafeBytes {
                checksums[index].update(UnsafeRawBufferPointer(rebasing: $0[stream.start..<stream.start + length]))
            }
            batches[index].append(stream, length)
        }
        return false
    }

    private func skipBlock() throws(SluiceError) {
        while try !stream.isTerminator() {
            guard let length = try stream.documentLength() else {
                throw stream.damaged("it ends inside of a block, at byte \(stream.position)")
            }
            stream.consume(length)
        }
    }

    /// Reads the head of a block.
    ///
    /// - Returns: The index of a collection that the block ends; nil for a block with documents, and for a collection that is not read.
    private func beginBlock() throws(SluiceError) -> Int? {
        let offset = stream.position
        guard let head = try stream.archiveDocument(), let database = head["db"]?.string, let name = head["collection"]?.string else {
            throw stream.damaged("the block at byte \(offset) does not name its collection")
        }
        let collection = Name(database: database, collection: name)
        guard head["EOF"]?.bool == true else {
            open.insert(collection)
            current = collection
            return nil
        }
        guard try stream.isTerminator() else {
            throw stream.damaged("the last block of \(database).\(name) has documents, at byte \(offset)")
        }
        open.remove(collection)
        ended.insert(collection)
        guard let index = indexes[collection] else { return nil }
        guard head["CRC"]?.int.map({ UInt64(bitPattern: $0) }) == checksums[index].value else {
            throw stream.damaged("the checksum of \(database).\(name) differs from that of its documents")
        }
        return index
    }

    private func atEnd() throws(SluiceError) -> DocumentEvent {
        guard let missing = indexes.keys.first(where: { !ended.contains($0) }) ?? open.first else { return .end }
        throw stream.damaged("it ends before the end of \(missing.database).\(missing.collection)")
    }
}
