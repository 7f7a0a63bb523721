import SluiceCore
import SluiceGateway
package import SluicePostgres

/// The judgement of an app's tables: facts in, findings out.
package struct TableFindings: Sendable {
    package var difference: SchemaDifference
    /// The tables whose changes clients read, and their publication. Both lists have one order.
    package var readable: [TableMapping]
    package var publication: Publication.State
    package var publicationName: String
    /// The grants that the role lacks.
    package var missing: [DatabaseGrant]
    /// The app directory, for commands.
    package var directory: String

    package var findings: [CheckFinding] {
        // Without its grants a gateway does not start, so it prepares no publication.
        schema + warnings + (missing.isEmpty ? publications : Self.findings(missing))
    }

    /// The differences for which a gateway does not start.
    private var schema: [CheckFinding] {
        let diff = "sluice schema diff --app \(ShellText.word(directory))"
        let apply = "sluice schema apply --app \(ShellText.word(directory))"
        var all = difference.comparison.breaking.map {
            CheckFinding(
                .error, .tables, "schema", "The app directory breaks with the schema in use: \($0.text): \($0.breaks ?? "").",
                fix: "Undo the change, or accept it.", commands: ["\(apply) --accept-breaking"])
        }
        all += difference.unfit.map { CheckFinding(.error, .tables, "schema", $0) }
        let statements = difference.structure
        if !statements.isEmpty {
            all.append(
                CheckFinding(
                    .error, .tables, "schema", "The tables lack \(Self.parts(statements)) that the classes need.",
                    commands: [diff, apply]))
        }
        if !difference.customData.isEmpty {
            all.append(
                CheckFinding(
                    .warning, .tables, "auth/custom_user_data.json",
                    "The table or column of custom user data does not exist: the admin API provides the data instead.", commands: [apply]))
        }
        if let rules = difference.rules { all.append(CheckFinding(.error, .app, "roles", rules)) }
        return all
    }

    /// Returns the count of statements, and the first one.
    private static func parts(_ statements: [String]) -> String {
        statements.count == 1 ? "a part" : "\(statements.count) parts"
    }

    private var warnings: [CheckFinding] {
        difference.findings.map {
            CheckFinding(
                .warning, .tables, "\($0.table) \($0.subject)", $0.message, fix: $0.statements.count > 1 ? "Run one of:" : "",
                commands: $0.statements.map { "\($0);" })
        }
    }

    /// Returns the findings of grants that the role lacks.
    package static func findings(_ missing: [DatabaseGrant]) -> [CheckFinding] {
        missing.map { CheckFinding(.error, .tables, "grants", "\($0.lack).", commands: ["\($0.statement);"]) }
    }

    // MARK: The publication

    private var publications: [CheckFinding] {
        var all: [CheckFinding] = []
        if !publication.exists, !readable.isEmpty {
            all.append(
                CheckFinding(
                    .note, .tables, publicationName, "The publication \(publicationName) does not exist. The first gateway creates it."))
        } else if publication.exists, !publication.hasOptions {
            all.append(
                CheckFinding(
                    .warning, .tables, publicationName,
                    "The publication \(publicationName) lacks operations or publish_via_partition_root. A gateway sets them at its start.",
                    commands: [
                        "ALTER PUBLICATION \(SQLQuote.identifier(publicationName)) SET (publish = 'insert, update, delete, truncate', publish_via_partition_root = true);"
                    ]))
        }
        for (mapping, table) in zip(readable, publication.tables) { all += findings(of: mapping, table) }
        return all
    }

    /// Returns the repair if a gateway would make it. It publishes no table while one of them does not fit its class.
    private func allowed(_ repair: CheckFinding.Repair) -> CheckFinding.Repair? {
        difference.unfit.isEmpty && difference.structure.isEmpty ? repair : nil
    }

    private func findings(of mapping: TableMapping, _ table: Publication.Standing) -> [CheckFinding] {
        guard table.exists else { return [] }
        if table.isNarrowed {
            return [
                CheckFinding(
                    .error, .tables, mapping.displayName,
                    "\(Publication.narrowing(of: mapping, in: publicationName)): devices miss the changes that it leaves out.",
                    fix: "A gateway then publishes the whole table, and devices compare their rows with it.",
                    commands: [Publication.widening(mapping, in: publicationName)])
            ]
        }
        if table.isPublished, !table.isFull {
            // While such a table is published, devices miss what its updates and deletes removed.
            return [
                CheckFinding(
                    .error, .tables, mapping.displayName,
                    "The table \(mapping.displayName) is published without its old rows: devices keep objects that leave their view.",
                    commands: ["ALTER TABLE \(mapping.sqlName) REPLICA IDENTITY FULL;"],
                    repair: allowed(.publish(mapping, publication: publicationName)))
            ]
        }
        if publication.exists, !table.isPublished || table.wasReplaced {
            return [
                CheckFinding(
                    .warning, .tables, mapping.displayName,
                    table.wasReplaced
                        ? "The table \(mapping.displayName) was replaced, or has other partitions. A gateway publishes it again."
                        : "The table \(mapping.displayName) is not in the publication. A gateway adds it at its start.",
                    repair: allowed(.publish(mapping, publication: publicationName)))
            ]
        }
        guard !table.isFull else { return [] }
        return [
            CheckFinding(
                .note, .tables, mapping.displayName,
                "The table \(mapping.displayName) has no REPLICA IDENTITY FULL. A gateway sets it at its start.",
                commands: ["ALTER TABLE \(mapping.sqlName) REPLICA IDENTITY FULL;"], repair: allowed(.identity(mapping)))
        ]
    }
}
