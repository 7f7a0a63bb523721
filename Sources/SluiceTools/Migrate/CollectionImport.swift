import SluiceCore
import SluicePostgres
import SluiceValues

/// A collection of a source and the class that its documents become objects of.
struct ImportTarget: Hashable, Sendable {
    var type: String
    /// The collection in the source, `db.coll` or `coll`.
    var collection: String
    /// The database and name in an archive; nil for a file of one collection.
    var archiveName: ArchiveSource.Name?
}

/// The import of one collection from one source, chunk by chunk.
///
/// A chunk's rows and the progress behind it are one transaction.
final class CollectionImport {
    /// The size at which a chunk is written, in bytes of documents.
    static let chunkBytes = 4 << 20
    /// The number of documents at which a chunk is written.
    static let chunkDocuments = 10_000

    let target: ImportTarget
    private let form: DocumentForm
    private let path: String
    private let rowImport: RowImport
    private let store = ImportProgressStore()
    private let quarantine: QuarantineFile
    private var reader: DocumentRowReader
    private(set) var progress: ImportProgress
    /// The number of documents at the start of the source that are imported already; for sources that are read from their start.
    private var toSkip: Int64
    private var buffer = RowBuffer()
    private let meter: ImportMeter
    /// `true` if an earlier run has imported the source and read it back.
    private let wasVerified: Bool

    /// Locks the class, and finds or begins the progress.
    ///
    /// - Parameters:
    ///   - source: The fingerprint of the source.
    ///   - quarantine: The folder of quarantine files.
    init(
        _ target: ImportTarget, of file: ImportFile, app: ImportApp, quarantine: String, meter: ImportMeter, _ session: PostgresSession
    ) throws {
        self.target = target
        self.meter = meter
        (form, path) = (file.form, file.path)
        let shape = try app.shape(of: target.type)
        rowImport = RowImport(shape)
        reader = DocumentRowReader(shape.type, in: app.schema, classes: app.classesByCollection)
        try store.lock(target.type, session)
        var found = try store.find(source: file.fingerprint, type: target.type, session)
        if found == nil {
            var progress = ImportProgress(source: file.fingerprint, type: target.type)
            try store.begin(&progress, path: file.path, stored: try rowImport.stored(session), session)
            found = progress
        }
        progress = found ?? ImportProgress(source: file.fingerprint, type: target.type)
        toSkip = file.isArchive ? progress.documents : 0
        let name = "\(rowImport.table).\(file.fingerprint.suffix(8)).ndjson".replacing("/", with: "%2F")
        self.quarantine = QuarantineFile(path: quarantine + "/" + name, length: progress.quarantineBytes)
        wasVerified = progress.isVerified
        if !progress.isRead, try !self.quarantine.cut() {
            StandardError.write(
                "sluice: the \(progress.quarantined) documents that an earlier run put into \(self.quarantine.path) are not there any more. "
                    + "They are in the file of that run's --quarantine.\n")
        }
        meter.resume(progress)
    }

    var quarantinePath: String { quarantine.path }

    /// The fields that the class does not have, since the import was begun or continued.
    var dropped: [DocumentRowReader.Dropped] { reader.dropped }

    /// `true` if the documents of a batch should be written now.
    func isFull(_ batch: DocumentBatch) -> Bool { batch.bytes.count >= Self.chunkBytes || batch.count >= Self.chunkDocuments }

    // MARK: A chunk

    /// Writes the documents of a batch and empties it.
    ///
    /// - Parameter next: The place behind the batch, for sources that can continue there.
    func write(_ batch: inout DocumentBatch, next: Int64, _ session: PostgresSession) throws {
        let skipped = Int(min(toSkip, Int64(batch.count)))
        toSkip -= Int64(skipped)
        defer { batch.removeAll() }
        guard skipped < batch.count else { return }
        buffer.removeAll()
        let converted = convert(batch, from: skipped)
        var after = progress
        try session.inTransaction {
            let outcome = try rowImport.insert(converted.rows, of: buffer, session)
            for row in outcome.refused { quarantine.add(line(batch, converted.documents[row.index], row.reason)) }
            try quarantine.flush()
            after.documents += Int64(batch.count - skipped)
            after.offset = next
            after.bytes += Int64(batch.bytes.count - (skipped == 0 ? 0 : batch.ends[skipped - 1]))
            after.quarantined += Int64(converted.misfits + outcome.refused.count)
            after.unchanged += Int64(outcome.unchanged)
            after.quarantineBytes = quarantine.length
            after.written = after.written + outcome.written
            try store.save(after, path: path, session)
        }
        meter.advance(from: progress, to: after)
        progress = after
    }

