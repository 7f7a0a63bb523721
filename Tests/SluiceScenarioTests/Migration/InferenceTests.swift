import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues
import TestSupport
import Testing

/// Documents of random schemas, and the schemas that `sluice migrate infer` finds in them.
@Suite(.timeLimit(.minutes(5))) struct `Inferred schemas` {
    /// A dump of two collections, of which one may have keys of the other.
    private struct Dump {
        var documents: [String: [[String: Value]]] = ["targets": [], "sources": []]

        init(_ random: inout SplitMix64, most: Int) {
            let target = RandomCollection(&random, hasLinks: false)
            let source = RandomCollection(&random, hasLinks: true)
            let count = 1 + random.below(most)
            let keys = (0..<count).map { RandomCollection.key(target.keyKind, $0) }
            for index in 0..<count {
                documents["targets"]?.append(target.document(index, keys: [], &random))
                documents["sources"]?.append(source.document(index, keys: keys, &random))
            }
        }

        /// Writes BSON files, JSON files or an archive.
        ///
        /// - Returns: The path of the source.
        func write(to root: String, form: Int) throws -> String {
            let bytes = documents.mapValues { $0.map { BSONWriter.document($0) } }
            if form == 2 {
                let collections = bytes.sorted { $0.key < $1.key }.map { ArchiveWriter.Collection("db", $0.key, $0.value) }
                try MigratedExport.put(ArchiveWriter.archive(collections), "\(root)/all.archive")
                return "\(root)/all.archive"
            }
            for (name, all) in bytes {
                let lines = try all.map { form == 0 ? $0 : Array(try BSON.json($0).text.utf8) + [10] }
                try MigratedExport.put(Array(lines.joined()), "\(root)/db/\(name).\(form == 0 ? "bson" : "json")")
            }
            return root
        }
    }

    private static let export = MigratedExport.files(
        "inferred", sync: #"{ "type": "flexible", "state": "enabled", "service_name": "m", "queryable_fields_names": [] }"#)

    /// Writes an app without classes and a dump, and the inferred schemas into the app.
    private static func inferred<R>(
        _ dump: Dump, form: Int, _ body: (_ app: AppConfiguration, _ dump: String, _ proposal: String) async throws -> R
    ) async throws -> R {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("inferred-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: root) }
        for (path, text) in export { try MigratedExport.put(Array(text.utf8), "\(root)/app/\(path)") }
        let source = try dump.write(to: "\(root)/dump", form: form)
        let proposal = try SchemaProposal(at: "\(root)/app", options: .init(sources: [source]))
        try proposal.write()
        return try await body(try AppDirectory.load(at: "\(root)/app"), source, proposal.text)
    }

    @Test(arguments: seeds(60)) func `fit the documents that they come from`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let dump = Dump(&random, most: 60)
        try await Self.inferred(dump, form: random.below(3)) { app, _, proposal in
            for (name, all) in dump.documents { try Self.expectFit(all, name, app.schema, "seed \(seed): \(proposal)") }
        }
    }

    private static func expectFit(_ all: [[String: Value]], _ name: String, _ schema: Schema, _ place: String) throws {
        let type = try #require(schema[name], "\(name) in \(place)")
        var (reader, buffer) = (DocumentRowReader(type, in: schema), RowBuffer())
        for document in all {
            let misfit = BSONWriter.document(document).withUnsafeBytes { bytes -> String? in
                do throws(DocumentMisfit) {
                    _ = try reader.read(bson: bytes, into: &buffer)
                    return nil
                } catch { return error.reason }
            }
            #expect(misfit == nil, "\(document) in \(place)")
        }
        // Only fields that are always null are left out.
        for dropped in reader.dropped {
            let name = String(decoding: dropped.name, as: UTF8.self)
            #expect(all.allSatisfy { ($0[name] ?? .null) == .null }, "\(name) in \(place)")
        }
    }

    @Test(arguments: seeds(6)) func `make tables that take every document, without quarantine`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let dump = Dump(&random, most: 60)
        try await Self.inferred(dump, form: random.below(3)) { app, source, proposal in
            try await RunningGateway.deploy("SELECT") { deployment in
                _ = try await SchemaMigration(app: app, postgres: deployment.conninfo).apply()
                let options = DataMigration.Options(sources: [source], quarantine: source + "-quarantine", isSilent: true)
                let outcomes = try await DataMigration(app: app, postgres: deployment.conninfo, options: options).run()
                #expect(outcomes.count == 2 && outcomes.allSatisfy(\.isWhole), "seed \(seed): \(outcomes.map(\.text)) \(proposal)")
            }
        }
    }
}
