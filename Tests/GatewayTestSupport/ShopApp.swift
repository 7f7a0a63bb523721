package import SluiceGateway

/// The app that the gateway's tests run: orders of stores that everybody may write, except for keepers, who have one
/// store; and readings, which are only ever sent.
package enum ShopApp {
    package static let tables = """
        CREATE TABLE orders (_id text PRIMARY KEY, store text NOT NULL, title text, size bigint NOT NULL DEFAULT 0, secret text);
        CREATE TABLE readings (_id text PRIMARY KEY, store text NOT NULL, value double precision NOT NULL);
        CREATE TABLE tags (_id text PRIMARY KEY, title text, labels text[] NOT NULL DEFAULT '{}', place jsonb);
        CREATE TABLE stores (_id text PRIMARY KEY, name text, size bigint NOT NULL);
        """

    /// - Parameter changed: files to add or replace; an empty one is left out.
    package static func configuration(files changed: [String: String] = [:]) throws -> AppConfiguration {
        try AppDirectory.read(files: files.merging(changed) { $1 }.filter { !$0.value.isEmpty })
    }

    package static let files: [String: String] = [
        "realm_config.json": #"{ "app_id": "shop", "name": "shop" }"#,
        "auth/providers.json": """
        {
            "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false },
            "local-userpass": { "name": "local-userpass", "type": "local-userpass", "config": { "autoConfirm": true }, "disabled": false },
            "api-key": { "name": "api-key", "type": "api-key", "disabled": false }
        }
        """,
        "sync/config.json": """
        {
            "type": "flexible",
            "state": "enabled",
            "service_name": "postgres",
            "database_name": "public",
            "queryable_fields_names": ["store", "title", "size"],
            "indexed_queryable_fields_names": ["store"],
            "asymmetric_tables": ["Reading"]
        }
        """,
        "data_sources/postgres/config.json": #"{ "name": "postgres", "type": "postgresql", "config": {} }"#,
        table("orders", "schema"): """
        {
            "title": "Order", "bsonType": "object", "required": ["_id", "store", "size"],
            "properties": {
                "_id": { "bsonType": "string" }, "store": { "bsonType": "string" }, "title": { "bsonType": "string" },
                "size": { "bsonType": "long" }, "secret": { "bsonType": "string" }
            }
        }
        """,
        table("orders", "rules"): """
        {
            "database": "public", "collection": "orders",
            "roles": [
                {
                    "name": "keeper", "apply_when": { "%%user.custom_data.store": { "%exists": true } },
                    "document_filters": {
                        "read": { "store": "%%user.custom_data.store" }, "write": { "store": "%%user.custom_data.store" }
                    },
                    "read": true, "write": true, "insert": true, "delete": true, "search": true
                },
                {
                    "name": "everybody", "apply_when": {}, "document_filters": { "read": true, "write": true },
                    "read": true, "write": true, "insert": true, "delete": true, "search": true
                }
            ]
        }
        """,
        table("readings", "schema"): """
        {
            "title": "Reading", "bsonType": "object", "required": ["_id", "store", "value"],
            "properties": { "_id": { "bsonType": "string" }, "store": { "bsonType": "string" }, "value": { "bsonType": "double" } }
        }
        """,
        table("readings", "rules"): everybody("readings"),
        table("tags", "schema"): """
        {
            "title": "Tag", "bsonType": "object", "required": ["_id"],
            "properties": {
                "_id": { "bsonType": "string" }, "title": { "bsonType": "string" },
                "labels": { "bsonType": "array", "items": { "bsonType": "string" } },
                "place": { "title": "Place", "bsonType": "object", "properties": { "x": { "bsonType": "long" }, "y": { "bsonType": "long" } } }
            }
        }
        """,
        table("tags", "rules"): everybody("tags"),
    ]

    /// Takes the rules of all classes away: development mode allows everything, and learns further classes from the app.
    package static let withoutRules = ["orders", "readings", "tags"].reduce(into: [String: String]()) { $0[table($1, "rules")] = "" }

    package static func table(_ name: String, _ file: String) -> String { "data_sources/postgres/public/\(name)/\(file).json" }

    private static func everybody(_ table: String) -> String {
        """
        {
            "database": "public", "collection": "\(table)",
            "roles": [
                {
                    "name": "everybody", "apply_when": {}, "document_filters": { "read": true, "write": true },
                    "read": true, "write": true, "insert": true, "delete": true, "search": true
                }
            ]
        }
        """
    }
}