    private struct Converted {
        var rows: [RowRef] = []
        /// The index of each row's document.
        var documents: [Int] = []
        var misfits = 0
    }

    private func convert(_ batch: DocumentBatch, from start: Int) -> Converted {
        var converted = Converted()
        converted.rows.reserveCapacity(batch.count)
        converted.documents.reserveCapacity(batch.count)
        batch.bytes.withUnsafeBytes { bytes in
            var begin = start == 0 ? 0 : batch.ends[start - 1]
            for index in start..<batch.count {
                let document = UnsafeRawBufferPointer(rebasing: bytes[begin..<batch.ends[index]])
                begin = batch.ends[index]
                do throws(DocumentMisfit) {
                    converted.rows.append(try row(document))
                    converted.documents.append(index)
                } catch {
                    quarantine.add(line(batch, index, error.reason))
                    converted.misfits += 1
                }
            }
        }
        return converted
    }

    @inline(__always)
    private func row(_ document: UnsafeRawBufferPointer) throws(DocumentMisfit) -> RowRef {
        switch form {
        case .bson: return try reader.read(bson: document, into: &buffer)
        case .json:
            let json: JSON
            do throws(JSONError) { json = try JSON.located(Array(document)) } catch {
                throw DocumentMisfit("it is not valid JSON: \(error)")
            }
            return try reader.read(json, into: &buffer)
        }
    }

    /// Returns the line of the quarantine for a document. A malformed one is in it as bytes.
    private func line(_ batch: DocumentBatch, _ index: Int, _ reason: String) -> JSON {
        let bytes = Array(batch[index])
        let document = form == .bson ? try? BSON.json(bytes) : try? JSON.located(bytes)
        return [
            "collection": .string(target.collection), "source": .string(path), "offset": .int(batch.offsets[index]),
            "_id": document?["_id"] ?? .null, "reason": .string(reason),
            "document": document ?? ExtendedForm.binary(bytes).json,
        ]
    }

    // MARK: The end

    /// Records that all documents were read.
    func end(_ session: PostgresSession) throws {
        progress.isRead = true
        try store.save(progress, path: path, session)
    }

    /// Reads the table back and compares it with what was written.
    ///
    /// - Throws: `tableUnfit` if they differ.
    func verify(_ session: PostgresSession) throws -> ImportOutcome {
        if !progress.isVerified {
            try rowImport.analyze(session)
            let stored = try rowImport.stored(session)
            let expected = try progress.foreign + store.written(type: target.type, session)
            guard stored == expected else { throw difference(stored, expected) }
            progress.isVerified = true
            try store.save(progress, path: path, session)
        }
        let isGone = try wasVerified && progress.written.rows > 0 && rowImport.isEmpty(session)
        return ImportOutcome(
            target: target, path: path, table: rowImport.table, progress: progress, wasVerified: wasVerified, isGone: isGone,
            quarantine: progress.quarantined > 0 ? quarantine.path : nil,
            dropped: reader.dropped.map { (String(decoding: $0.name, as: UTF8.self), $0.count) })
    }

    private func difference(_ stored: RowDigest, _ expected: RowDigest) -> SluiceError {
        SluiceError(
            .tableUnfit,
            "The rows of \(rowImport.table) differ from the documents of \(path): the table has \(stored.rows) rows with the hash \(stored.text), "
                + "and \(expected.rows) rows with the hash \(expected.text) were expected.",
            fix: "A trigger or another program changed rows during the import. Stop it, empty the table, delete the class's rows of "
                + "sluice.import_progress, and run the command again.")
    }
}
