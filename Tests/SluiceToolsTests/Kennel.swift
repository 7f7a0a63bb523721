import SluiceCore
import SluiceGateway
import SluiceTools
import Testing

/// A schema and rows with everything that `sluice query` reads.
enum Kennel {
    static let schemaText = """
        {
            "schemas": [
                {
                    "title": "Dog", "bsonType": "object", "required": ["_id", "name"],
                    "properties": {
                        "_id": { "bsonType": "objectId" },
                        "name": { "bsonType": "string" },
                        "age": { "bsonType": "long" },
                        "weight": { "bsonType": "double" },
                        "price": { "bsonType": "decimal" },
                        "born": { "bsonType": "date" },
                        "chip": { "bsonType": "uuid" },
                        "photo": { "bsonType": "binData" },
                        "tags": { "bsonType": "array", "items": { "bsonType": "string" } },
                        "marks": { "bsonType": "array", "uniqueItems": true, "items": { "bsonType": "int" } },
                        "extra": { "bsonType": "object", "additionalProperties": { "bsonType": "string" } },
                        "thing": { "bsonType": "mixed" },
                        "owner": { "bsonType": "long" },
                        "home": {
                            "bsonType": "object", "title": "Address", "required": ["city"],
                            "properties": { "city": { "bsonType": "string" }, "keeper": { "bsonType": "long" } }
                        },
                        "friends": { "bsonType": "array", "items": { "bsonType": "objectId" } }
                    }
                },
                {
                    "title": "Person", "bsonType": "object", "required": ["_id"],
                    "properties": { "_id": { "bsonType": "long" }, "name": { "bsonType": "string" }, "chief": { "bsonType": "long" } }
                },
                {
                    "title": "Bark", "bsonType": "object", "required": ["_id"],
                    "properties": { "_id": { "bsonType": "string" }, "loudness": { "bsonType": "double" } }
                }
            ],
            "relationships": {
                "Dog": {
                    "owner": { "ref": "#/relationship/mongodb-atlas/kennel/PERSONS", "foreign_key": "_id", "is_list": false },
                    "friends": { "ref": "#/relationship/mongodb-atlas/kennel/dogs", "foreign_key": "_id", "is_list": true },
                    "home.keeper": { "ref": "Person", "foreign_key": "_id", "is_list": false }
                },
                "Person": { "chief": { "ref": "Person", "foreign_key": "_id", "is_list": false } }
            },
            "asymmetric_tables": ["Bark"]
        }
        """.replacing("kennel/PERSONS", with: "kennel/PERSONS")

    static let rows = [
        #"{"_class": "Person", "_id": 7, "name": "Ann"}"#,
        """
        {"_class": "Dog", "_id": {"$oid": "00000000000000000000000c"}, "name": "Rex", "age": 3, "weight": {"$numberDouble": "1.5"}, \
        "price": {"$numberDecimal": "9.99"}, "born": {"$date": "2020-01-01T00:00:00Z"}, \
        "chip": {"$uuid": "0000000A-0000-0000-0000-000000000001"}, "photo": {"$binary": {"base64": "AQI=", "subType": "00"}}, \
        "tags": ["a", "b"], "marks": [3, 1, 1], "extra": {"k": "v"}, "thing": {"$numberLong": "5"}, "owner": 7, \
        "home": {"city": "Rome", "keeper": 7}, "friends": []}
        """,
        "",
        #"{"_id": {"$oid": "00000000000000000000000b"}, "name": "Ace", "age": 1, "tags": [null], "home": null, "marks": null, "thing": {"$ref": "Person", "$id": 7}}"#,
        """
        {"_class": "Dog", "_id": {"$oid": "00000000000000000000000a"}, "name": null, "age": {"$numberLong": "9"}, "owner": 8, \
        "home": {"keeper": null}, "friends": [{"$oid": "00000000000000000000000c"}, {"$oid": "00000000000000000000000b"}]}
        """,
    ]

    static func schema() throws -> Schema { try QuerySchemaFile.read(schemaText, file: "S.json") }

    static func reader() throws -> QueryRows {
        let schema = try schema()
        return QueryRows(schema: schema, type: try #require(schema["Dog"]), file: "rows.jsonl")
    }

    /// The last hexadecimal digits of the dogs that a query selects, in order.
    static func dogs(_ query: String, _ arguments: String...) throws -> String {
        var reader = try reader()
        for (index, line) in rows.enumerated() { try reader.add(Array(line.utf8), number: index + 1) }
        let tool = try QueryTool(schema: try schema(), type: "Dog", arguments: try QueryArguments.read(arguments))
        return try tool.run(query, over: reader.graph(tool.schema)).map { String($0.keyText.suffix(1)) }.joined()
    }
}
