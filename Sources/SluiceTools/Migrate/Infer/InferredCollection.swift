import SluiceCore
import SluiceValues

/// A collection of a dump.
package struct CollectionName: Hashable, Comparable, Sendable, CustomStringConvertible {
    var database: String
    var collection: String

    package var description: String { "\(database).\(collection)" }
    package static func < (left: Self, right: Self) -> Bool { (left.database, left.collection) < (right.database, right.collection) }
}

extension CollectionName {
    /// Reads `db.coll`.
    ///
    /// - Returns: nil if a part is missing.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, !parts.contains("") else { return nil }
        self.init(database: parts[0], collection: parts[1])
    }

    /// `true` if both names can be those of folders in an app directory.
    var isPath: Bool { [database, collection].allSatisfy { !$0.contains("/") && !["", ".", ".."].contains($0) } }
}

/// The schema that is proposed for a collection, with its evidence.
struct InferredCollection {
    struct Field {
        var name: String
        var schema: JSON
        /// The type for people, such as `string`, `list of long` or `Order_address`.
        var type: String
        /// The number of documents with a value.
        var present: Int
        var exceptions: [TypeException]
        /// The links that the values are, or that are in them.
        var links: [LinkFinding] = []

        /// The properties that can be links. One with values of another type is none.
        var linkPlaces: [LinkPlace] {
            name == "_id" ? [] : LinkPlace.all(in: schema, at: name).filter { place in !exceptions.contains(where: place.has) }
        }

        /// The link that the field itself is.
        var link: LinkFinding? { links.first { $0.place.path == name } }

        /// The schema, in which no link is required.
        var linkedSchema: JSON { links.reduce(schema) { TypeInference.optional($1.place.names.dropFirst(), in: $0) } }
    }

    var name: CollectionName
    var title: String
    var documents: Int
    var fields: [Field] = []
    var required: [String] = []
    /// The fields that are left out, with the reason.
    var leftOut: [(name: String, reason: String)] = []

    /// The types of BSON that a primary key may have.
    private static let keyTypes: Set<String> = ["objectId", "string", "long", "uuid"]

    /// - Returns: nil with a reason if the collection cannot be synchronised.
    static func infer(_ name: CollectionName, title: String, _ object: ObjectCounter, tolerance: Double) -> (InferredCollection?, String) {
        let inference = TypeInference(tolerance: tolerance)
        var found = InferredCollection(name: name, title: title, documents: object.count)
        // The key decides on the rows, so that the most common type is its type.
        guard let id = object.fields["_id"], let key = TypeInference(tolerance: 1).type(of: id, path: "_id", title: title),
            case .scalar(let type) = key.shape, keyTypes.contains(type)
        else { return (nil, "its _id is none of \(keyTypes.sorted().joined(separator: ", "))") }
        found.fields.append(Field(name: "_id", schema: key.schema, type: type, present: id.total, exceptions: key.exceptions))
        found.required.append("_id")
        for field in object.names where field != "_id" {
            guard let counter = object.fields[field] else { continue }
            found.add(field, counter, inference)
        }
        return (found, "")
    }

    private mutating func add(_ field: String, _ counter: FieldCounter, _ inference: TypeInference) {
        guard Self.isColumn(field) else { return leftOut.append((field, "a property cannot have this name")) }
        guard let type = inference.type(of: counter, path: field, title: "\(title)_\(field)") else {
            return leftOut.append((field, "it is always null"))
        }
        if case .scalar = type.shape, TypeInference.isAlways(counter, documents) { required.append(field) }
        fields.append(
            Field(name: field, schema: type.schema, type: Self.text(type.schema), present: counter.total, exceptions: type.exceptions))
    }

    private static func isColumn(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= Limits.propertyNameBytes && !name.hasPrefix("$") && !name.contains(".")
            && !name.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }

    /// Returns a type for people.
    private static func text(_ schema: JSON) -> String {
        if let items = schema["items"] { return "list of \(text(items))" }
        if let values = schema["additionalProperties"] { return "dictionary of \(text(values))" }
        if let title = schema["title"]?.string { return "embedded \(title)" }
        return schema["bsonType"]?.string ?? "\(schema["bsonType"]?.array?.first?.string ?? "") or null"
    }

    // MARK: Files

    /// The text of `schema.json`.
    var schema: JSON {
        TypeInference.schema(
            title, required.filter { name in fields.first { $0.name == name }?.link == nil }.map { .string($0) },
            fields.map { .init($0.name, $0.linkedSchema) })
    }

    /// The content of `relationships.json`; nil without a link.
    func relationships(source: String) -> JSON? {
        let links = fields.flatMap(\.links).map { link in
            let ref = "#/relationship/\(source)/\(link.target.database)/\(link.target.collection)"
            return JSON.Member(link.place.path, ["ref": .string(ref), "foreign_key": "_id", "is_list": .bool(link.place.isList)])
        }
        return links.isEmpty ? nil : .object(links)
    }

    // MARK: Evidence

    /// The number of exceptions of a field in the text.
    private static let shownExceptions = 5

    /// The evidence for people.
    var lines: [String] {
        var lines = ["\(name): \(documents) documents, class \(title)"]
        for field in fields {
            let share = documents == 0 ? 0 : Double(field.present) * 100 / Double(documents)
            let need = required.contains(field.name) && field.link == nil ? "required" : "in \(field.present) (\(Self.percent(share)))"
            lines.append("  \(field.name): \(field.type), \(need)")
            for link in field.links {
                let place = link.place.path == field.name ? "" : "\(link.place.path) is a "
                lines.append("    \(place)link to \(link.target): \(link.matched) of \(link.sampled) sampled values are keys there")
            }
            for exception in field.exceptions.prefix(Self.shownExceptions) {
                lines.append(
                    "    but \(exception.kind.rawValue) \(exception.count) times at \(exception.path), such as in _id \(exception.example)")
            }
            if field.exceptions.count > Self.shownExceptions {
                lines.append("    and \(field.exceptions.count - Self.shownExceptions) more; --json lists all")
            }
        }
        for field in leftOut { lines.append("  \(field.name): left out, because \(field.reason)") }
        return lines
    }

    private static func percent(_ share: Double) -> String {
        // Less than all is never shown as 100 %.
        let tenths = share < 100 ? min(share * 10, 999).rounded(.down) : 1_000
        return "\(Int(tenths) / 10).\(Int(tenths) % 10) %"
    }

    var json: JSON {
        [
            "collection": .string(name.description), "class": .string(title), "documents": .int(Int64(documents)), "schema": schema,
            "fields": .array(
                fields.map { field in
                    [
                        "name": .string(field.name), "type": .string(field.type), "present": .int(Int64(field.present)),
                        "links": .array(field.links.map(\.json)),
                        "exceptions": .array(
                            field.exceptions.map {
                                [
                                    "path": .string($0.path), "type": .string($0.kind.rawValue), "count": .int(Int64($0.count)),
                                    "example": .string($0.example),
                                ]
                            }),
                    ]
                }),
            "leftOut": .array(leftOut.map { ["name": .string($0.name), "reason": .string($0.reason)] }),
        ]
    }
}
