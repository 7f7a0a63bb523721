public import Foundation
import SluiceSync

/// The server's address, the folder for local files, and settings of requests and sessions.
public struct AppConfiguration: Hashable, Sendable {
    /// The gateway's address, `http://…` or `https://…`.
    public var baseURL: String
    /// The time in milliseconds after which a request without answer fails. Default 60,000.
    public var defaultRequestTimeoutMS: UInt
    /// The folder for local files; nil: `SLUICE_DATA_HOME`, else `$XDG_DATA_HOME/sluice`, else `~/.local/share/sluice`.
    public var storageDirectory: URL?
    /// The keys that the server may have, each as the SHA-256 of its SubjectPublicKeyInfo in base64 (RFC 7469). Empty accepts every trusted
    /// certificate.
    ///
    /// HTTPS requests and sync check the key in the server's own certificate, behind its chain. With another key they fail before anything
    /// is sent. Give the pin of the next key too, or a new certificate locks the app out. An own `transport` must check keys itself.
    public var serverKeyPins: [String] = []
    /// No effect: every Realm has a connection of its own.
    public var enableSessionMultiplexing: Bool
    private var timeouts: SyncTimeoutOptions.Values?
    private var chosenTransport: Identified<any NetworkTransport>?
    private var chosenStorage: Identified<any CredentialStorage>?

    /// An object that compares by identity.
    private struct Identified<Value: Sendable>: Hashable, Sendable {
        var value: Value

        private var id: ObjectIdentifier { ObjectIdentifier(value as AnyObject) }

        static func == (lhs: Identified, rhs: Identified) -> Bool { lhs.id == rhs.id }
        func hash(into hasher: inout Hasher) { hasher.combine(id) }
    }

    /// - Parameters:
    ///   - baseURL: nil: the environment variable `SLUICE_URL`, else `http://127.0.0.1:8080`.
    ///   - transport: sends the app's HTTP requests, but not sync messages; nil: the SDK's own client.
    ///   - enableSessionMultiplexing: no effect.
    ///   - syncTimeouts: the initial `SyncManager.timeoutOptions`.
    public init(
        baseURL: String? = nil, transport: (any NetworkTransport)? = nil, defaultRequestTimeoutMS: UInt? = nil,
        enableSessionMultiplexing: Bool? = nil, syncTimeouts: SyncTimeoutOptions? = nil, storageDirectory: URL? = nil
    ) {
        self.baseURL = baseURL ?? AppConfiguration.defaultBaseURL
        self.defaultRequestTimeoutMS = defaultRequestTimeoutMS ?? 60_000
        self.storageDirectory = storageDirectory
        self.enableSessionMultiplexing = enableSessionMultiplexing ?? true
        self.transport = transport
        self.syncTimeouts = syncTimeouts
    }

    /// RealmSwift's initializer. The app's name and version are ignored, as in RealmSwift.
    public init(
        baseURL: String? = nil, transport: (any NetworkTransport)? = nil, localAppName: String?, localAppVersion: String?,
        defaultRequestTimeoutMS: UInt? = nil, enableSessionMultiplexing: Bool? = nil, syncTimeouts: SyncTimeoutOptions? = nil
    ) {
        self.init(
            baseURL: baseURL, transport: transport, defaultRequestTimeoutMS: defaultRequestTimeoutMS,
            enableSessionMultiplexing: enableSessionMultiplexing, syncTimeouts: syncTimeouts)
    }

    /// Sends the app's HTTP requests; nil: the SDK's own client.
    public var transport: (any NetworkTransport)? {
        get { chosenTransport?.value }
        set { chosenTransport = newValue.map { Identified(value: $0) } }
    }

    /// Stores the logins of users, such as in a keychain; nil: a file with mode 0600 below `storageDirectory`. Replicas stay there.
    public var credentialStorage: (any CredentialStorage)? {
        get { chosenStorage?.value }
        set { chosenStorage = newValue.map { Identified(value: $0) } }
    }

    /// The initial `SyncManager.timeoutOptions`. Both accessors copy: later changes to the object that was passed have no effect here.
    public var syncTimeouts: SyncTimeoutOptions? {
        get { timeouts.map { SyncTimeoutOptions($0) } }
        set { timeouts = newValue?.values }
    }

    var keyPins: KeyPins { KeyPins(serverKeyPins) }

    static var defaultBaseURL: String { ProcessInfo.processInfo.environment["SLUICE_URL"] ?? "http://127.0.0.1:8080" }
}
