import Foundation
import SluiceCompression
import SluiceCore
import SluiceValues
import TestSupport
import Testing

@testable import SluiceTools

/// The documents of files, archives and texts.
struct DocumentSourceTests {
    /// A file that is removed with its owner.
    final class File {
        let path: String

        init(_ bytes: [UInt8], named name: String = UUID().uuidString) throws {
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("source-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            path = folder.appendingPathComponent(name).path
            try Data(bytes).write(to: URL(fileURLWithPath: path))
        }

        deinit { try? FileManager.default.removeItem(at: URL(fileURLWithPath: path).deletingLastPathComponent()) }
    }

    private static func documents(_ count: Int, _ random: inout SplitMix64) -> [[UInt8]] {
        (0..<count).map { index in
            BSONWriter.document {
                $0.value("_id", .int(Int64(index)))
                $0.value("x", Value.random(using: &random))
            }
        }
    }

    /// Reads a source to its end.
    private static func all(_ source: any DocumentSource, _ count: Int = 1) throws(SluiceError) -> (batches: [DocumentBatch], ended: [Int])
    {
        var batches = [DocumentBatch](repeating: DocumentBatch(), count: count)
        var ended: [Int] = []
        while true {
            switch try source.next(into: &batches) {
            case .documents: continue
            case .ended(let index): ended.append(index)
            case .end: return (batches, ended)
            }
        }
    }

    private static func contents(_ batch: DocumentBatch) -> [[UInt8]] { (0..<batch.count).map { Array(batch[$0]) } }

    // MARK: BSON

    @Test(arguments: [false, true]) func `a file of BSON reads from any document on`(isCompressed: Bool) throws {
        var random = SplitMix64()
        let documents = Self.documents(3_000, &random)
        let bytes = Array(documents.joined())
        let file = try File(isCompressed ? try Gzip.compress(bytes) : bytes)
        let known = try ImportFile(file.path)
        #expect(known.kind == .bson && known.bytes > 0)
        let (batches, ended) = try Self.all(try known.documents(from: 0))
        #expect(Self.contents(batches[0]) == documents && ended == [0], "seed \(random.seed)")
        let place = random.below(documents.count)
        let rest = try Self.all(try known.documents(from: batches[0].offsets[place])).batches
        #expect(Self.contents(rest[0]) == Array(documents[place...]), "seed \(random.seed)")
        #expect(rest[0].offsets == Array(batches[0].offsets[place...]))
    }

    @Test func `an empty file is an empty collection`() throws {
        let file = try File([])
        #expect(try Self.all(try ImportFile(file.path).documents(from: 0)).ended == [0])
    }

    @Test func `a cut file, a wrong length and half a gzip stream are errors with the place`() throws {
        var random = SplitMix64()
        let bytes = Array(Self.documents(10, &random).joined())
        let compressed = try Gzip.compress(bytes)
        for (content, words) in [
            (Array(bytes.dropLast(3)), "ends inside of the document at byte"), (bytes + [1, 2], "ends inside of the length"),
            (bytes + [4, 0, 0, 0, 0], "is not the length of a BSON document"), (Array(compressed.dropLast(9)), "gzip"),
        ] as [([UInt8], String)] {
            let file = try File(content)
            let error = #expect(throws: SluiceError.self) { try Self.all(try ImportFile(file.path).documents(from: 0)) }
            #expect(error?.code == .badRequest && error?.message.contains(words) == true, "\(String(describing: error))")
        }
    }

    // MARK: Archives

    @Test func `an archive gives its collections apart, however their blocks are mixed`() throws {
        var random = SplitMix64()
        for blocks in [1, 3, 1_000] {
            let first = Self.documents(100, &random)
            let second = Self.documents(57, &random)
            let file = try File(
                ArchiveWriter.archive(
                    [.init("db", "a", first), .init("db", "b", second), .init("db", "none", []), .init("other", "a", second)],
                    blockDocuments: blocks))
            #expect(try ImportFile(file.path).kind == .archive)
            let prelude = try ArchivePrelude(try ByteStream(path: file.path))
            #expect(prelude.version == "0.1" && prelude.collections.map(\.name) == ["a", "b", "none", "a"])
            let names = [("db", "b"), ("db", "a"), ("db", "none")].map { ArchiveSource.Name(database: $0.0, collection: $0.1) }
            let (batches, ended) = try Self.all(try ArchiveSource(try ByteStream(path: file.path), names: names), 3)
            #expect(batches.map(Self.contents) == [second, first, []], "seed \(random.seed)")
            #expect(ended.sorted() == [0, 1, 2])
        }
    }

    @Test func `a cut or changed archive is an error, wherever it is`() throws {
        var random = SplitMix64()
        let bytes = ArchiveWriter.archive([.init("db", "a", Self.documents(6, &random)), .init("db", "b", Self.documents(2, &random))])
        let names = ["a", "b"].map { ArchiveSource.Name(database: "db", collection: $0) }
        for count in 0..<bytes.count {
            let file = try File(Array(bytes[..<count]))
            #expect(throws: SluiceError.self, "\(count), seed \(random.seed)") {
                try Self.all(try ArchiveSource(try ByteStream(path: file.path), names: names), 2)
            }
        }
        for _ in 0..<200 {
            var flipped = bytes
            flipped[random.below(bytes.count)] ^= 1 << UInt8(random.below(8))
            let file = try File(flipped)
            // The checksum finds it in a document. Elsewhere it may change only a number that is not used.
            guard let found = try? Self.all(try ArchiveSource(try ByteStream(path: file.path), names: names), 2) else { continue }
            #expect(found.batches.map(\.count) == [6, 2], "seed \(random.seed)")
        }
    }

