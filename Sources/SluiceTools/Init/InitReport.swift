import SluiceCore
import SluiceGateway
package import SluiceValues

/// The result of `sluice init`: the directory, and what it lacks.
package struct InitReport: Sendable {
    package let draft: AppDraft
    package let plan: DirectoryPlan

    /// `true` if there is nothing to synchronise.
    package var isEmpty: Bool { draft.record.tables.isEmpty }

    // MARK: Text

    /// The classes, what is left out, and the files, for a terminal.
    package var text: String {
        let lines = classes + omitted + notes + proposal + files
        return lines.map(TerminalText.shown).joined(separator: "\n")
    }

    private var classes: [String] {
        let types = draft.record.schema.types
        guard !types.isEmpty else { return ["No table can be synchronised."] }
        return [Self.count(types.count, "class", "classes") + ":"]
            + types.compactMap { type in
                draft.record.tables[type.name].map { table in
                    let key = table.column(of: "_id")
                    let links = type.properties.compactMap { property -> String? in
                        if case .link(let target) = property.type { "\(property.name) → \(target)" } else { nil }
                    }
                    return "  \(type.name): table \(table.schema).\(table.name), key \(key), "
                        + Self.count(type.properties.count, "property", "properties")
                        + (links.isEmpty ? "" : "; links \(links.joined(separator: ", "))")
                }
            }
    }

    private var omitted: [String] {
        guard !draft.omissions.isEmpty else { return [] }
        return ["", "Left out:"]
            + draft.omissions.flatMap { omission in
                ["  \(omission.table)\(omission.column.map { ", column \($0)" } ?? ""): \(omission.reason)"]
                    + Self.statement(omission.statement)
            }
    }

    private var notes: [String] {
        guard !draft.notes.isEmpty else { return [] }
        return ["", "Note:"] + draft.notes.flatMap { ["  \($0.table): \($0.text)"] + Self.statement($0.statement) }
    }

    private static func statement(_ text: String?) -> [String] { text.map { ["    \($0);"] } ?? [] }

    private var proposal: [String] {
        guard let best = draft.indexCandidates.first else { return [] }
        return [
            "",
            "Indexed queryable field: none is set. If every subscription compares “\(best.field)”, which \(best.classes) classes have, name it in",
            "  sync/config.json, as \"indexed_queryable_fields_names\" and in \"queryable_fields_names\".",
        ]
    }

    private var files: [String] {
        var lines = ["", "Files of \(plan.directory):"]
        lines += plan.new.keys.sorted().map { "  new   \($0)" }
        lines += plan.equal.map { "  same  \($0)" }
        for (path, difference) in plan.differences.sorted(by: { $0.key < $1.key }) {
            lines.append("  kept  \(path), which differs from what init would write (+):")
            lines += difference.map { "          \($0)" }
        }
        for (path, text) in plan.withheld.sorted(by: { $0.key < $1.key }) {
            lines.append("  left  \(path): the links are for a schema.json without the differences above. Take those over, or write it:")
            lines += Self.lines(text).map { "          + \($0)" }
        }
        return lines
    }

    private static func lines(_ text: String) -> [String] { text.split(separator: "\n").map(String.init) }

    /// The next steps, once the files are written.
    package var next: String {
        """
        Every user is denied until you open a role: \(InitFiles.role) permits nothing.
        To permit everything to every user, replace its content with:

        \(InitFiles.opening)
        Then give the gateway a role of its own, with the rights that the roles need, and start it:
          sluice schema grants --app \(ShellText.word(plan.directory)) --postgres … --role NAME   prints SQL for the owner of the tables
          sluice serve --app \(ShellText.word(plan.directory)) --postgres …
        """
    }

    private static func count(_ number: Int, _ one: String, _ many: String) -> String { "\(number) \(number == 1 ? one : many)" }

    // MARK: JSON

    package var json: JSON {
        [
            "classes": .array(draft.record.schema.types.map(Self.json(draft.record))),
            "left_out": .array(
                draft.omissions.map {
                    [
                        "table": .string($0.table), "column": Self.text($0.column), "reason": .string($0.reason),
                        "statement": Self.text($0.statement),
                    ]
                }),
            "notes": .array(
                draft.notes.map { ["table": .string($0.table), "text": .string($0.text), "statement": Self.text($0.statement)] }),
            "indexed_queryable_field_candidates": .array(
                draft.indexCandidates.map { ["field": .string($0.field), "classes": .int(Int64($0.classes))] }),
            "files": [
                "new": .array(plan.new.keys.sorted().map { .string($0) }), "same": .array(plan.equal.map { .string($0) }),
                "kept": .object(
                    plan.differences.sorted { $0.key < $1.key }.map { .init($0.key, .array($0.value.map { .string($0) })) }),
                "withheld": .object(
                    plan.withheld.sorted { $0.key < $1.key }.map { .init($0.key, .array(Self.lines($0.value).map { .string($0) })) }),
            ],
        ]
    }

    private static func text(_ text: String?) -> JSON { text.map { .string($0) } ?? .null }

    private static func json(_ record: AppSchemaRecord) -> (ObjectType) -> JSON {
        { type in
            let table = record.tables[type.name]
            return [
                "class": .string(type.name), "schema": text(table?.schema), "table": text(table?.name),
                "key": text(table?.column(of: "_id")),
                "properties": .array(type.properties.map { .string($0.name) }),
            ]
        }
    }
}
