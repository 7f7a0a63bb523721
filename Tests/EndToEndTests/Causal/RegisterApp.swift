import Foundation

/// The app directory of the causal test, with one class. Its shard is the indexed queryable field, so that a transaction's writes go
/// through several partitions.
enum RegisterApp {
    /// - Parameters:
    ///   - name: the broker is everybody's, so that an app over Kafka wants one of its own.
    ///   - folder: gets the directory.
    /// - Returns: its path.
    static func write(named name: String, to folder: DataFolder) throws -> String {
        let app = URL(fileURLWithPath: folder.path).appendingPathComponent("registers")
        for (path, text) in files(name) {
            let file = app.appendingPathComponent(path)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        return app.path
    }

    private static func files(_ name: String) -> [String: String] {
        [
            "realm_config.json": #"{ "app_id": "\#(name)", "config_version": 20210101, "name": "registers" }"#,
            "auth/providers.json": #"""
            { "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false },
              "local-userpass": { "name": "local-userpass", "type": "local-userpass", "config": { "autoConfirm": true }, "disabled": false } }
            """#,
            "sync/config.json": #"""
            { "type": "flexible", "state": "enabled", "service_name": "postgres", "database_name": "public",
              "development_mode_enabled": false, "queryable_fields_names": ["shard"],
              "indexed_queryable_fields_names": ["shard"] }
            """#,
            "data_sources/postgres/config.json": #"{ "name": "postgres", "type": "postgresql", "config": {}, "version": 1 }"#,
            "data_sources/postgres/public/Register/schema.json": #"""
            { "title": "Register", "bsonType": "object", "required": ["_id", "shard", "value"],
              "properties": { "_id": { "bsonType": "long" }, "shard": { "bsonType": "string" }, "value": { "bsonType": "long" } } }
            """#,
            "data_sources/postgres/public/Register/rules.json": #"""
            { "database": "public", "collection": "Register",
              "roles": [
                { "name": "everybody", "apply_when": {}, "document_filters": { "read": true, "write": true },
                  "read": true, "write": true, "insert": true, "delete": true, "search": true }
              ] }
            """#,
        ]
    }
}
