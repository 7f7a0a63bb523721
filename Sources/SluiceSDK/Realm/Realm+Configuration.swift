public import Foundation
import Synchronization

extension Realm {
    /// The options for opening a Realm.
    public struct Configuration: Sendable, CustomStringConvertible {
        /// The file. For a synced Realm it depends on the app and the user. Nil for an in-memory Realm.
        public var fileURL: URL? { didSet { if fileURL != nil { inMemoryIdentifier = nil } } }
        /// The name of an in-memory Realm, which is deleted with its last handle. One name is one Realm within the process.
        /// Its file is in the temporary directory. Setting it clears `fileURL`, and setting `fileURL` clears it.
        public var inMemoryIdentifier: String? { didSet { if inMemoryIdentifier != nil { fileURL = nil } } }
        /// Opens the file without writing to it, as for files in the app's bundle. Default `false`.
        /// The file must exist and have the classes and the schema version of the configuration.
        public var readOnly: Bool
        /// The classes of the Realm; linked and embedded classes are added. If nil, all classes of the program; see `KnownClasses`.
        public var objectTypes: [ObjectBase.Type]?
        /// Set by `User.flexibleSyncConfiguration`. Nil for a local Realm.
        public var syncConfiguration: SyncConfiguration?
        /// The version of the app's classes. Increase it with each change of a local Realm's classes. A synced Realm ignores it. Default 0.
        public var schemaVersion: UInt64
        /// Migrates the objects of a local file with a lower schema version.
        /// If nil, new properties get their empty values and removed ones are dropped.
        public var migrationBlock: MigrationBlock?
        /// Deletes a local file that needs a migration, with all data. Default `false`.
        public var deleteRealmIfMigrationNeeded: Bool
        /// Called when the process opens an existing file for the first time, with its total size and the part in use, both in bytes.
        /// If it returns `true`, the file is compacted, which takes about as long as copying it.
        public var shouldCompactOnLaunch: (@Sendable (_ totalBytes: Int, _ usedBytes: Int) -> Bool)?
        /// The 64-byte encryption key. Opening throws if the platform's SQLite has no encryption.
        public var encryptionKey: Data?
        /// A file from `writeCopy` that is copied to `fileURL` if there is no file yet.
        public var seedFilePath: URL?
        /// The most versions that the file may keep for readers of this process, from the oldest read to the newest.
        /// Beyond it, beginning a write transaction throws. Frozen Realms and Realms that are not refreshed keep the file from shrinking.
        /// If nil, there is no limit.
        public var maximumNumberOfActiveVersions: UInt?

        public init(
            fileURL: URL? = nil, inMemoryIdentifier: String? = nil, syncConfiguration: SyncConfiguration? = nil,
            encryptionKey: Data? = nil, readOnly: Bool = false, schemaVersion: UInt64 = 0, migrationBlock: MigrationBlock? = nil,
            deleteRealmIfMigrationNeeded: Bool = false,
            shouldCompactOnLaunch: (@Sendable (_ totalBytes: Int, _ usedBytes: Int) -> Bool)? = nil,
            objectTypes: [ObjectBase.Type]? = nil, seedFilePath: URL? = nil
        ) {
            self.fileURL = inMemoryIdentifier == nil ? fileURL ?? Configuration.defaultFile : nil
            self.inMemoryIdentifier = inMemoryIdentifier
            self.readOnly = readOnly
            self.shouldCompactOnLaunch = shouldCompactOnLaunch
            self.syncConfiguration = syncConfiguration
            self.encryptionKey = encryptionKey
            self.schemaVersion = schemaVersion
            self.migrationBlock = migrationBlock
            self.deleteRealmIfMigrationNeeded = deleteRealmIfMigrationNeeded
            self.objectTypes = objectTypes
            self.seedFilePath = seedFilePath
        }

        /// A debug description without the encryption key.
        public var description: String {
            let place = inMemoryIdentifier.map { "inMemoryIdentifier = \($0)" } ?? "fileURL = \(fileURL?.path ?? "nil")"
            let types = objectTypes.map { "[\($0.map { $0.className() }.joined(separator: ", "))]" } ?? "all"
            let user = syncConfiguration.map { ", user = \($0.user.id)" } ?? ""
            return
                "Realm.Configuration { \(place), readOnly = \(readOnly), schemaVersion = \(schemaVersion), objectTypes = \(types)\(user) }"
        }

        /// The path of the file; nil if the configuration has none.
        var path: String? {
            guard let inMemoryIdentifier else { return fileURL?.path }
            let name = "sluice-\(ProcessInfo.processInfo.processIdentifier)-\(StorageLocation.component(inMemoryIdentifier)).realm"
            return FileManager.default.temporaryDirectory.appendingPathComponent(name).path
        }

        /// The classes to open with: the given ones, or all known ones that the Realm may contain.
        var classes: [ObjectBase.Type] {
            objectTypes ?? KnownClasses.all.filter { syncConfiguration != nil || !($0 is AsymmetricObject.Type) }
        }

        /// The configuration that `Realm()` opens. May be read and set on any thread.
        public static var defaultConfiguration: Configuration {
            get { chosen.withLock { $0 } ?? Configuration() }
            set { chosen.withLock { $0 = newValue } }
        }

        private static let chosen = Mutex<Configuration?>(nil)

        private static var defaultFile: URL { StorageLocation.root(nil).appendingPathComponent("default.realm") }
    }
}

/// The location of local files.
enum StorageLocation {
    /// The configured folder, else `SLUICE_DATA_HOME`, else `$XDG_DATA_HOME/sluice`, else `~/.local/share/sluice`.
    static func root(_ configured: URL?) -> URL {
        let environment = ProcessInfo.processInfo.environment
        if let configured { return configured }
        if let path = environment["SLUICE_DATA_HOME"], !path.isEmpty { return URL(fileURLWithPath: path) }
        if let path = environment["XDG_DATA_HOME"], path.hasPrefix("/") {
            return URL(fileURLWithPath: path).appendingPathComponent("sluice")
        }
        return URL(fileURLWithPath: NSHomeDirectory()).appendingPathComponent(".local/share/sluice")
    }

    /// Escapes a text for use as one path component, so that it cannot refer to another folder.
    static func component(_ text: String) -> String {
        let plain = text.unicodeScalars.map { scalar in
            scalar.isASCII
                && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil || "-_".unicodeScalars.contains(scalar))
                ? String(scalar) : "%\(String(scalar.value, radix: 16))"
        }
        return plain.isEmpty ? "_" : plain.joined()
    }
}
