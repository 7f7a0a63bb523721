import SluiceCore
import SluiceGateway
package import SluicePostgres

/// The judgement of a PostgreSQL server: facts in, findings out.
package struct PostgresFindings: Sendable {
    package var facts: ServerFacts
    /// The server's clock less this machine's, in milliseconds, and the longest error of that figure.
    package var clockSkew: Int64
    package var clockError: Int64
    /// The name of the app's slot.
    package var slot: String
    /// The app directory, for commands; nil without one.
    package var directory: String?

    /// The connections that a gateway opens (docs/operations/postgresql.md).
    static let connections = 30
    /// A skew beyond which merge times of SQL writes and of the gateway differ visibly, in milliseconds.
    static let visibleSkew: Int64 = 1_000
    /// The newest major release that the gateway is tested with.
    static let newestMajor = 18

    package init(_ facts: ServerFacts, clockSkew: Int64, clockError: Int64, slot: String, directory: String? = nil) {
        self.facts = facts
        self.clockSkew = clockSkew
        self.clockError = clockError
        self.slot = slot
        self.directory = directory
    }

    package var findings: [CheckFinding] {
        requirements + standby + dangers + collation + walBound + connectionRoom + transport + role + slotState + clock + version
    }

    private func finding(
        _ severity: CheckFinding.Severity, _ subject: String, _ message: String, fix: String = "", commands: [String] = []
    ) -> CheckFinding {
        CheckFinding(severity, .postgres, subject, message, fix: fix, commands: commands)
    }

    /// The requirements that a gateway checks at its start.
    private var requirements: [CheckFinding] {
        ServerSettings.unmet(facts).map { unmet in
            let restart = "It takes effect when PostgreSQL restarts."
            return finding(
                .error, unmet.setting, "\(unmet.setting) is \(unmet.found); wanted is \(unmet.wanted).",
                fix: unmet.statement == nil ? Self.fix(of: unmet) : restart, commands: unmet.statement.map { ["\($0);"] } ?? [])
        }
    }

    private static func fix(of unmet: ServerSettings.Unmet) -> String {
        unmet.setting == "server_encoding"
            ? "Create another database: CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8', and copy the tables." : "Upgrade PostgreSQL."
    }

    private var standby: [CheckFinding] {
        guard facts.isStandby else { return [] }
        return [
            finding(
                .error, "pg_is_in_recovery", "The server is a standby, which accepts no writes.",
                fix: "Name the primary in --postgres, or target_session_attrs=read-write with all hosts.")
        ]
    }

    /// Settings under which PostgreSQL loses what the gateway has acknowledged.
    private var dangers: [CheckFinding] {
        var all: [CheckFinding] = []
        if facts["fsync"] == "off" {
            all.append(
                finding(
                    .error, "fsync", "fsync is off: a crash of the machine can destroy the database and every acknowledged write.",
                    commands: ["ALTER SYSTEM SET fsync = 'on';", "SELECT pg_reload_conf();"]))
        }
        if facts["full_page_writes"] == "off" {
            all.append(
                finding(
                    .warning, "full_page_writes",
                    "full_page_writes is off: a crash of the machine can damage pages, unless the file system writes them whole.",
                    commands: ["ALTER SYSTEM SET full_page_writes = 'on';", "SELECT pg_reload_conf();"]))
        }
        if facts["synchronous_commit"] == "off" {
            all.append(
                finding(
                    .warning, "synchronous_commit",
                    "synchronous_commit is off: writes by SQL may reach devices and be lost in a crash. The gateway's own are safe.",
                    commands: ["ALTER SYSTEM SET synchronous_commit = 'on';", "SELECT pg_reload_conf();"]))
        }
        return all
    }

    /// An upgrade of the operating system may order texts in another way than the indexes do.
    private var collation: [CheckFinding] {
        guard let versions = facts.collation, versions.recorded != versions.actual else { return [] }
        let name = SQLQuote.identifier(facts.database)
        return [
            finding(
                .warning, "collation",
                "The indexes of the database are made for version \(versions.recorded) of its collation, and the system has \(versions.actual): "
                    + "queries may miss rows.",
                commands: ["REINDEX DATABASE \(name);", "ALTER DATABASE \(name) REFRESH COLLATION VERSION;"])
        ]
    }

    private var walBound: [CheckFinding] {
        guard facts.number("max_slot_wal_keep_size") == -1 else { return [] }
        return [
            finding(
                .warning, "max_slot_wal_keep_size",
                "max_slot_wal_keep_size is -1: while no gateway runs, the slot retains WAL until the disk is full.",
                fix: "Set a bound that the disk holds.",
                commands: ["ALTER SYSTEM SET max_slot_wal_keep_size = '10GB';", "SELECT pg_reload_conf();"])
        ]
    }

    private var connectionRoom: [CheckFinding] {
        var all: [CheckFinding] = []
        if facts.freeConnections < Self.connections {
            let wanted = (facts.number("max_connections") ?? 0) + Self.connections - facts.freeConnections
            all.append(
                finding(
                    .warning, "max_connections",
                    "max_connections leaves \(facts.freeConnections) connections; a gateway opens up to \(Self.connections).",
                    fix: "It takes effect when PostgreSQL restarts.", commands: ["ALTER SYSTEM SET max_connections = \(wanted);"]))
        }
        let senders = facts.number("max_wal_senders") ?? 0
        if facts.slot?.isActive != true, senders >= 1, senders <= facts.senders {
            all.append(
                finding(
                    .error, "max_wal_senders", "max_wal_senders is \(senders), and \(facts.senders) connections use them.",
                    fix: "It takes effect when PostgreSQL restarts.",
                    commands: ["ALTER SYSTEM SET max_wal_senders = \(facts.senders + 1);"]))
        }
        return all
    }

    private var transport: [CheckFinding] {
        guard !facts.isEncrypted, !facts.isLocal else { return [] }
        return [
            finding(
                .note, "sslmode", "The connection to PostgreSQL has no TLS.",
                fix: "Beyond a trusted network, add sslmode=verify-full and sslrootcert to --postgres.")
        ]
    }

    private var role: [CheckFinding] {
        guard facts.role.isSuperuser else { return [] }
        return [
            finding(
                .warning, facts.role.name,
                "The role \(facts.role.name) is a superuser: a mistake in the gateway would reach all databases and the machine's files.",
                fix: "Connect with a role of its own: `sluice schema grants` prints the SQL that makes it, with the rights that it needs.",
                commands: directory.map { ["sluice schema grants --app \(ShellText.word($0)) --role sluice"] } ?? [])
        ]
    }

    private var slotState: [CheckFinding] {
        guard let state = facts.slot else {
            return [finding(.note, slot, "The replication slot \(slot) does not exist. The first gateway creates it.")]
        }
        if state.isLost {
            return [
                finding(
                    .error, slot, "The replication slot \(slot) is lost: it can never be read again.",
                    fix: "Drop it. The next gateway creates another, and devices compare their rows with the tables.",
                    commands: ["SELECT pg_drop_replication_slot(\(SQLQuote.postgresLiteral(slot)));"])
            ]
        }
        var all: [CheckFinding] = []
        let ratio = SlotBudget.ratio(kept: state.bytesKept, left: state.bytesLeft, isLost: false)
        if ratio >= 0.5 {
            all.append(
                finding(
                    .warning, slot, "The replication slot \(slot) retains \(Int(ratio * 100)) % of the WAL that it may retain.",
                    fix: "Start a gateway, or raise max_slot_wal_keep_size."))
        }
        let kept = "It retains \(Self.size(state.bytesKept)) of WAL."
        all.append(
            finding(
                .note, slot,
                state.isActive
                    ? "A gateway reads the replication slot \(slot). \(kept)"
                    : "No gateway reads the replication slot \(slot). \(kept) Drop the slot if the app is retired."))
        return all
    }

    private var clock: [CheckFinding] {
        let skew = abs(clockSkew)
        guard skew - clockError > Self.visibleSkew else { return [] }
        let isLarge = skew - clockError > Limits.clockSkewMilliseconds
        return [
            finding(
                isLarge ? .error : .warning, "clock",
                "The clock of PostgreSQL is \(skew) ms \(clockSkew > 0 ? "ahead of" : "behind") this machine's: "
                    + "the later of two writes is decided by these clocks.",
                fix: "Synchronise both machines by NTP.", commands: ["timedatectl set-ntp true"])
        ]
    }

    private var version: [CheckFinding] {
        guard facts.version / 10_000 > Self.newestMajor else { return [] }
        return [
            finding(
                .note, "server_version_num",
                "PostgreSQL \(facts.version / 10_000) is newer than \(Self.newestMajor), the newest release that this gateway knows.")
        ]
    }

    private static func size(_ bytes: Int64) -> String {
        bytes < 1 << 20 ? "\(bytes / 1_024) KiB" : "\(bytes >> 20) MiB"
    }
}
