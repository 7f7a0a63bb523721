import SluiceCore
package import SluiceGateway
package import SluiceValues

/// The result of `sluice migrate check`.
package struct ExportReport: Sendable {
    /// The app; nil if its problems leave none.
    package var app: AppConfiguration?
    package var problems: [ConfigProblem]
    package var notes: [ConfigNote]
    /// The judgement of the plugin for roles.
    package var roles = RuleCheck.Result()
    /// The parts without a counterpart.
    package var features: [ExportFeature]

    init(_ found: AppDirectory.Examination, features: [ExportFeature]) {
        (app, problems, notes) = (found.configuration, found.problems, found.notes)
        self.features = features
    }

    /// A line of the report.
    package struct Item: Hashable, Sendable {
        package var place: String
        package var message: String
        package var fix: String
        package var text: String { [place.isEmpty ? "" : "\(place):", message, fix].filter { !$0.isEmpty }.joined(separator: " ") }
    }

    /// The mistakes for which a gateway does not start.
    package var refusals: [Item] {
        var items = problems.map { Item(place: $0.place, message: $0.message, fix: $0.fix) }
        items += roles.refusals.map { Item(place: "", message: $0, fix: "") }
        // The note has the same words.
        if app?.hasClasses == false { items += notes.filter(Self.isAboutClasses).map(Self.item) }
        return items
    }

    /// `true` if a gateway serves the app.
    package var runs: Bool { refusals.isEmpty && app != nil }

    /// The notes that ask for an addition.
    package var additions: [Item] {
        notes.filter { $0.kind == .missing && !(app?.hasClasses == false && Self.isAboutClasses($0)) }.map(Self.item)
            + roles.warnings.filter { !Self.isUnused($0) }.map { Item(place: "", message: $0, fix: "") }
    }

    private static func isUnused(_ warning: String) -> Bool { warning.contains(" is not used: ") }

    package func items(_ kind: ConfigNote.Kind) -> [Item] {
        // The features list these.
        notes.filter {
            $0.kind == kind && !$0.message.hasSuffix("has no effect here.") && !$0.message.hasSuffix("for synchronised writes.")
        }
        .map(Self.item)
            + (kind == .unused ? roles.warnings.filter(Self.isUnused).map { Item(place: "", message: $0, fix: "") } : [])
    }

    private static func isAboutClasses(_ note: ConfigNote) -> Bool {
        note.file == "data_sources/" && note.message.hasPrefix("The export has no class")
    }

    private static func item(_ note: ConfigNote) -> Item {
        Item(place: note.message.hasPrefix(note.file) ? "" : note.place, message: note.message, fix: note.fix)
    }

    // MARK: Text

    /// The number of lines of a group in the text. JSON has all.
    private static let shown = 8

    /// The report for a terminal.
    package var text: String {
        var lines = [head, counts].filter { !$0.isEmpty }
        lines += group("It does not run until this is corrected:", refusals)
        lines += group("It needs an addition, or does less without:", additions)
        lines += group("Not synchronised, as with App Services:", items(.omitted))
        lines += group("Read in its newer form:", items(.adapted))
        lines += group("Without effect:", items(.unused))
        if !features.isEmpty { lines += ["", "Without a counterpart, and what replaces it:"] + features.map(Self.line) }
        return lines.map(TerminalText.shown).joined(separator: "\n")
    }

    private var head: String {
        let name = app.flatMap { $0.appID.isEmpty ? nil : "App \($0.appID)" } ?? "The app"
        guard runs else { return "\(name) does not run yet." }
        return additions.isEmpty ? "\(name) runs as it is." : "\(name) runs, and needs an addition."
    }

    private var counts: String {
        guard let app else { return "" }
        let asymmetric = app.schema.types.count { $0.kind == .asymmetric }
        let classes = app.schema.types.count { $0.kind == .topLevel }
        let fields = app.queryableFields.byType.values.reduce(app.queryableFields.global.count) { $0 + $1.count }
        let parts = [
            Self.count(classes, "class", "classes"), Self.count(asymmetric, "asymmetric class", "asymmetric classes"),
            Self.count(fields, "queryable field", "queryable fields"), Self.count(app.values.count, "value", "values"),
            Self.count(app.users.providers.count { $0.isEnabled }, "login provider", "login providers"),
            app.users.customData.map { "custom user data in \($0.table.schema).\($0.table.name)" },
        ].compactMap { $0 }
        return parts.isEmpty ? "" : "Read: \(parts.joined(separator: ", "))."
    }

    private static func count(_ count: Int, _ one: String, _ many: String) -> String? {
        count == 0 ? nil : "\(count) \(count == 1 ? one : many)"
    }

    private func group(_ title: String, _ items: [Item]) -> [String] {
        guard !items.isEmpty else { return [] }
        var lines = ["", title]
        for item in items.prefix(Self.shown) {
            lines.append("  " + [item.place.isEmpty ? "" : "\(item.place):", item.message].filter { !$0.isEmpty }.joined(separator: " "))
            if !item.fix.isEmpty { lines.append("      \(item.fix)") }
        }
        if items.count > Self.shown { lines.append("  … and \(items.count - Self.shown) more; --json lists all.") }
        return lines
    }

    private static func line(_ feature: ExportFeature) -> String {
        let name = feature.names.count == 1 ? feature.kind.name.one : feature.kind.name.many
        let names = feature.names.filter { !$0.isEmpty }
        var listed = names.prefix(3).joined(separator: ", ")
        if names.count > 3 { listed += ", …" }
        let place = feature.places.first.map(\.text) ?? ""
        return "  \(feature.names.count) \(name) (\(listed.isEmpty ? "" : "\(listed); ")\(place)): \(feature.kind.replacement)"
    }

    // MARK: JSON

    package var json: JSON {
        [
            "runs": .bool(runs), "app_id": app.flatMap { $0.appID.isEmpty ? nil : .string($0.appID) } ?? .null,
            "classes": .array((app?.schema.types ?? []).filter { $0.kind != .embedded }.map { .string($0.name) }),
            "refusals": .array(refusals.map(Self.json)), "additions": .array(additions.map(Self.json)),
            "warnings": .array(roles.warnings.map { .string($0) }), "notes": .array(notes.map(Self.json)),
            "features": .array(features.map(Self.json)),
        ]
    }

    private static func json(_ item: Item) -> JSON {
        ["place": .string(item.place), "message": .string(item.message), "fix": .string(item.fix)]
    }

    private static func json(_ note: ConfigNote) -> JSON {
        [
            "kind": .string(note.kind.rawValue), "file": .string(note.file), "line": .int(Int64(note.line)),
            "subject": note.subject.map { .string($0) } ?? .null, "message": .string(note.message), "fix": .string(note.fix),
        ]
    }

    private static func json(_ feature: ExportFeature) -> JSON {
        [
            "kind": .string(feature.kind.rawValue), "count": .int(Int64(feature.names.count)),
            "replacement": .string(feature.kind.replacement),
            "items": .array(
                zip(feature.names, feature.places).map {
                    ["name": .string($0), "file": .string($1.file), "line": .int(Int64($1.line))]
                }),
        ]
    }
}
