package import SluiceCore
#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The schema that a client replica was written with, and the app's schema version.
package struct StoredSchema: Hashable, Sendable {
    package var version: UInt64
    package var schema: Schema
}

extension Replica {
    /// Returns the schema that a file was written with, or `nil` if the file is missing or has none.
    package static func storedSchema(path: String, isReadOnly: Bool = false) throws(SluiceError) -> StoredSchema? {
        guard access(path, F_OK) == 0 else { return nil }
        let connection = try Connection.open(path: path, isReadOnly ? .readOnly : .reader)
        let table = try Statement("SELECT 1 FROM sqlite_master WHERE name = '_sluice_schema'", on: connection)
        let isThere = try table.step()
        table.reset()
        return isThere ? try StoredSchema(in: connection) : nil
    }

    /// Records the schema in use. Keeps recorded classes that the schema lacks, since their objects stay in the file.
    package func noteSchema(version: UInt64) throws(SluiceError) {
        let before = try Replica.storedSchema(path: path)
        if before?.version == version, schema.types.allSatisfy({ before?.schema[$0.name] == $0 }) { return }
        try commitNow { parts throws(SluiceError) in
            try parts.database.connection.execute(StoredSchema.table)
            for type in schema.types { try StoredSchema.note(type, in: parts.database.connection) }
            try StoredSchema.note(version, in: parts.database.connection)
        }
    }
}

extension StoredSchema {
    /// The row without a class name holds the version.
    static let table = "CREATE TABLE IF NOT EXISTS _sluice_schema (class TEXT PRIMARY KEY, description BLOB) WITHOUT ROWID"

    init?(in connection: Connection) throws(SluiceError) {
        let statement = try Statement("SELECT class, description FROM _sluice_schema ORDER BY class", on: connection)
        var (version, types): (UInt64?, [ObjectType]) = (nil, [])
        while try statement.step() {
            let description = StoredValue.decode(statement.bytes(1))
            if statement.string(0).isEmpty, case .int(let number)? = description {
                version = UInt64(bitPattern: number)
            } else if let type = description.flatMap({ ObjectType(statement.string(0), $0) }) {
                types.append(type)
            }
        }
        statement.reset()
        guard let version else { return nil }
        self.init(version: version, schema: Schema(types))
    }

    static func note(_ version: UInt64, in connection: Connection) throws(SluiceError) {
        try note("", .int(Int64(bitPattern: version)), in: connection)
    }

    static func note(_ type: ObjectType, in connection: Connection) throws(SluiceError) {
        try note(type.name, type.stored, in: connection)
    }

    private static func note(_ name: String, _ description: Value, in connection: Connection) throws(SluiceError) {
        let statement = try connection.statement("INSERT OR REPLACE INTO _sluice_schema VALUES (?, ?)")
        statement.bind(0, name)
        statement.bind(1, StoredValue.encode(description))
        try statement.run()
    }

    static func forget(_ name: String, in connection: Connection) throws(SluiceError) {
        let statement = try connection.statement("DELETE FROM _sluice_schema WHERE class = ?")
        statement.bind(0, name)
        try statement.run()
    }
}

extension ObjectType {
    fileprivate var stored: Value {
        let properties = properties.map { property in
            var fields: [String: Value] = [
                "name": .string(property.name), "type": .string(property.type.name),
                "collection": .int(Int64(property.collection.rawValue)),
                "optional": .bool(property.isOptional),
            ]
            switch property.type {
            case .link(let target), .embedded(let target): fields["target"] = .string(target)
            default: break
            }
            return Value.dictionary(fields)
        }
        let key: Value = primaryKey.map { .string(self.properties[$0].name) } ?? .null
        return .dictionary(["kind": .int(Int64(kind.rawValue)), "key": key, "properties": .list(properties)])
    }

    fileprivate init?(_ name: String, _ stored: Value) {
        guard case .dictionary(let fields) = stored, case .int(let kind)? = fields["kind"], case .list(let list)? = fields["properties"],
            let kind = UInt8(exactly: kind).flatMap({ ObjectKind(rawValue: $0) })
        else { return nil }
        var key: String?
        if case .string(let name)? = fields["key"] { key = name }
        self.init(name: name, kind: kind, properties: list.compactMap { SluiceCore.Property($0) }, primaryKey: key)
    }
}

extension SluiceCore.Property {
    fileprivate init?(_ stored: Value) {
        guard case .dictionary(let fields) = stored, case .string(let name)? = fields["name"], case .string(let type)? = fields["type"],
            case .int(let collection)? = fields["collection"], case .bool(let isOptional)? = fields["optional"],
            let collection = UInt8(exactly: collection).flatMap({ CollectionKind(rawValue: $0) })
        else { return nil }
        var target = ""
        if case .string(let name)? = fields["target"] { target = name }
        let plain: [SluiceCore.PropertyType] = [
            .bool, .int, .float, .double, .decimal, .string, .binary, .timestamp, .objectId, .uuid, .mixed, .link(to: target),
            .embedded(target),
        ]
        guard let type = plain.first(where: { $0.name == type }) else { return nil }
        self.init(id: 0, name: name, type: type, collection: collection, isOptional: isOptional)
    }
}