    @Test func `a changed document of an archive differs from its checksum`() throws {
        let documents = (0..<3).map { index in BSONWriter.document { $0.value("_id", .int(Int64(index))) } }
        var bytes = ArchiveWriter.archive([.init("db", "a", documents)])
        let place = try #require(bytes.indices.first { bytes[$0...].starts(with: documents[1]) })
        bytes[place + documents[1].count - 2] ^= 1
        let file = try File(bytes)
        let error = #expect(throws: SluiceError.self) {
            try Self.all(try ArchiveSource(try ByteStream(path: file.path), names: [.init(database: "db", collection: "a")]))
        }
        #expect(error?.message.contains("the checksum of db.a differs") == true, "\(String(describing: error))")
    }

    // MARK: JSON

    @Test(
        arguments: [
            ("{\"a\":1}\n{\"a\":2}\n", 2), ("[{\"a\":1},\n{\"a\":2}]\n", 2), ("\u{FEFF}[ ]", 0), ("", 0), ("\n", 0),
            ("[{\n  \"a\": {\n \"b\": \"}\\\"{\" } },{}]", 2), ("{\"a\":\"\\\\\"}{\"a\":[{},{}]}", 2),
        ])
    func `objects of an array, of lines and over several lines are found`(text: String, count: Int) throws {
        let file = try File(Array(text.utf8), named: "x.json")
        let source = try ImportFile(file.path)
        #expect(source.kind == .json)
        let batch = try Self.all(try source.documents(from: 0)).batches[0]
        #expect(batch.count == count)
        for index in 0..<batch.count {
            #expect(throws: Never.self) { try JSON.located(Array(batch[index])) }
            // From the place of a document on, the others are found.
            let rest = try Self.all(try source.documents(from: batch.offsets[index])).batches[0]
            #expect(Self.contents(rest) == Array(Self.contents(batch)[index...]))
        }
    }

    @Test func `objects lie across the pieces of a file`() throws {
        let lines = (0..<40_000).map { #"{"_id":\#($0),"text":"\#(String(repeating: "x", count: $0 % 97))"}"# }
        let file = try File(try Gzip.compress(Array(lines.joined(separator: "\n").utf8)), named: "x.json.gz")
        let batch = try Self.all(try ImportFile(file.path).documents(from: 0)).batches[0]
        #expect(batch.count == lines.count)
        #expect(Self.contents(batch).map { String(decoding: $0, as: UTF8.self) } == lines)
    }

    @Test func `what is no object, and an object without end, is an error with the place`() throws {
        for (text, words) in [("{\"a\":1}\nnull\n", "at byte 8"), ("{\"a\":1}\n{\"a\":", "document at byte 8"), ("[1]", "at byte 1")] {
            let file = try File(Array(text.utf8), named: "x.json")
            let error = #expect(throws: SluiceError.self) { try Self.all(try ImportFile(file.path).documents(from: 0)) }
            #expect(error?.message.contains(words) == true, "\(String(describing: error))")
        }
    }

    @Test func `other files are refused with what is known`() throws {
        let file = try File(Array("PK\u{3}\u{4} something".utf8))
        let error = #expect(throws: SluiceError.self) { try ImportFile(file.path) }
        #expect(error?.code == .badRequest && error?.fix?.contains("mongodump") == true)
        #expect(throws: SluiceError.self) { try ImportFile("/nowhere/x.bson") }
        #expect(throws: SluiceError.self) { try ImportFile(FileManager.default.temporaryDirectory.path) }
    }

    @Test func `a file is known by its size and its ends, wherever it lies`() throws {
        let one = try File(Array("{}".utf8))
        let fingerprint = try ByteStream.fingerprint(one.path)
        for (text, isEqual) in [("{}", true), ("", false), ("[]", false), ("{} ", false)] {
            let other = try File(Array(text.utf8))
            #expect(try (ByteStream.fingerprint(other.path) == fingerprint) == isEqual)
        }
    }

    // MARK: Names

    @Test func `names of files are names of collections`() {
        func name(_ path: String) -> String? { DumpFolder.entry(path).map { "\($0.database ?? "-").\($0.collection)" } }
        #expect(name("dump/shop/orders.bson") == "shop.orders")
        #expect(name("dump/shop/caf%C3%A9s.bson.gz") == "shop.cafés")
        #expect(name("orders.json") == "-.orders")
        #expect(name("shop/or.ders.ndjson.gz") == "shop.or.ders")
        for path in [
            "shop/orders.metadata.json", "shop/orders.metadata.json.gz", "shop/system.views.bson", "oplog.bson", "shop/readme.txt",
        ] {
            #expect(name(path) == nil)
        }
    }

    @Test func `the line of progress has rows, bytes, rate and time left, and no control characters`() {
        let counts = ImportMeter.Counts(
            documents: 1_234_567, rows: 1_234_560, bytes: 3 << 30, quarantined: 7, fresh: 600_000, readBytes: 1_000, totalBytes: 10_000)
        let line = ImportMeter.line(counts, after: .seconds(12))
        #expect(line == "1,234,560 rows, 3072.0 MiB, 50,000 documents/s, 7 in quarantine, 1 min 48 s left")
        #expect(ImportMeter.line(ImportMeter.Counts(), after: .zero) == "0 rows, 0.0 MiB, 0 documents/s")
        #expect(line.utf8.allSatisfy { $0 >= 0x20 })
    }
}
