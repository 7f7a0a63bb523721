import SluiceGateway

/// A directory that is right in everything; tests change one file at a time.
enum AppFixture {
    static let ingest = "data_sources/mongodb-atlas/shop/readings/ingest.json"

    static let files: [String: String] = [
        "realm_config.json": """
        {
            "app_id": "shop-abc",
            "name": "shop",
            "environment": "qa",
            "security": { "refresh_token_expiration": 7200 }
        }
        """,
        "auth/providers.json": """
        {
            "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false },
            "local-userpass": { "type": "local-userpass", "config": { "autoConfirm": true }, "disabled": true }
        }
        """,
        "sync/config.json": """
        {
            "type": "flexible",
            "state": "enabled",
            "service_name": "mongodb-atlas",
            "queryable_fields_names": ["owner", "store"],
            "collection_queryable_fields_names": { "orders": ["total"] },
            "indexed_queryable_fields_names": ["store"],
            "asymmetric_tables": ["Reading"]
        }
        """,
        "data_sources/mongodb-atlas/config.json":
            #"{ "name": "mongodb-atlas", "type": "mongodb-atlas", "config": { "clusterName": "c0" } }"#,
        "data_sources/mongodb-atlas/default_rule.json": #"{ "roles": [{ "name": "all", "apply_when": {} }], "filters": [] }"#,
        orders("schema"): """
        {
            "title": "Order",
            "bsonType": "object",
            "required": ["_id", "store", "address"],
            "properties": {
                "_id": { "bsonType": "objectId" },
                "store": { "bsonType": "long" },
                "owner": { "bsonType": "string" },
                "total": { "bsonType": "decimal" },
                "buyer": { "bsonType": "uuid" },
                "tags": { "bsonType": "array", "uniqueItems": true, "items": { "bsonType": "string" } },
                "lines": { "bsonType": "array", "items": {
                    "title": "Line", "bsonType": "object", "required": ["count"], "properties": {
                        "count": { "bsonType": "int" },
                        "buyers": { "bsonType": "array", "items": { "bsonType": "uuid" } }
                    }
                } },
                "address": { "title": "Address", "bsonType": "object", "properties": { "city": { "bsonType": "string" } } },
                "notes": { "bsonType": "object", "additionalProperties": { "bsonType": ["date", "null"] } },
                "anything": { "bsonType": "mixed" }
            }
        }
        """,
        orders("relationships"): """
        {
            "buyer": { "ref": "#/relationship/mongodb-atlas/shop/people", "foreign_key": "_id", "is_list": false },
            "lines.[].buyers": { "ref": "#/relationship/mongodb-atlas/shop/people", "foreign_key": "_id", "is_list": true }
        }
        """,
        orders("rules"): """
        {
            "database": "shop",
            "collection": "orders",
            "roles": [
                {
                    "name": "owner",
                    "apply_when": {},
                    "document_filters": { "read": { "owner": "%%user.id" }, "write": false },
                    "fields": { "total": { "read": true } },
                    "additional_fields": { "read": true, "write": true }
                }
            ]
        }
        """,
        "data_sources/mongodb-atlas/shop/people/schema.json": """
        { "title": "Person", "bsonType": "object", "properties": { "_id": { "bsonType": "uuid" }, "owner": { "bsonType": "string" } } }
        """,
        ingest: #"{ "partition_by": "at", "every": "week", "keep_days": 30 }"#,
        "data_sources/mongodb-atlas/shop/readings/schema.json": """
        { "title": "Reading", "bsonType": "object", "required": ["at"], "properties": {
            "_id": { "bsonType": "string" }, "level": { "bsonType": "float" }, "at": { "bsonType": "date" }
        } }
        """,
        "values/region.json": #"{ "name": "region", "value": ["eu", "us"], "private": false }"#,
        "environments/qa.json": #"{ "values": { "limit": 7 } }"#,
        "functions/config.json": "[]", "graphql/config.json": "{}",
    ]

    static func orders(_ file: String) -> String { "data_sources/mongodb-atlas/shop/orders/\(file).json" }

    /// The fixture with a piece of one file replaced; the piece must be there.
    static func replacing(_ piece: String, with other: String, in file: String) -> [String: String] {
        var files = files
        let text = files[file] ?? ""
        precondition(text.contains(piece), "\(file) has no \(piece)")
        files[file] = text.split(separator: piece, omittingEmptySubsequences: false).joined(separator: other)
        return files
    }

    static func adding(_ file: String, _ text: String) -> [String: String] {
        var files = files
        files[file] = text
        return files
    }

    static func removing(_ file: String) -> [String: String] {
        var files = files
        files[file] = nil
        return files
    }

    static func problems(of files: [String: String]) -> [ConfigProblem] {
        do throws(AppDirectoryError) {
            _ = try AppDirectory.read(files: files)
            return []
        } catch {
            return error.problems
        }
    }
}
