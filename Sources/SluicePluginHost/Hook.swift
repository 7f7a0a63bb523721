/// A call into a plugin. The numbers are those of the host process's protocol.
package enum Hook: UInt8, CaseIterable, Sendable {
    /// Not one of the plugin's: opens the library and calls its entry.
    case load = 0
    case configure = 1
    case openSession = 2
    case checkSubscription = 3
    case checkWrite = 4
    case ingest = 5
    case userChanged = 6
    /// `checkWrite` with the writes as rows: plugins that have it are asked in this form.
    case checkWriteRows = 7
    /// `ingest` with the objects as rows, the same.
    case ingestRows = 8

    /// The question that it is a form of: what deadlines and metrics are about.
    package var question: Hook {
        switch self {
        case .checkWriteRows: .checkWrite
        case .ingestRows: .ingest
        default: self
        }
    }

    /// Whether its input is a `RowFrame`.
    package var takesRows: Bool { question != self }

    /// As sluice_plugin.h spells it.
    package var name: String {
        switch self {
        case .load: "load"
        case .configure: "configure"
        case .openSession: "open_session"
        case .checkSubscription: "check_subscription"
        case .checkWrite: "check_write"
        case .ingest: "ingest"
        case .userChanged: "user_changed"
        case .checkWriteRows: "check_write_rows"
        case .ingestRows: "ingest_rows"
        }
    }
}

/// What came back from a call.
package struct HookAnswer: Hashable, Sendable {
    package enum Status: UInt8, Sendable {
        case ok = 0
        case denied = 1
        case failed = 2
        /// The answer to `load` when the plugin cannot be used: the bytes are an encoded error.
        case unusable = 3
        /// The call was not made, since its deadline had passed before its turn came.
        case late = 4
        /// The plugin used more processor time than the call has.
        case overrun = 5
    }

    package var status: Status
    /// JSON when `ok`, plain text otherwise.
    package var bytes: [UInt8]

    package init(status: Status, bytes: [UInt8]) {
        self.status = status
        self.bytes = bytes
    }

    package var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// Who a plugin is, as it told at loading.
package struct PluginInfo: Hashable, Sendable {
    package var name: String
    package var version: String
    package var hooks: Set<Hook>
    /// The form in which it is asked about writes, and about asymmetric objects: as rows where it has that; nil: in none.
    package var writeHook: Hook? { [.checkWriteRows, .checkWrite].first { hooks.contains($0) } }
    package var ingestHook: Hook? { [.ingestRows, .ingest].first { hooks.contains($0) } }
    package var checksWrites: Bool { writeHook != nil }
    /// What its configuration may hold, as the plugin declares it (`ConfigSchema`); nil: it does not say.
    package var configSchema: String?
    /// What it is not shut off by, since the kernel lacks it: `seccomp`, `landlock`, `privileges`; `process` for one in process.
    package var missing: [String]

    package init(name: String, version: String, hooks: Set<Hook>, configSchema: String? = nil, missing: [String] = []) {
        self.name = name
        self.version = version
        self.hooks = hooks
        self.configSchema = configSchema
        self.missing = missing
    }
}
