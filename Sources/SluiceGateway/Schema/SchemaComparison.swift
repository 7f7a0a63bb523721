package import SluiceCore
import SluicePipeline

/// The differences of a new schema from the one in use, and which of them break apps.
package struct SchemaComparison: Hashable, Sendable {
    package struct Change: Hashable, Sendable {
        /// The change, such as `property Order.size is string, was int`.
        package var text: String
        /// The consequence for apps; nil for an additive change.
        package var breaks: String?
        /// The property that was removed or retyped, if the change is about one.
        var retired: Retired?

        struct Retired: Hashable, Sendable {
            var type: String
            var property: String
        }
    }

    /// The changes in the order of classes and properties. Those of the old schema precede those of new classes.
    package private(set) var changes: [Change] = []
    /// The properties of removed classes.
    private var removedClasses: [Change.Retired] = []

    package var breaking: [Change] { changes.filter { $0.breaks != nil } }
    package var isBreaking: Bool { changes.contains { $0.breaks != nil } }
    /// The properties whose numbers must not be reused, because remaining values have another meaning.
    package var retired: [(type: String, property: String)] {
        (changes.compactMap(\.retired) + removedClasses).map { ($0.type, $0.property) }
    }

    package init(from old: AppSchemaRecord, to new: AppSchemaRecord) {
        for type in old.schema.types {
            guard let next = new.schema[type.name] else {
                removed(type, old.tables[type.name])
                continue
            }
            compare(type, next, old.tables[type.name], new.tables[type.name])
        }
        for type in new.schema.types where old.schema[type.name] == nil {
            add(
                "class \(type.name) is new (\(type.kind.word), \(type.properties.count) properties)",
                breaks: !old.schema.types.isEmpty && Self.hasTopicOfEvents(type) ? Self.eventsLeave : nil)
        }
        compareFields(old, new)
    }

    private mutating func add(_ text: String, breaks: String? = nil, retired: Change.Retired? = nil) {
        changes.append(Change(text: text, breaks: breaks, retired: retired))
    }

    // MARK: The topic of users' events

    private static let eventsLeave =
        "with Kafka, events of users go to the topic APP.user-events instead of APP.users. Delete APP.users before the restart, since it has "
        + "events in place of changes."
    private static let eventsReturn =
        "With Kafka, events of users go to the topic APP.users again. Delete it before the restart, since it has changes of the class."

    private static func hasTopicOfEvents(_ type: ObjectType) -> Bool { type.kind == .topLevel && type.name == Topics.usersClass }

    // MARK: Classes

    private mutating func removed(_ type: ObjectType, _ table: AppConfiguration.Table?) {
        let place = table.map { " The table \($0.schema).\($0.name) remains." } ?? ""
        add(
            "class \(type.name) is removed",
            breaks: "apps whose model has it are refused (225), subscriptions to it fail, and its objects leave the devices.\(place)"
                + (Self.hasTopicOfEvents(type) ? " \(Self.eventsReturn)" : ""))
        removedClasses += type.properties.map { .init(type: type.name, property: $0.name) }
    }

    private mutating func compare(
        _ old: ObjectType, _ new: ObjectType, _ oldTable: AppConfiguration.Table?, _ newTable: AppConfiguration.Table?
    ) {
        if old.kind != new.kind {
            add(
                "class \(old.name) is \(new.kind.word), was \(old.kind.word)",
                breaks: "apps with the old model are rejected, and their objects of it cannot be synchronised")
        }
        if let oldTable, let newTable, !oldTable.isPlace(of: newTable) {
            add(
                "class \(old.name) is in the table \(newTable.schema).\(newTable.name), was in \(oldTable.schema).\(oldTable.name)",
                breaks: "devices lose the objects of the old table and receive those of the new one")
        }
        for property in old.properties {
            guard let next = new[property.name] else {
                add(
                    "property \(old.name).\(property.name) is removed",
                    breaks:
                        "apps whose model has it are refused (225), and their offline writes to it are lost. The column remains.",
                    retired: .init(type: old.name, property: property.name))
                continue
            }
            compare(old, property, next)
            guard let before = oldTable?.column(of: property.name), let after = newTable?.column(of: property.name), before != after
            else { continue }
            add(
                "property \(old.name).\(property.name) is in the column “\(after)”, was in “\(before)”",
                breaks: "devices receive the values of the new column, and those of the old one stay there")
        }
        for property in new.properties where old[property.name] == nil {
            add("property \(old.name).\(property.name) is new (\(property.typeText))")
        }
    }

    private mutating func compare(_ type: ObjectType, _ old: Property, _ new: Property) {
        let isKey = type.primaryKey.map { type.properties[$0].name == old.name } ?? false
        let name = isKey ? "the primary key \(type.name).\(old.name)" : "property \(type.name).\(old.name)"
        if old.type != new.type || old.collection != new.collection {
            let more = isKey ? "; every device holds the class's objects, and links to them, by the old key" : ""
            add(
                "\(name) is \(new.typeText), was \(old.typeText)",
                breaks: "apps with the old model are refused (225), and the column must hold values of the new type\(more)",
                retired: .init(type: type.name, property: old.name))
        } else if old.isOptional, !new.isOptional {
            add(
                "\(name) is required, was optional",
                breaks: "apps with the old model are refused (225), and rows where it is NULL are quarantined until it is filled")
        } else if new.isOptional, !old.isOptional {
            add("\(name) is optional, was required", breaks: "apps with the old model, which has no null there, are refused (225)")
        }
    }

    // MARK: Queryable fields

    private mutating func compareFields(_ old: AppSchemaRecord, _ new: AppSchemaRecord) {
        if old.fields.indexed != new.fields.indexed {
            let (was, now) = (old.fields.indexed ?? "none", new.fields.indexed ?? "none")
            add(
                "the indexed queryable field is \(now), was \(was)",
                breaks: "changes are spread over the log's partitions by it, and subscriptions without \(now) at their top level fail (312)"
            )
        }
        for type in old.schema.types where type.kind == .topLevel {
            guard let next = new.schema[type.name] else { continue }
            for property in type.properties where next[property.name] != nil {
                let (was, now) = (old.fields.contains(property.name, of: type.name), new.fields.contains(property.name, of: type.name))
                if was, !now {
                    add("\(type.name).\(property.name) is not queryable any more", breaks: "subscriptions and rules that use it fail (310)")
                } else if now, !was {
                    add("\(type.name).\(property.name) is queryable")
                }
            }
        }
    }
}

extension SchemaComparison {
    /// Returns the error with every breaking change; nil if there is none.
    ///
    /// - Parameter version: The version of the schema in use.
    package func refusal(version: UInt64) -> SluiceError? {
        guard isBreaking else { return nil }
        let lines = breaking.map { "\n  - \($0.text): \($0.breaks ?? "")" }.joined()
        return SluiceError(
            .breakingSchemaChange, "The app directory breaks with the schema in use (version \(version)):\(lines)\n",
            fix: ErrorCode.breakingSchemaChange.fix)
    }
}
