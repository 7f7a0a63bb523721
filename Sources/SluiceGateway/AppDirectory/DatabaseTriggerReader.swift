import SluiceCore
package import SluiceIdentity
import SluiceValues

/// The database triggers of an app.
package struct DatabaseTriggers: Hashable, Sendable {
    package var running: [DatabaseTrigger] = []
    /// The names of disabled triggers that skip what happens meanwhile.
    package var skipping: [String] = []

    package init() {}
}

/// Reads the database triggers of an export, `triggers/*.json`. A trigger that the gateway would run otherwise than App Services is a note
/// and is not run.
struct DatabaseTriggerReader {
    let trees: [String: ConfigNode]
    let schema: Schema
    let tables: [String: AppConfiguration.Table]

    /// - Parameter functions: The functions of the app, which triggers name.
    func read(_ functions: [AppFunction]) -> DatabaseTriggers {
        var triggers = DatabaseTriggers()
        for file in TriggerFile.all(in: trees) where file.type == TriggerFile.database {
            if file.isDisabled {
                if file.flag("skip_catchup_events") { triggers.skipping.append(file.name) }
            } else if triggers.running.contains(where: { $0.name == file.name }) {
                file.refuse("another trigger has its name", "Give each its own name.")
            } else if let trigger = trigger(file, functions) {
                triggers.running.append(trigger)
            }
        }
        return triggers
    }

    private func trigger(_ file: TriggerFile, _ functions: [AppFunction]) -> DatabaseTrigger? {
        guard let function = file.callable(functions, "database"), let (type, table) = place(file), let operations = operations(file) else {
            return nil
        }
        var shape = ChangeEventShape(database: table.schema, collection: table.name)
        shape.hasFullDocument = file.flag("full_document")
        shape.hasPreImage = file.flag("full_document_before_change")
        var trigger = DatabaseTrigger(file.name, on: type, operations, function: function, shape: shape)
        trigger.isUnordered = file.flag("unordered")
        do throws(Condition.Unsupported) {
            if let match = file.part("match") { trigger.match = try Condition(filter: match.json) }
        } catch {
            file.refuse(
                error.part, in: "match",
                "Use comparisons, $in, $exists, $and, $or, $nor and $not of an event's fields, or $expr with $eq or $ne.")
            return nil
        }
        do throws(Condition.Unsupported) {
            trigger.projection = try file.part("project").map { node throws(Condition.Unsupported) in try ChangeProjection(node.json) }
        } catch {
            file.refuse(error.part, in: "project", "Name the fields to keep with 1, or those to leave out with 0.")
            return nil
        }
        return trigger
    }

    /// Returns the class and the table; nil with a note if the trigger does not name one.
    private func place(_ file: TriggerFile) -> (type: String, table: AppConfiguration.Table)? {
        guard let collection = file.config?.child("collection")?.json.string, let database = file.config?.child("database")?.json.string
        else {
            file.refuse("it names no collection and database", "Make a trigger for each collection.")
            return nil
        }
        let wanted = AppConfiguration.Table(schema: database, name: collection)
        guard let (type, table) = tables.first(where: { $0.value.isPlace(of: wanted) }) else {
            file.refuse("the app has no class for \(database).\(collection)", "Use an SQL trigger on the table.")
            return nil
        }
        // Their objects pass no change log.
        guard schema[type]?.kind == .topLevel else {
            file.refuse("the class \(type) is asymmetric", "Use an SQL trigger on the table.")
            return nil
        }
        return (type, table)
    }

    /// Returns the operations; nil with a note for an unknown one.
    private func operations(_ file: TriggerFile) -> Set<ChangeEvent.Operation>? {
        let names = (file.config?.child("operation_types")?.json.array ?? []).map { $0.string?.lowercased() ?? $0.text }
        if let unknown = names.first(where: { $0 != "replace" && ChangeEvent.Operation(rawValue: $0) == nil }) {
            file.refuse("its operation '\(unknown)' is unknown", "Use INSERT, UPDATE and DELETE.")
            return nil
        }
        let operations = Set(names.compactMap(ChangeEvent.Operation.init))
        guard !operations.isEmpty else {
            file.refuse("it has no operation that occurs", "Use INSERT, UPDATE and DELETE. A row that is replaced is an UPDATE.")
            return nil
        }
        if names.contains("replace"), !operations.contains(.update) {
            file.note(
                "The database trigger '\(file.name)' receives no replaced rows: each counts as an update.",
                "Add UPDATE to its operation_types.")
        }
        return operations
    }
}

extension TriggerFile {
    fileprivate func flag(_ key: String) -> Bool { config?.child(key)?.json.bool == true }

    /// Returns an object of the configuration; nil for an absent, null or empty one.
    fileprivate func part(_ key: String) -> ConfigNode? {
        config?.child(key).flatMap { node in
            if case .null = node.json { return nil }
            return node.json.members?.isEmpty == true ? nil : node
        }
    }

    fileprivate func refuse(_ reason: String, _ fix: String) { note("The database trigger '\(name)' is not run: \(reason).", fix) }

    /// Notes a part that is not evaluated, at the place of its expression.
    fileprivate func refuse(_ part: String, in key: String, _ fix: String) {
        (config?.child(key) ?? node).note(
            .unused, "The database trigger '\(name)' is not run: '\(part)' in \(key) is not evaluated.", fix: fix)
    }
}
