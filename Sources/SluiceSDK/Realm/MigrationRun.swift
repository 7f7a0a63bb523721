public import Foundation
import SluiceCore
import SluiceReplica

/// Makes a local file fit the classes that it is opened with, before it is opened.
struct MigrationRun {
    let path: String
    let configuration: Realm.Configuration
    let schemas: [ModelSchema]

    /// - Throws: `schemaMismatch` when the file has a higher schema version, or other classes with the same one.
    func run() throws {
        let stored = try asRealmError { try Replica.storedSchema(path: path, isReadOnly: configuration.readOnly) }
        guard let stored else { return }
        let version = configuration.schemaVersion
        if configuration.readOnly, version != stored.version {
            throw Realm.Error(
                .schemaMismatch, "Provided schema version \(version) does not equal last set version \(stored.version).")
        }
        if version < stored.version {
            throw Realm.Error(
                .schemaMismatch, "Provided schema version \(version) is less than last set version \(stored.version).")
        }
        let schema = SluiceCore.Schema(schemas.map { $0.objectType(isSynced: false) })
        let differences = SchemaDifferences(from: stored.schema, to: schema).texts
        if version == stored.version && differences.isEmpty { return }
        if configuration.deleteRealmIfMigrationNeeded, !configuration.readOnly {
            ReplicaFile.remove(path)
            return
        }
        if version == stored.version {
            throw Realm.Error(
                .schemaMismatch,
                "Migration is required due to the following errors:" + differences.map { "\n- \($0)" }.joined())
        }
        try migrate(from: stored, to: schema)
    }

    /// All in one transaction of the file: when the block ends the program, or something fails, the file is as it was.
    private func migrate(from stored: StoredSchema, to schema: SluiceCore.Schema) throws {
        let oldReplica = try asRealmError {
            try Replica(path: path, schema: stored.schema, isSynced: false, options: ReplicaOptions(isUnfitted: true))
        }
        let newReplica = try asRealmError {
            try Replica(path: path, schema: schema, isSynced: false, options: ReplicaOptions(isUnfitted: true))
        }
        let old = try RealmCore(
            configuration: configuration, file: OpenFile(path: path, replica: oldReplica), scheduler: .none, floats: false,
            schemas: stored.schema.types.filter { $0.kind == .topLevel }.map { ModelSchema(old: $0) })
        let new = try RealmCore(
            configuration: configuration, file: OpenFile(path: path, replica: newReplica), scheduler: .none, floats: false,
            schemas: schemas)
        try asRealmError { new.begun(try newReplica.beginMigration(from: stored.schema, version: configuration.schemaVersion)) }
        configuration.migrationBlock?(Migration(old: old, new: new, keys: .init()), stored.version)
        try new.commit()
    }
}

extension Realm {
    /// Makes the file of a configuration fit its classes now, not when it is opened.
    public static func performMigration(for configuration: Realm.Configuration = .defaultConfiguration) throws {
        _ = try OpenFile.of(configuration)
    }
}

/// The schema version of a local file.
/// - Throws: `Realm.Error.fileNotFound` when there is no file, `invalidDatabase` when it is none of this SDK.
public func schemaVersionAtURL(_ fileURL: URL, encryptionKey: Data? = nil) throws -> UInt64 {
    if encryptionKey != nil { throw Realm.Error.encryption }
    guard FileManager.default.fileExists(atPath: fileURL.path) else {
        throw Realm.Error(.fileNotFound, "There is no Realm file at \(fileURL.path).")
    }
    return try asRealmError { try Replica.storedSchema(path: fileURL.path) }?.version ?? 0
}
