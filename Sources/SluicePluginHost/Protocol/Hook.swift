/// A call into a plugin. The raw values are those of the host process's protocol.
package enum Hook: UInt8, CaseIterable, Sendable {
    /// Opens the library and calls its entry. It is not a hook of the plugin.
    case load = 0
    case configure = 1
    case openSession = 2
    case checkSubscription = 3
    case checkWrite = 4
    case ingest = 5
    case userChanged = 6
    case callFunction = 7
    case authenticate = 8

    /// `true` if its input is a `RowFrame`, and JSON otherwise.
    package var takesRows: Bool { self == .checkWrite || self == .ingest }

    /// `true` if the process for functions answers it, and the process for rules otherwise.
    package var isForFunctions: Bool { self == .callFunction || self == .authenticate }

    /// The name in sluice_plugin.h.
    package var name: String {
        switch self {
        case .load: "load"
        case .configure: "configure"
        case .openSession: "open_session"
        case .checkSubscription: "check_subscription"
        case .checkWrite: "check_write"
        case .ingest: "ingest"
        case .userChanged: "user_changed"
        case .callFunction: "call_function"
        case .authenticate: "authenticate"
        }
    }
}

/// The result of a call.
package struct HookAnswer: Hashable, Sendable {
    package enum Status: UInt8, Sendable {
        case ok = 0
        case denied = 1
        case failed = 2
        /// The plugin cannot be used. It answers `load`; the bytes are an encoded error.
        case unusable = 3
        /// The call was not made, because its deadline had passed before its turn.
        case late = 4
        /// The plugin exceeded the processor time of the call.
        case overrun = 5
    }

    package var status: Status
    /// JSON for `ok`; an encoded error for `unusable`; plain text otherwise.
    package var bytes: [UInt8]

    package init(status: Status, bytes: [UInt8]) {
        self.status = status
        self.bytes = bytes
    }

    package var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// The identity of a plugin, from its table at loading.
package struct PluginInfo: Hashable, Sendable {
    package var name: String
    package var version: String
    package var hooks: Set<Hook>
    package var checksWrites: Bool { hooks.contains(.checkWrite) }
    /// `true` if functions of the app may have the plugin as their target.
    package var runsFunctions: Bool { hooks.contains(where: \.isForFunctions) }
    /// The declared schema of its configuration (`ConfigSchema`); nil if undeclared.
    package var configSchema: String?
    /// The missing parts of the sandbox: `seccomp`, `landlock`, `privileges`, `threads` if the kernel lacks them; `process` for a plugin
    /// in process.
    package var missing: [String]

    package init(name: String, version: String, hooks: Set<Hook>, configSchema: String? = nil, missing: [String] = []) {
        self.name = name
        self.version = version
        self.hooks = hooks
        self.configSchema = configSchema
        self.missing = missing
    }
}
