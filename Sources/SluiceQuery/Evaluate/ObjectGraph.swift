package import SluiceCore

/// The objects that a query of the whole language can reach: rows by class and key, and the links between them.
///
/// A link is stored as its target's key; one whose target is not there counts as null where a path goes through it, and as the key
/// that it is where links are compared.
package protocol ObjectGraph {
    /// The row with a primary key; nil when there is none.
    func row(_ key: Value, of type: ObjectType) -> Row?

    /// The keys of all rows of a type, in the graph's own order.
    func keys(of type: ObjectType) -> [Value]

    /// The keys of the rows of `source` whose property links to an object, one for every link.
    func incoming(to key: Value, of type: ObjectType, from source: ObjectType, property: Int) -> [Value]

    /// All links to an object, from wherever.
    func incomingCount(to key: Value, of type: ObjectType) -> Int

    /// Lends a row in flat form; nil when there is none.
    func withView(_ key: Value, of type: ObjectType, _ body: (RowView) -> Bool) -> Bool?
}

extension ObjectGraph {
    /// Encodes the row, which allocates. Graphs that keep flat rows have their own.
    package func withView(_ key: Value, of type: ObjectType, _ body: (RowView) -> Bool) -> Bool? {
        guard let row = row(key, of: type) else { return nil }
        var buffer = RowBuffer()
        let reference = buffer.append(row)
        return buffer.withView(reference, body)
    }
}

/// An object that a query stands on.
struct GraphObject {
    let type: ObjectType
    let content: Content

    indirect enum Content {
        case row(key: Value, Row)
        /// A row that is lent for the time of an evaluation.
        case view(key: Value, RowView)
        /// The owner, and the property of it that holds the object.
        case embedded([String: Value], owner: GraphObject, property: Int)
    }

    /// A property's value as it is stored; null when it is absent.
    func value(_ property: Int) -> Value {
        switch content {
        case .row(_, let row): row[property] ?? .null
        case .view(_, let row): row.value(property) ?? .null
        case .embedded(let values, _, _): values[type.properties[property].name] ?? .null
        }
    }

    /// As a value: a link to it. An embedded object has no key.
    var asValue: Value {
        switch content {
        case .row(let key, _), .view(let key, _): .link(type: type.name, key: key)
        case .embedded(let values, _, _): .dictionary(values)
        }
    }
}
