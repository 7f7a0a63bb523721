package import SluiceCore
import SluiceGateway
package import SluiceQuery
import SluiceValues

/// Reads the rows for a query: one object of extended JSON per line.
///
/// `_class` names a row's class, by default the class of the query. A link is its target's `_id`. Null is valid for every property except
/// `_id`. A missing property is null or an empty collection. Blank lines are skipped.
package struct QueryRows {
    /// The schema with every property optional: rows serve to try a query and need not be complete.
    private let schema: Schema
    private let type: ObjectType
    private let file: String
    private var rows: [(type: String, row: Row)] = []
    private var lines: [String: [Value: Int]] = [:]

    /// - Parameter file: The file name for errors.
    package init(schema: Schema, type: ObjectType, file: String) {
        self.schema = Schema(schema.types.map(QueryRows.withNulls))
        self.type = self.schema[type.name] ?? type
        self.file = file
    }

    /// Reads a whole file. Memory use is proportional to its rows.
    ///
    /// - Throws: `configMissing`, or the first error of a line with its position.
    package static func graph(at path: String, schema: Schema, type: ObjectType) throws(SluiceError) -> MemoryGraph {
        let reader = try LineReader(path: path)
        var rows = QueryRows(schema: schema, type: type, file: path)
        while let line = try reader.next() { try rows.add(line, number: reader.number) }
        return MemoryGraph(schema: schema, rows: rows.rows)
    }

    /// Returns the rows read so far as a graph over `schema`.
    package func graph(_ schema: Schema) -> MemoryGraph { MemoryGraph(schema: schema, rows: rows) }

    /// Reads one line.
    ///
    /// - Parameter number: The line number, from 1.
    /// - Throws: The error of the line, with its position.
    package mutating func add(_ line: some Collection<UInt8>, number: Int) throws(SluiceError) {
        if line.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\t") }) { return }
        let json: JSON
        do throws(JSONError) { json = try JSON.located(Array(line)) } catch {
            throw SluiceError(.badJSON, "\(file):\(number):\(error.column): This is not valid JSON: \(error.problem).")
        }
        do throws(SluiceError) { try add(json, number) } catch {
            throw SluiceError(error.code, "\(file):\(number): \(error.message)", fix: error.fix)
        }
    }

    private mutating func add(_ json: JSON, _ number: Int) throws(SluiceError) {
        guard case .object(let members) = json else { throw SluiceError(.wrongValueType, "A row must be a JSON object.") }
        let type = try self.type(of: json["_class"])
        guard let primaryKey = type.primaryKey else {
            throw SluiceError(
                .wrongValueType, "\(type.name) is an embedded class: it has no rows of its own.",
                fix: "Put its objects into the rows that own them, or give the class an '_id'.")
        }
        var values = type.properties.map { $0.collection == .none ? Value.null : $0.emptyValue }
        for member in members where member.key != "_class" || type["_class"] != nil {
            guard let index = type.index(of: member.key) else {
                let near = Suggestion.nearest(to: member.key, in: type.properties.map(\.name))
                throw SluiceError(
                    .unknownProperty, "\(type.name) has no property '\(member.key)'.", fix: near.map { "Did you mean '\($0)'?" })
            }
            if case .null = member.value { continue }
            values[index] = try value(member.value, type, type.properties[index])
        }
        try note(key: values[primaryKey], of: type, number)
        rows.append((type.name, Row(values.map(Optional.some))))
    }

    private func type(of json: JSON?) throws(SluiceError) -> ObjectType {
        guard let json else { return type }
        guard let name = json.string else { throw SluiceError(.wrongValueType, "'_class' must be a text.") }
        return try schema.requireType(name)
    }

    private func value(_ json: JSON, _ type: ObjectType, _ property: Property) throws(SluiceError) -> Value {
        do throws(SluiceError) {
            let value = try ExtendedJSON.value(json, property: property, schema: schema)
            guard property.collection == .set, case .list(let elements) = value else { return value }
            return .list(Set(elements).sorted { $0.precedes($1) })
        } catch {
            // Errors about a property itself do not name its class. Those inside an embedded object do.
            let isOwn = error.message.hasPrefix("\(property.name): ")
            throw SluiceError(error.code, isOwn ? "\(type.name).\(error.message)" : error.message, fix: error.fix)
        }
    }

    private mutating func note(key: Value, of type: ObjectType, _ number: Int) throws(SluiceError) {
        if key.isNull {
            throw SluiceError(.wrongValueType, "The row of \(type.name) has no '_id'.", fix: "Give every row its primary key.")
        }
        if let first = lines[type.name, default: [:]].updateValue(number, forKey: key) {
            throw SluiceError(
                .wrongValueType, "The row of \(type.name) with _id \(ExtendedJSON.json(key).text) already exists, in line \(first).",
                fix: "Keep one of the two.")
        }
    }

    private static func withNulls(_ type: ObjectType) -> ObjectType {
        let properties = type.properties.map {
            var property = $0
            property.isOptional = true
            return property
        }
        return ObjectType(
            name: type.name, kind: type.kind, properties: properties, primaryKey: type.primaryKey.map { type.properties[$0].name })
    }
}
