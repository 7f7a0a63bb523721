public import Foundation
import SluiceCore
import SluiceReplica

/// Migrates a local file to the classes of its configuration before it is opened.
struct MigrationRun {
    let path: String
    let configuration: Realm.Configuration
    let schemas: [ModelSchema]

    /// Compares the file's schema with the configuration and migrates the file if its version is lower.
    /// - Throws: `schemaMismatch` if the file has a higher version, or different classes with the same version.
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
        // The caller accepts the loss of the data: the file is created again when it is opened.
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

    /// Migrates in one transaction of the file. If the block traps or a write fails, the file is unchanged.
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
        try asRealmError {
            new.transactions.begun(try newReplica.beginMigration(from: stored.schema, version: configuration.schemaVersion))
        }
        configuration.migrationBlock?(Migration(old: old, new: new, keys: .init()), stored.version)
        try new.transactions.commit()
    }
}

extension Realm {
    /// Migrates the file of a configuration now, without opening a Realm.
    public static func performMigration(for configuration: Realm.Configuration = .defaultConfiguration) throws {
        _ = try OpenFile.of(configuration)
    }
}

/// The schema version of a local file; 0 if the file has none.
/// - Throws: `Realm.Error.fileNotFound` if there is no file, `invalidDatabase` if it is not a file of this SDK.
///   `invalidInput` if a key is given.
public func schemaVersionAtURL(_ fileURL: URL, encryptionKey: Data? = nil) throws -> UInt64 {
    if encryptionKey != nil { throw Realm.Error.encryption }
    guard FileManager.default.fileExists(atPath: fileURL.path) else {
        throw Realm.Error(.fileNotFound, "There is no Realm file at \(fileURL.path).")
    }
    return try asRealmError { try Replica.storedSchema(path: fileURL.path) }?.version ?? 0
}
