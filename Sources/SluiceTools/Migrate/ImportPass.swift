import SluiceCore
import SluicePostgres

/// One pass over a file: reads its documents and writes them chunk by chunk, on a connection's queue.
struct ImportPass {
    /// The bound of the documents that wait in all chunks together, in bytes. An archive interleaves many collections.
    private static let waitingBytes = 64 << 20

    let pass: ImportPlan.Pass
    let app: ImportApp
    let quarantine: String
    let meter: ImportMeter

    /// Imports the collections, then reads their tables back.
    func run(_ session: PostgresSession) throws -> [ImportOutcome] {
        let imports = try pass.targets.map { target in
            try CollectionImport(target, of: pass.file, app: app, quarantine: quarantine, meter: meter, session)
        }
        if imports.contains(where: { !$0.progress.isRead }) { try read(imports, session) } else { meter.skip(pass.file.bytes) }
        return try imports.map { try $0.verify(session) }
    }

    private func read(_ imports: [CollectionImport], _ session: PostgresSession) throws {
        let source = try source(imports)
        var batches = [DocumentBatch](repeating: DocumentBatch(), count: imports.count)
        var counted = source.stream.readBytes
        meter.skip(counted)
        while true {
            let event = try source.next(into: &batches)
            meter.read(source.stream.readBytes - counted)
            counted = source.stream.readBytes
            switch event {
            case .documents(let index):
                let isCrowded = imports.count > 1 && batches.reduce(0) { $0 + $1.bytes.count } > Self.waitingBytes
                if isCrowded || imports[index].isFull(batches[index]) {
                    try imports[index].write(&batches[index], next: source.stream.position, session)
                }
            case .ended(let index):
                try imports[index].write(&batches[index], next: source.stream.position, session)
                try imports[index].end(session)
            case .end: return
            }
        }
    }

    private func source(_ imports: [CollectionImport]) throws(SluiceError) -> any DocumentSource {
        guard pass.file.isArchive else { return try pass.file.documents(from: imports[0].progress.offset) }
        return try ArchiveSource(try ByteStream(path: pass.file.path), names: pass.targets.compactMap(\.archiveName))
    }
}
