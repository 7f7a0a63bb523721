package import SluiceCore
package import SluicePostgres
package import SluiceValues

/// A result of `sluice check`: a problem or a note, with the commands that mend it.
package struct CheckFinding: Hashable, Sendable {
    package enum Severity: String, Hashable, Sendable, CaseIterable {
        /// A gateway does not start, or loses data.
        case error
        /// A gateway starts, and something fails or is lost later.
        case warning
        /// A state that an operator should know.
        case note
    }

    /// A group of findings that are looked at together.
    package enum Area: String, Hashable, Sendable, CaseIterable {
        case options, app, plugins, logins, postgres, tables, kafka, network, files

        /// The name for people.
        package var name: String {
            switch self {
            case .options: "options"
            case .app: "app directory"
            case .plugins: "plugins"
            case .logins: "login providers"
            case .postgres: "PostgreSQL"
            case .tables: "tables"
            case .kafka: "Kafka"
            case .network: "network"
            case .files: "files"
            }
        }
    }

    /// A change that `--fix` makes.
    package enum Repair: Hashable, Sendable {
        /// Publishes the table with its old rows (REPLICA IDENTITY FULL).
        case publish(TableMapping, publication: String)
        /// Sets the replica identity of a table that is not published yet.
        case identity(TableMapping)
        /// Takes a file from other users.
        case restrict(path: String)
        /// Creates a folder.
        case folder(path: String)
    }

    package var severity: Severity
    package var area: Area
    /// The value at fault: a setting, table, topic, file or option.
    package var subject: String
    /// One or two sentences.
    package var message: String
    /// A sentence about the remedy; empty if the commands suffice or none is needed.
    package var fix = ""
    /// SQL statements and shell commands that mend it, in order.
    package var commands: [String] = []
    /// nil if `--fix` leaves it to the operator.
    package var repair: Repair?

    package init(
        _ severity: Severity, _ area: Area, _ subject: String, _ message: String, fix: String = "", commands: [String] = [],
        repair: Repair? = nil
    ) {
        self.severity = severity
        self.area = area
        self.subject = subject
        self.message = message
        self.fix = fix
        self.commands = commands
        self.repair = repair
    }

    /// Creates a finding from an error.
    package init(_ severity: Severity, _ area: Area, _ subject: String, _ error: SluiceError, commands: [String] = []) {
        self.init(severity, area, subject, error.operatorText, fix: error.fix ?? error.code.fix, commands: commands)
    }

    package var json: JSON {
        [
            "severity": .string(severity.rawValue), "area": .string(area.rawValue), "subject": .string(subject),
            "message": .string(message), "fix": .string(fix), "commands": .array(commands.map { .string($0) }),
            "fixable": .bool(repair != nil),
        ]
    }
}
