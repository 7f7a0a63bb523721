/// The subject of a log message.
public protocol LogCategory: Sendable {
    /// The name, prefixed by the names of the parent categories and dots.
    var rawValue: String { get }
}

/// RealmSwift's categories. The SDK logs sync sessions under `Sync.Client`, classes under `sdk` and stored users under `app`.
/// The other categories stay empty.
public enum Category: String, LogCategory, CaseIterable {
    /// The parent of all other categories.
    case realm = "Realm"
    case sdk = "Realm.SDK"
    case app = "Realm.App"

    public enum Storage: String, LogCategory, CaseIterable {
        case all = "Realm.Storage"
        case transaction = "Realm.Storage.Transaction"
        case query = "Realm.Storage.Query"
        case object = "Realm.Storage.Object"
        case notification = "Realm.Storage.Notification"
    }

    public enum Sync: String, LogCategory, CaseIterable {
        case all = "Realm.Sync"
        case server = "Realm.Sync.Server"

        public enum Client: String, LogCategory, CaseIterable {
            case all = "Realm.Sync.Client"
            /// Subscription sets, their downloads, and the end of sessions.
            case session = "Realm.Sync.Client.Session"
            /// Uploads and rejected writes.
            case changeset = "Realm.Sync.Client.Changeset"
            /// Connections.
            case network = "Realm.Sync.Client.Network"
            /// Client resets.
            case reset = "Realm.Sync.Client.Reset"
        }
    }
}
