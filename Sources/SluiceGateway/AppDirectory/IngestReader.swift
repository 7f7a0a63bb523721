import SluiceCore
import SluicePostgres

/// Reads `ingest.json` beside a collection's schema: the time partitions of an asymmetric class.
///
/// - `partition_by`: The property with the time of an object, a required date.
/// - `every`: The length of a partition in UTC: `day` (the default), `week` or `month`.
/// - `keep_days`: The age in days, 1 to 36,500, at which partitions are dropped. By default all are kept.
struct IngestReader {
    func partitions(of collections: [DataSourceReader.Collection], in result: SchemaReader.Result) -> [String: TimePartitions] {
        var partitions: [String: TimePartitions] = [:]
        for collection in collections {
            guard let node = collection.ingest, let name = result.tables.first(where: { $0.value.isPlace(of: collection.table) })?.key,
                let type = result.schema[name]
            else { continue }
            partitions[name] = read(node, type)
        }
        return partitions
    }

    private func read(_ node: ConfigNode, _ type: ObjectType) -> TimePartitions? {
        let members = node.members(allowing: ["partition_by", "every", "keep_days"])
        guard type.kind == .asymmetric else {
            node.problem(
                "\(type.name) is not an asymmetric class.", fix: "Name it in 'asymmetric_tables' of sync/config.json, or remove the file.")
            return nil
        }
        guard let by = members.required("partition_by", of: node), let name = by.string else { return nil }
        guard let index = type.index(of: name) else {
            by.problem(
                "\(type.name) has no property '\(name)'.",
                fix: Suggestion.nearest(to: name, in: type.properties.map(\.name)).map { "Did you mean '\($0)'?" }
                    ?? "Add it to the schema.")
            return nil
        }
        let property = type.properties[index]
        if property.type != .timestamp || property.collection != .none || property.isOptional {
            by.problem("'\(name)' is not a required date.", fix: "Give it bsonType 'date' and name it in 'required'.")
        }
        return TimePartitions(property: name, period: members["every"].map(period) ?? .day, keepDays: members["keep_days"].flatMap(days))
    }

    private func period(_ node: ConfigNode) -> TimePartitions.Period {
        guard let word = node.string else { return .day }
        if let period = TimePartitions.Period(rawValue: word) { return period }
        node.problem(
            "'\(word)' is not a length of a partition.",
            fix: "Use \(TimePartitions.Period.allCases.map(\.rawValue).joined(separator: ", ")).")
        return .day
    }

    private func days(_ node: ConfigNode) -> Int? {
        guard let days = node.int else { return nil }
        if !(1...36_500).contains(days) { node.problem("\(days) is not a valid number of days.", fix: "Give 1 to 36500.") }
        return Int(days)
    }
}
