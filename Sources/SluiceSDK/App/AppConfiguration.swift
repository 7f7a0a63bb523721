public import Foundation

/// Where an app's server is and where its local files lie.
public struct AppConfiguration: Hashable, Sendable {
    /// The gateway, `http://…` or `https://…`.
    public var baseURL: String
    /// After this time without answer a request fails. Default 60,000.
    public var defaultRequestTimeoutMS: UInt
    /// The folder for local files; nil: `SLUICE_DATA_HOME`, else `$XDG_DATA_HOME/sluice`, else `~/.local/share/sluice`.
    public var storageDirectory: URL?
    /// Without effect: every Realm has a connection of its own.
    public var enableSessionMultiplexing: Bool
    private var timeouts: SyncTimeoutOptions.Values?
    private var chosenTransport: Identified?

    /// Two of one transport are equal.
    private struct Identified: Hashable, Sendable {
        var transport: any NetworkTransport

        static func == (lhs: Identified, rhs: Identified) -> Bool { lhs.transport === rhs.transport }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(transport)) }
    }

    /// - Parameters:
    ///   - baseURL: nil: the environment's `SLUICE_URL`, else `http://127.0.0.1:8080`.
    ///   - transport: sends the app's HTTP requests, not the messages of sync; nil: the SDK's own client does.
    ///   - enableSessionMultiplexing: without effect.
    ///   - syncTimeouts: what `SyncManager.timeoutOptions` begins with.
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

    /// As apps written for RealmSwift have it: the app's name and version are of no use here, as they are of none there.
    public init(
        baseURL: String? = nil, transport: (any NetworkTransport)? = nil, localAppName: String?, localAppVersion: String?,
        defaultRequestTimeoutMS: UInt? = nil, enableSessionMultiplexing: Bool? = nil, syncTimeouts: SyncTimeoutOptions? = nil
    ) {
        self.init(
            baseURL: baseURL, transport: transport, defaultRequestTimeoutMS: defaultRequestTimeoutMS,
            enableSessionMultiplexing: enableSessionMultiplexing, syncTimeouts: syncTimeouts)
    }

    /// Sends the app's HTTP requests; nil: the SDK's own client does.
    public var transport: (any NetworkTransport)? {
        get { chosenTransport?.transport }
        set { chosenTransport = newValue.map { Identified(transport: $0) } }
    }

    /// What `SyncManager.timeoutOptions` begins with: a copy of what was set, so that what is changed later in the one that was given
    /// changes nothing here.
    public var syncTimeouts: SyncTimeoutOptions? {
        get { timeouts.map { SyncTimeoutOptions($0) } }
        set { timeouts = newValue?.values }
    }

    static var defaultBaseURL: String { ProcessInfo.processInfo.environment["SLUICE_URL"] ?? "http://127.0.0.1:8080" }
}
