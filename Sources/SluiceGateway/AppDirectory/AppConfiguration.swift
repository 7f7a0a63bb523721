package import SluiceCore
package import SluicePluginHost
package import SluicePostgres

/// An app as its directory describes it (the export form of App Services).
package struct AppConfiguration: Sendable {
    /// A table of PostgreSQL.
    package struct Table: Hashable, Sendable {
        /// The folder of the database in the directory.
        package var schema: String
        /// The folder of the collection.
        package var name: String

        package init(schema: String, name: String) {
            self.schema = schema
            self.name = name
        }
    }

    /// One way to log in.
    package struct AuthProvider: Hashable, Sendable {
        /// `anon-user`, `local-userpass`, …
        package var type: String
        package var isEnabled: Bool
        /// Its `config` as it stands in the file.
        package var config: JSON

        package init(type: String, isEnabled: Bool, config: JSON = .object([])) {
            self.type = type
            self.isEnabled = isEnabled
            self.config = config
        }
    }

    /// Where custom user data live when the app keeps them in a table of its own.
    package struct CustomUserData: Hashable, Sendable {
        package var table: Table
        /// The column with the user's id.
        package var userIDField: String
    }

    /// One plugin of `plugins.json`.
    package struct ListedPlugin: Hashable, Sendable {
        /// As the list has it: below the app directory, absolute, or, without a slash, one that ships with the gateway.
        package var file: String
        /// Lower-case hexadecimal digits; nil only for one that ships with the gateway.
        package var sha256: String?
        /// An Ed25519 signature of the file's bytes.
        package var signature: [UInt8]?
        /// As it stands in the list, with its lines.
        package var config: JSON
        package var isInProcess: Bool
        /// Nanoseconds for a call; nil is the default.
        package var deadline: UInt64?
        /// The same for hooks that have one of their own.
        package var deadlines: [Hook: UInt64] = [:]
        package var memoryBytes: UInt64?

        package var isShipped: Bool { !file.contains("/") }
    }

    package var appID: String
    package var name: String
    /// Top-level and asymmetric types by path of their files, then embedded types as they appear. Properties have the
    /// order of the file and provisional ids 1…n; the stored numbering is assigned by the gateway.
    package var schema: Schema
    /// Where each top-level and asymmetric type is kept.
    package var tables: [String: Table]
    /// How the tables of asymmetric types are cut by time, by type.
    package var partitions: [String: TimePartitions]
    package var queryableFields: QueryableFields
    package var authProviders: [AuthProvider]
    package var customUserData: CustomUserData?
    /// `values/*.json` and the values of the environment, by name.
    package var values: [String: JSON]
    /// `%%environment.tag`.
    package var environmentTag: String
    /// Seconds.
    package var refreshTokenLifetime: Int
    package var isDevelopmentMode: Bool
    /// False while sync is paused by `"state": "disabled"`.
    package var isSyncEnabled: Bool
    /// Whether a client may upload in a client reset what it had not uploaded before.
    package var isRecoveryAllowed: Bool
    /// How long a device that does not come keeps what merging remembers for it.
    package var maximumOfflineDays = Limits.clientMemoryDays
    /// In the order of the chain.
    package var plugins: [ListedPlugin] = []
    /// Every file by its path in the directory, as text: what the rule plugin is configured with.
    package var files: [String: String]
    /// What was read and has no effect here, one sentence each: a gateway logs them when it starts, `sluice schema diff` prints them.
    package var notes: [String]

    package func isEnabled(provider type: String) -> Bool { authProviders.contains { $0.type == type && $0.isEnabled } }
}

/// One thing that is wrong with an app directory.
package struct ConfigProblem: Hashable, Sendable, CustomStringConvertible {
    package var code: ErrorCode
    /// Path in the directory.
    package var file: String
    /// From 1; 0 when the problem is with the file as a whole.
    package var line: Int
    package var column: Int
    package var message: String
    package var fix: String

    package var place: String { line == 0 ? file : "\(file):\(line):\(column)" }
    package var description: String { "\(place): \(message) \(fix)" }
    package var error: SluiceError { SluiceError(code, "\(place): \(message)", fix: fix) }
}

/// Everything that is wrong with an app directory, all at once.
package struct AppDirectoryError: Error, CustomStringConvertible {
    /// By file and line; never empty.
    package var problems: [ConfigProblem]

    package var description: String { problems.map(\.description).joined(separator: "\n") }

    /// The first problem, and how many there are, where one error has to do.
    package var summary: SluiceError {
        guard let first = problems.first else { return SluiceError(.configInvalid, "The app directory cannot be used.") }
        var error = first.error
        if problems.count > 1 { error.message += " (and \(problems.count - 1) more; sluice schema diff lists them)" }
        return error
    }
}
