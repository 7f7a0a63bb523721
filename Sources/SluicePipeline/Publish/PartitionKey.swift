package import SluiceCore
package import SluicePorts
import SluiceValues

/// The canonical text that selects a row's partition, from its indexed queryable field.
/// A class without that field uses the primary key. The text is also the record's Kafka key.
package enum PartitionKey {
    /// The text of null, which is a key of its own.
    static let null = Array("NULL".utf8)

    /// Appends the text of a cell. Allocates unless the cell is a string, binary data or null.
    package static func append(_ cell: Cell, of row: RowView, to text: inout [UInt8]) {
        switch cell.tag {
        case .string, .binary: text.append(contentsOf: row.bytes(of: cell))
        case .absent, .null: text.append(contentsOf: null)
        default: text.append(contentsOf: self.text(of: row.value(of: cell) ?? .null))
        }
    }

    /// Returns the canonical text of a value, as bytes.
    package static func text(of value: Value) -> [UInt8] {
        switch value {
        // Collections and links are no indexed queryable fields.
        case .null, .list, .dictionary, .link: null
        case .bool(let v): Array((v ? "true" : "false").utf8)
        case .int(let v): Array(String(v).utf8)
        case .float(let v): Array("\(v)".utf8)
        case .double(let v): Array("\(v)".utf8)
        case .decimal(let v): v.bytes
        case .string(let v): Array(v.utf8)
        case .binary(let v): v
        case .timestamp(let v): Array(String(v.microseconds).utf8)
        case .objectId(let v): Array(v.description.utf8)
        case .uuid(let v): Array(v.description.utf8)
        }
    }

    /// Returns the partition of a value, by Kafka's default partitioner.
    package static func partition(of value: Value, partitions: Int32) -> Int32 {
        Partitioner.partition(of: text(of: value), partitions: partitions)
    }
}

/// The topics and partitions of a schema's classes.
package struct Partitioning: Sendable {
    package struct TypeLayout: Sendable {
        package var topic: String
        package var partitions: Int32
        /// The property that selects the partition.
        package var keyProperty: Int
        /// `true` if that property is the indexed queryable field. Otherwise readers need all partitions.
        package var isIndexed: Bool
    }

    /// The layouts by class index; nil for classes without a topic (embedded, asymmetric).
    package private(set) var layouts: [TypeLayout?]

    /// The classes that clients can read, in schema order.
    package static func readable(_ schema: Schema) -> [ObjectType] { schema.types.filter { $0.kind == .topLevel } }

    package init(schema: AppSchema, topics: Topics, partitions: [String: Int32]) {
        layouts = schema.schema.types.map { type in
            guard type.kind == .topLevel, let key = type.primaryKey, let count = partitions[type.name] else { return nil }
            let indexed = schema.fields.indexedProperty(of: type)
            return TypeLayout(
                topic: topics.changes(of: type.name), partitions: count, keyProperty: indexed ?? key, isIndexed: indexed != nil)
        }
    }

    /// Returns the partitions that hold rows of a class with these keys. Nil keys return all.
    package func partitions(of type: Int, keys: Set<Value>?) -> [LogPartition] {
        guard let layout = layouts[type] else { return [] }
        // Unless the keys are those of the indexed queryable field, a row may be in any partition.
        guard layout.isIndexed, let keys else { return (0..<layout.partitions).map { LogPartition(layout.topic, $0) } }
        let numbers = Set(keys.map { PartitionKey.partition(of: $0, partitions: layout.partitions) })
        // In order, so that equal sets give equal lists.
        return numbers.sorted().map { LogPartition(layout.topic, $0) }
    }
}
