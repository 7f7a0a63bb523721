package import SluiceCore
package import SluiceIdentity
package import SluicePipeline
package import SluicePluginHost
package import SluicePorts
package import SluicePostgres
package import SluiceValues

/// An app as described by its directory, in the export form of App Services.
package struct AppConfiguration: Sendable {
    /// A table of PostgreSQL, with the columns of a class.
    package struct Table: Hashable, Sendable {
        /// The schema: the database's folder in the directory.
        package var schema: String
        /// The table: the collection's folder.
        package var name: String
        /// The columns by property, of those properties whose column has another name than they have.
        package var columns: [String: String]

        package init(schema: String, name: String, columns: [String: String] = [:]) {
            self.schema = schema
            self.name = name
            self.columns = columns
        }

        /// Returns the column of a property.
        package func column(of property: String) -> String { columns[property] ?? property }

        /// `true` if both are the same table, whatever the columns of a class are.
        package func isPlace(of other: Table) -> Bool { schema == other.schema && name == other.name }
    }

    /// A login provider.
    package struct AuthProvider: Hashable, Sendable {
        /// The type, such as `anon-user` or `local-userpass`.
        package var type: String
        package var isEnabled: Bool
        /// The `config` of the file, unchanged.
        package var config: JSON
        /// The keys and conditions of its tokens; nil if its users bring none.
        package var issuer: IssuerSettings?
        /// The function of `custom-function`.
        package var function: String?

        package init(type: String, isEnabled: Bool, config: JSON = .object([])) {
            self.type = type
            self.isEnabled = isEnabled
            self.config = config
        }
    }

    /// The app's own table for custom user data.
    package struct CustomUserData: Hashable, Sendable {
        package var table: Table
        /// The column with the user's id.
        package var userIDField: String
    }

    /// The settings of logins.
    package struct Users: Hashable, Sendable {
        package var providers: [AuthProvider]
        package var customData: CustomUserData?
        /// The lifetime of refresh tokens, in seconds.
        package var refreshTokenLifetime: Int
        /// The function that is called with each new user before the account exists.
        package var creationFunction: String?
        /// The settings of `local-userpass`.
        package var passwordLogin = PasswordLogin()
    }

    /// The settings of sync.
    package struct Sync: Hashable, Sendable {
        /// `false` if `"state": "disabled"` pauses sync.
        package var isEnabled = true
        package var isDevelopmentMode = false
        /// `true` if a client may upload its pending changesets in a client reset.
        package var isRecoveryAllowed = true
        /// The days for which the gateway keeps merge data for an offline client replica.
        package var maximumOfflineDays = Limits.clientMemoryDays
    }

    /// An entry of `plugins.json`.
    package struct ListedPlugin: Hashable, Sendable {
        /// The path as listed: relative to the app directory, absolute, or, without a slash, a plugin that ships with the gateway.
        package var file: String
        /// The SHA-256 of the file in lower-case hexadecimal digits; nil only for a plugin that ships with the gateway.
        package var sha256: String?
        /// An Ed25519 signature of the file's bytes.
        package var signature: [UInt8]?
        /// The plugin's configuration as listed, with line numbers.
        package var config: JSON
        package var isInProcess: Bool
        /// The time limit of a call, in nanoseconds; nil for the default.
        package var deadline: UInt64?
        /// The time limits of single hooks, in nanoseconds.
        package var deadlines: [Hook: UInt64] = [:]
        package var memoryBytes: UInt64?

        package var isShipped: Bool { !file.contains("/") }
    }

    package var appID: String
    package var name: String
    /// Top-level and asymmetric classes by path of their files, then embedded classes in order of appearance. Properties have the order
    /// of the file and provisional ids 1…n; the gateway assigns the stored ones.
    package var schema: Schema
    /// The table of each top-level and asymmetric class.
    package var tables: [String: Table]
    /// The time partitions of asymmetric classes.
    package var partitions: [String: TimePartitions] = [:]
    package var queryableFields = QueryableFields()
    package var users: Users
    package var sync: Sync
    /// The values of `values/*.json` and of the environment, by name.
    package var values: [String: JSON] = [:]
    package var secrets = AppSecrets()
    package var functions: [AppFunction] = []
    /// Those functions whose target is a plugin.
    package var functionPlugins: [FunctionPlugin] = []
    /// The calls of functions in the rules.
    package var ruleCalls: [RuleCall] = []
    package var triggers: [AuthenticationTrigger] = []
    package var databaseTriggers = DatabaseTriggers()
    /// The mail server; nil if the app sends no mails.
    package var mail: MailSettings?
    /// The form of users' events in their topic.
    package var eventContent = RecordContent.json
    /// The value of `%%environment.tag`.
    package var environmentTag: String
    /// The plugins in the order of the chain.
    package var plugins: [ListedPlugin] = []
    /// The text of every file by its path in the directory, for the configuration of plugins. Older forms of rules and classes stand here
    /// in the newer one (`PluginFiles`).
    package var files: [String: String]
    /// The parts of the directory with another effect than written, or with none. A gateway logs them at its start, and
    /// `sluice schema diff` and `sluice migrate check` print them.
    package var notes: [ConfigNote] = []

    /// An app without a directory. The first client adds its classes.
    package static let development = AppConfiguration(
        appID: "dev", name: "dev", schema: Schema([]), tables: [:],
        users: Users(
            providers: [AuthProvider(type: "anon-user", isEnabled: true), AuthProvider(type: "local-userpass", isEnabled: true)],
            refreshTokenLifetime: 60 * 86_400),
        sync: Sync(isDevelopmentMode: true), environmentTag: "", files: [:])

    /// `true` if a client has a class to synchronise.
    package var hasClasses: Bool { schema.types.contains { $0.kind != .embedded } }

    /// The names of the app's topics.
    package var topics: Topics { Topics(app: appID, schema: schema) }

    package func isEnabled(provider type: String) -> Bool { users.providers.contains { $0.type == type && $0.isEnabled } }
}

/// A problem in an app directory.
package struct ConfigProblem: Hashable, Sendable, CustomStringConvertible {
    package var code: ErrorCode
    /// The path in the directory.
    package var file: String
    /// The line, from 1; 0 for a problem of the whole file.
    package var line: Int
    package var column: Int
    package var message: String
    package var fix: String

    package var place: String { line == 0 ? file : "\(file):\(line):\(column)" }
    package var description: String { "\(place): \(message) \(fix)" }
    package var error: SluiceError { SluiceError(code, "\(place): \(message)", fix: fix) }
}

/// All problems of an app directory.
///
/// A type beside `SluiceError`, because an author corrects all problems at once.
package struct AppDirectoryError: SluiceErrorConvertible, CustomStringConvertible {
    /// The problems by file and line; never empty.
    package var problems: [ConfigProblem]

    package var description: String { problems.map(\.description).joined(separator: "\n") }

    /// The first problem with the number of others, for callers that need a single error.
    package var asSluiceError: SluiceError {
        guard let first = problems.first else { return SluiceError(.configInvalid, "The app directory cannot be used.") }
        var error = first.error
        if problems.count > 1 { error.message += " (and \(problems.count - 1) more; sluice schema diff lists them)" }
        return error
    }
}
