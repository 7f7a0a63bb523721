package import SluiceCore

/// The objects that a query can reach: rows by class and key, and the links between them.
///
/// A link is stored as its target's key. A link to a missing object is null in a path through it, and its key if links are compared.
package protocol ObjectGraph {
    /// Returns the row with a primary key, or nil.
    func row(_ key: Value, of type: ObjectType) -> Row?

    /// Returns the keys of all rows of a class, in the graph's own order.
    func keys(of type: ObjectType) -> [Value]

    /// Returns the keys of the rows of `source` with a property that links to an object, once for every link.
    func incoming(to key: Value, of type: ObjectType, from source: ObjectType, property: Int) -> [Value]

    /// Returns the number of links to an object from all objects.
    func incomingCount(to key: Value, of type: ObjectType) -> Int

    /// Lends a row in flat form to `body`. Returns nil if there is no such row.
    func withView(_ key: Value, of type: ObjectType, _ body: (RowView) -> Bool) -> Bool?
}

extension ObjectGraph {
    /// Encodes the row, which allocates. Graphs that store flat rows implement their own.
    package func withView(_ key: Value, of type: ObjectType, _ body: (RowView) -> Bool) -> Bool? {
        guard let row = row(key, of: type) else { return nil }
        var buffer = RowBuffer()
        let reference = buffer.append(row)
        return buffer.withView(reference, body)
    }
}

/// An object on the path of a query.
struct GraphObject {
    let type: ObjectType
    let content: Content

    indirect enum Content {
        case row(key: Value, Row)
        /// A row that is lent for the duration of an evaluation.
        case view(key: Value, RowView)
        /// An embedded object, its owner, and the owner's property that holds it.
        case embedded([String: Value], owner: GraphObject, property: Int)
    }

    /// Returns the stored value of a property, or null if it is absent.
    func value(_ property: Int) -> Value {
        switch content {
        case .row(_, let row): row[property] ?? .null
        case .view(_, let row): row.value(property) ?? .null
        case .embedded(let values, _, _): values[type.properties[property].name] ?? .null
        }
    }

    /// The object as a value: a link to it. An embedded object has no key and is a dictionary.
    var asValue: Value {
        switch content {
        case .row(let key, _), .view(let key, _): .link(type: type.name, key: key)
        case .embedded(let values, _, _): .dictionary(values)
        }
    }
}
