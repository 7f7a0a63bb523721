/// What a message of the log is about.
public protocol LogCategory: Sendable {
    /// Its name, after the names of the categories above it and dots.
    var rawValue: String { get }
}

/// The categories that RealmSwift has. What sync sessions do is logged in those of `Sync.Client`; in the others nothing is.
public enum Category: String, LogCategory, CaseIterable {
    /// Above all others.
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
            /// Subscription sets, downloads of what they ask for, and ends of sessions.
            case session = "Realm.Sync.Client.Session"
            /// Uploads, and writes that the server took back.
            case changeset = "Realm.Sync.Client.Changeset"
            /// Connections.
            case network = "Realm.Sync.Client.Network"
            /// Client resets.
            case reset = "Realm.Sync.Client.Reset"
        }
    }
}
