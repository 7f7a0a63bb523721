public import Foundation

extension Realm {
    /// How a Realm is opened.
    public struct Configuration: Sendable {
        /// The file; for a synced Realm it is chosen by app and user.
        public var fileURL: URL?
        /// The classes in the Realm; classes that they link to or embed come along. Nil: all classes of the program, see `KnownClasses`.
        public var objectTypes: [ObjectBase.Type]?
        /// Set by `User.flexibleSyncConfiguration`.
        public var syncConfiguration: SyncConfiguration?
        /// Kept for source compatibility; added properties and classes need no migration.
        public var schemaVersion: UInt64

        public init(
            fileURL: URL? = nil, syncConfiguration: SyncConfiguration? = nil, schemaVersion: UInt64 = 0,
            objectTypes: [ObjectBase.Type]? = nil
        ) {
            self.fileURL = fileURL ?? Configuration.defaultFile
            self.syncConfiguration = syncConfiguration
            self.schemaVersion = schemaVersion
            self.objectTypes = objectTypes
        }

        /// The classes to open with: those given, or all that are known and can be in such a Realm.
        var classes: [ObjectBase.Type] {
            objectTypes ?? KnownClasses.all.filter { syncConfiguration != nil || !($0 is AsymmetricObject.Type) }
        }

        /// What `Realm()` opens.
        public static var defaultConfiguration: Configuration { Configuration() }

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
