import Foundation
import SluiceCore
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

/// An app directory with a property of every type in two databases, random documents for it, and the files of the tools with them.
struct MigratedApp {
    static let thing = ObjectType(
        name: "Thing",
        properties: [
            Property(id: 1, name: "_id", type: .objectId), Property(id: 2, name: "name", type: .string),
            Property(id: 3, name: "count", type: .int, isOptional: true), Property(id: 4, name: "ratio", type: .double, isOptional: true),
            Property(id: 5, name: "small", type: .float, isOptional: true),
            Property(id: 6, name: "price", type: .decimal, isOptional: true),
            Property(id: 7, name: "isNew", type: .bool, isOptional: true), Property(id: 8, name: "photo", type: .binary, isOptional: true),
            Property(id: 9, name: "at", type: .timestamp, isOptional: true), Property(id: 10, name: "token", type: .uuid, isOptional: true),
            Property(id: 11, name: "any", type: .mixed), Property(id: 12, name: "owner", type: .link(to: "Owner"), isOptional: true),
            Property(id: 13, name: "place", type: .embedded("Place"), isOptional: true),
            Property(id: 14, name: "tags", type: .string, collection: .list),
            Property(id: 15, name: "scores", type: .int, collection: .set),
            Property(id: 16, name: "extra", type: .double, collection: .dictionary),
            Property(id: 17, name: "places", type: .embedded("Place"), collection: .list),
            Property(id: 18, name: "friends", type: .link(to: "Owner"), collection: .list),
            Property(id: 19, name: "times", type: .timestamp, collection: .list),
        ])
    static let owner = ObjectType(
        name: "Owner", properties: [Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "team", type: .string)])
    /// A class whose table is partitioned by time.
    static let reading = ObjectType(
        name: "Reading", kind: .asymmetric,
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "at", type: .timestamp),
            Property(id: 3, name: "value", type: .double),
        ])
    static let place = ObjectType(
        name: "Place", kind: .embedded,
        properties: [
            Property(id: 1, name: "city", type: .string, isOptional: true), Property(id: 2, name: "at", type: .timestamp, isOptional: true),
        ], primaryKey: nil)
    static let schema = Schema([thing, owner, reading, place])

    private static let files: [String: String] = [
        "realm_config.json": #"{"app_id": "moved", "name": "moved", "config_version": 20210101}"#,
        "sync/config.json": """
        {"type": "flexible", "state": "enabled", "service_name": "mongodb-atlas", "database_name": "shop",
         "queryable_fields_names": ["team"], "indexed_queryable_fields_names": ["team"], "asymmetric_tables": ["Reading"]}
        """,
        "data_sources/mongodb-atlas/config.json": #"{"name": "mongodb-atlas", "type": "mongodb-atlas", "config": {}, "version": 1}"#,
        "data_sources/mongodb-atlas/people/owners/schema.json": """
        {"title": "Owner", "bsonType": "object", "required": ["_id", "team"],
         "properties": {"_id": {"bsonType": "string"}, "team": {"bsonType": "string"}}}
        """,
        "data_sources/mongodb-atlas/shop/readings/ingest.json": #"{"partition_by": "at", "every": "day"}"#,
        "data_sources/mongodb-atlas/shop/readings/schema.json": """
        {"title": "Reading", "bsonType": "object", "required": ["_id", "at", "value"],
         "properties": {"_id": {"bsonType": "long"}, "at": {"bsonType": "date"}, "value": {"bsonType": "double"}}}
        """,
        "data_sources/mongodb-atlas/shop/things/schema.json": """
        {"title": "Thing", "bsonType": "object", "required": ["_id", "name"], "properties": {
          "_id": {"bsonType": "objectId"}, "name": {"bsonType": "string"}, "count": {"bsonType": "long"}, "ratio": {"bsonType": "double"},
          "small": {"bsonType": "float"}, "price": {"bsonType": "decimal"}, "isNew": {"bsonType": "bool"}, "photo": {"bsonType": "binData"},
          "at": {"bsonType": "date"}, "token": {"bsonType": "uuid"}, "any": {"bsonType": "mixed"}, "owner": {"bsonType": "string"},
          "place": {"title": "Place", "bsonType": "object", "properties": {"city": {"bsonType": "string"}, "at": {"bsonType": "date"}}},
          "tags": {"bsonType": "array", "items": {"bsonType": "string"}},
          "scores": {"bsonType": "array", "uniqueItems": true, "items": {"bsonType": "long"}},
          "extra": {"bsonType": "object", "additionalProperties": {"bsonType": "double"}},
          "places": {"bsonType": "array", "items": {"title": "Place", "bsonType": "object",
            "properties": {"city": {"bsonType": "string"}, "at": {"bsonType": "date"}}}},
          "friends": {"bsonType": "array", "items": {"bsonType": "string"}},
          "times": {"bsonType": "array", "items": {"bsonType": "date"}}}}
        """,
        "data_sources/mongodb-atlas/shop/things/relationships.json": """
        {"owner": {"ref": "#/relationship/mongodb-atlas/people/owners", "foreign_key": "_id", "is_list": false},
         "friends": {"ref": "#/relationship/mongodb-atlas/people/owners", "foreign_key": "_id", "is_list": true}}
        """,
    ]

    /// Writes the app directory.
    ///
    /// - Returns: Its path.
    static func write(into folder: String) throws -> String {
        let root = folder + "/app"
        for (name, text) in files { try put(Array(text.utf8), root + "/" + name) }
        return root
    }

    static func put(_ bytes: [UInt8], _ path: String) throws {
        let url = URL(fileURLWithPath: path)
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: url)
    }

    // MARK: Documents

    /// Returns a document with a value for about two thirds of the properties.
    static func thing(_ index: Int, _ random: inout SplitMix64) -> [String: Value] {
        let time = Timestamp(milliseconds: Int64(random.below(2_000_000_000)) * 900 - 1)
        let all: [String: Value] = [
            "count": .int(Int64(bitPattern: random.next())), "ratio": .double(Double(random.below(1_000_000)) / 7), "small": .float(0.1),
            "price": .decimal(Decimal128("-12345678901234567890.00120") ?? .zero), "isNew": .bool(random.chance(50)),
            "photo": .binary([0, 255, 92, 10, UInt8(random.below(256))]), "at": .timestamp(time),
            "token": .uuid(UUIDBytes(high: random.next(), low: random.next())),
            "any": random.pick([
                .null, .int(1), .string("t"), .double(1.5), .objectId(ObjectIdentifierBytes(high: 1, low: 2)),
                .dictionary(["x": .list([.null, .bool(true), .timestamp(time)])]), .link(type: "Owner", key: .string("o1")),
            ]),
            "owner": .string("o\(random.below(10))"), "place": .dictionary(["city": .string("Zürich \"水\""), "at": .timestamp(time)]),
            "tags": .list([.string("a,b"), .string("c\"d\\"), .string("tab\tline\n")]), "scores": .set([.int(3), .int(1), .int(-7)]),
            "extra": .dictionary(["k.1": .double(0.5), "z": .double(-1)]),
            "places": .list([.dictionary(["city": .string("Ürgl")]), .dictionary(["city": .null])]),
            "friends": .list([.string("o2"), .string("o2")]), "times": .list([.timestamp(time), .timestamp(Timestamp(seconds: -1))]),
        ]
        var members = all.filter { _ in random.chance(66) }
        members["_id"] = .objectId(ObjectIdentifierBytes(high: 0xABCD, low: UInt32(index)))
        members["name"] = .string("thing \(index) 🛫")
        return members
    }

    static func readings(_ count: Int) -> [[String: Value]] {
        (0..<count).map {
            ["_id": .int(Int64($0)), "at": .timestamp(Timestamp(seconds: 1_700_000_000 + Int64($0) * 86_400)), "value": .double(0.5)]
        }
    }

    static func owners(_ count: Int) -> [[String: Value]] {
        (0..<count).map { ["_id": .string("o\($0)"), "team": .string("t\($0 % 3)")] }
    }

    // MARK: Forms

    /// Canonical extended JSON, v2.
    static func canonical(_ value: Value) -> JSON {
        switch value {
        case .int(let value): ["$numberLong": .string(String(value))]
        case .double(let value): ["$numberDouble": .string("\(value)")]
        case .float(let value): ["$numberDouble": .string("\(Double(value))")]
        case .timestamp(let value): ["$date": ["$numberLong": .string(String(value.milliseconds))]]
        case .list(let elements): .array(elements.map(canonical))
        case .dictionary(let members): .object(members.map { JSON.Member($0.key, canonical($0.value)) })
        default: ExtendedJSON.json(value)
        }
    }

    /// Extended JSON v1, in its strict mode.
    static func first(_ value: Value) -> JSON {
        switch value {
        case .int(let value): ["$numberLong": .string(String(value))]
        case .binary(let value): ["$binary": .string(Base64.encode(value)), "$type": "00"]
        case .uuid(let value): ["$binary": .string(Base64.encode(value.bytes)), "$type": "04"]
        case .timestamp(let value): ["$date": .string(value.iso8601.replacingOccurrences(of: "Z", with: "+0000"))]
        case .list(let elements): .array(elements.map(first))
        case .dictionary(let members): .object(members.map { JSON.Member($0.key, first($0.value)) })
        default: ExtendedJSON.json(value)
        }
    }

    // MARK: Tables

    /// The rows of a table as PostgreSQL's text, in the order of their keys.
    static func rows(_ table: String, _ connection: PostgresConnection) async throws -> [String] {
        try await connection.query("SELECT t::text FROM \(table) t ORDER BY _id").column(0)
    }

    /// Inserts objects by plain SQL.
    static func insert(_ documents: [[String: Value]], _ type: ObjectType, _ table: String, _ connection: PostgresConnection) async throws {
        let shape = try TableShape(type, in: schema)
        let numbers = type.properties.indices.map { "$\($0 + 1)" }.joined(separator: ", ")
        for document in documents {
            let values = type.properties.enumerated().map { index, property in
                PostgresParameter.optional(shape.forms[index].text(document[property.name] ?? property.emptyValue))
            }
            try await connection.execute(
                "INSERT INTO \(table) (\(shape.columns.joined(separator: ", "))) VALUES (\(numbers))", values, cached: true)
        }
    }
}
