public import Foundation
import Synchronization

extension Realm {
    /// How a Realm is opened.
    public struct Configuration: Sendable, CustomStringConvertible {
        /// The file; for a synced Realm it is chosen by app and user. Nil for a Realm in memory.
        public var fileURL: URL? { didSet { if fileURL != nil { inMemoryIdentifier = nil } } }
        /// Names a Realm that goes away with the last of its handles: all of this process with one name are the same. It is kept
        /// in the folder for temporary files. Setting it makes `fileURL` nil, and the other way round.
        public var inMemoryIdentifier: String? { didSet { if inMemoryIdentifier != nil { fileURL = nil } } }
        /// Nothing is written: for files that come with the app. The file has to exist, with the classes and the schema version of
        /// the configuration.
        public var readOnly: Bool
        /// The classes in the Realm; classes that they link to or embed come along. Nil: all classes of the program, see `KnownClasses`.
        public var objectTypes: [ObjectBase.Type]?
        /// Set by `User.flexibleSyncConfiguration`.
        public var syncConfiguration: SyncConfiguration?
        /// The app's number for its classes as they are; higher whenever a class of a local Realm changes. A synced Realm needs none.
        public var schemaVersion: UInt64
        /// Makes the objects of a local file fit when its schema version is lower. Nil: properties that are new are empty, those that
        /// are gone are lost.
        public var migrationBlock: MigrationBlock?
        /// Delete a local file that would need a migration instead, with everything in it.
        public var deleteRealmIfMigrationNeeded: Bool
        /// Asked with the file's bytes, in all and in use, when it is opened the first time in the process; true: it is compacted,
        /// which takes about as long as copying it.
        public var shouldCompactOnLaunch: (@Sendable (_ totalBytes: Int, _ usedBytes: Int) -> Bool)?
        /// 64 bytes, where the platform has encrypted files; opening throws where it does not.
        public var encryptionKey: Data?
        /// A file, made by `writeCopy`, that is copied to where there is none yet.
        public var seedFilePath: URL?
        /// How far a reader of this process may stay behind, counted in states of the file: with more, a write transaction throws
        /// when it begins. Old states that are read, by frozen Realms and by Realms that are not refreshed, keep the file from
        /// becoming smaller. Nil: no limit.
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

        /// What the Realm would be opened with, for people. An encryption key is not shown.
        public var description: String {
            let place = inMemoryIdentifier.map { "inMemoryIdentifier = \($0)" } ?? "fileURL = \(fileURL?.path ?? "nil")"
            let types = objectTypes.map { "[\($0.map { $0.className() }.joined(separator: ", "))]" } ?? "all"
            let user = syncConfiguration.map { ", user = \($0.user.id)" } ?? ""
            return
                "Realm.Configuration { \(place), readOnly = \(readOnly), schemaVersion = \(schemaVersion), objectTypes = \(types)\(user) }"
        }

        /// Where the file lies.
        var path: String? {
            guard let inMemoryIdentifier else { return fileURL?.path }
            let name = "sluice-\(ProcessInfo.processInfo.processIdentifier)-\(StorageLocation.component(inMemoryIdentifier)).realm"
            return FileManager.default.temporaryDirectory.appendingPathComponent(name).path
        }

        /// The classes to open with: those given, or all that are known and can be in such a Realm.
        var classes: [ObjectBase.Type] {
            objectTypes ?? KnownClasses.all.filter { syncConfiguration != nil || !($0 is AsymmetricObject.Type) }
        }

        /// What `Realm()` opens.
        public static var defaultConfiguration: Configuration {
            get { chosen.withLock { $0 } ?? Configuration() }
            set { chosen.withLock { $0 = newValue } }
        }

        private static let chosen = Mutex<Configuration?>(nil)

        private static var defaultFile: URL { StorageLocation.root(nil).appendingPathComponent("default.realm") }
    }
}

/// Where local files lie.
enum StorageLocation {
    /// `SLUICE_DATA_HOME`, or what the app's configuration says, or `$XDG_DATA_HOME/sluice`, or `~/.local/share/sluice`.
    static func root(_ configured: URL?) -> URL {
        let environment = ProcessInfo.processInfo.environment
        if let configured { return configured }
        if let path = environment["SLUICE_DATA_HOME"], !path.isEmpty { return URL(fileURLWithPath: path) }
        if let path = environment["XDG_DATA_HOME"], path.hasPrefix("/") {
            return URL(fileURLWithPath: path).appendingPathComponent("sluice")
        }
        return URL(fileURLWithPath: NSHomeDirectory()).appendingPathComponent(".local/share/sluice")
    }

    /// Keeps a text that others choose from naming another folder.
    static func component(_ text: String) -> String {
        let plain = text.unicodeScalars.map { scalar in
            scalar.isASCII
                && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil || "-_".unicodeScalars.contains(scalar))
                ? String(scalar) : "%\(String(scalar.value, radix: 16))"
        }
        return plain.isEmpty ? "_" : plain.joined()
    }
}
