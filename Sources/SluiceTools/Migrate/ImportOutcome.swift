package import SluicePostgres
package import SluiceValues

/// The result of one collection's import.
package struct ImportOutcome: Sendable {
    let target: ImportTarget
    let path: String
    let table: String
    package let progress: ImportProgress
    /// `true` if an earlier run has done it all.
    let wasVerified: Bool
    /// `true` if the table of such an import is empty now.
    let isGone: Bool
    /// The path of the quarantine file; nil if no document is in it.
    package let quarantine: String?
    /// The fields that the class does not have, and the number of documents of this run that have them.
    let dropped: [(name: String, count: Int)]

    /// `true` if every document is a row.
    package var isWhole: Bool { progress.quarantined == 0 }

    /// The lines for people.
    package var text: String {
        var lines = [
            "\(table) (class \(target.type)) from \(path): \(progress.documents) documents, \(progress.written.rows) rows, "
                + (progress.unchanged > 0 ? "\(progress.unchanged) there already, " : "")
                + "\(progress.quarantined) in quarantine; "
                + (wasVerified ? "imported before" : "read back and equal") + ", hash \(progress.written.text)"
        ]
        if isGone { lines.append("  the table is empty now; to import it again, delete the class's rows of sluice.import_progress") }
        if let quarantine { lines.append("  quarantine: \(quarantine)") }
        for field in dropped { lines.append("  not in the schema, left out: \(field.name) (\(field.count) documents)") }
        return lines.joined(separator: "\n")
    }

    package var json: JSON {
        [
            "class": .string(target.type), "table": .string(table), "collection": .string(target.collection), "source": .string(path),
            "documents": .int(progress.documents), "rows": .int(progress.written.rows), "unchanged": .int(progress.unchanged),
            "quarantined": .int(progress.quarantined),
            "bytes": .int(progress.bytes), "hash": .string(progress.written.text),
            "quarantine": quarantine.map { .string($0) } ?? .null,
            "leftOut": .object(dropped.map { JSON.Member($0.name, .int(Int64($0.count))) }),
        ]
    }
}
