package import SluiceCore

/// The text by which a row finds its partition: the canonical text of its indexed queryable field, or of its primary key
/// where the type lacks the field (DESIGN section 3). It is also the record's Kafka key.
package enum PartitionKey {
    /// Null is a key of its own.
    static let null = Array("NULL".utf8)

    /// Appends the text of a cell; allocates only for containers, which no key is.
    package static func append(_ cell: Cell, of row: RowView, to text: inout [UInt8]) {
        switch cell.tag {
        case .string, .binary: text.append(contentsOf: row.bytes(of: cell))
        case .absent, .null: text.append(contentsOf: null)
        default: text.append(contentsOf: self.text(of: row.value(of: cell) ?? .null))
        }
    }

    package static func text(of value: Value) -> [UInt8] {
        switch value {
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

    package static func partition(of value: Value, partitions: Int32) -> Int32 {
        Partitioner.partition(of: text(of: value), partitions: partitions)
    }
}

/// How the types of a schema are spread over topics and partitions.
package struct Partitioning: Sendable {
    package struct TypeLayout: Sendable {
        package var topic: String
        package var partitions: Int32
        /// The property that picks the partition.
        package var keyProperty: Int
        /// Whether that property is the indexed queryable field; otherwise readers need all partitions.
        package var isIndexed: Bool
    }

    /// By type index; nil for types without a topic (embedded, asymmetric).
    package private(set) var layouts: [TypeLayout?]

    /// The types that clients can read, in schema order.
    package static func readable(_ schema: Schema) -> [ObjectType] { schema.types.filter { $0.kind == .topLevel } }

    package init(schema: AppSchema, topics: Topics, partitions: [String: Int32]) {
        layouts = schema.schema.types.map { type in
            guard type.kind == .topLevel, let key = type.primaryKey, let count = partitions[type.name] else { return nil }
            let indexed = schema.fields.indexedProperty(of: type)
            return TypeLayout(
                topic: topics.changes(of: type.name), partitions: count, keyProperty: indexed ?? key, isIndexed: indexed != nil)
        }
    }

    /// The partitions in which rows of a type with these keys lie; nil keys means all.
    package func partitions(of type: Int, keys: Set<Value>?) -> [LogPartition] {
        guard let layout = layouts[type] else { return [] }
        guard layout.isIndexed, let keys else { return (0..<layout.partitions).map { LogPartition(layout.topic, $0) } }
        let numbers = Set(keys.map { PartitionKey.partition(of: $0, partitions: layout.partitions) })
        return numbers.sorted().map { LogPartition(layout.topic, $0) }
    }
}
