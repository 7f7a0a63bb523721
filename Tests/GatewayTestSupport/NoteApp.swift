package import SluiceCore
import Testing

/// An app whose classes are all alike and differ in their roles.
package enum NoteApp {
    /// - Parameters:
    ///   - roles: a JSON list for each class; a class with an empty text has none of its own.
    ///   - defaults: the roles of classes that have none.
    ///   - queryable: fields besides those of owners and teams.
    package static func files(_ roles: [String: String], defaults: String = "", queryable: [String] = []) -> [String: String] {
        var files = ShopApp.files.filter { !$0.key.contains("/public/") }
        files["sync/config.json"] = """
            {
                "type": "flexible", "state": "enabled", "service_name": "postgres", "database_name": "public",
                "queryable_fields_names": ["owner_id", "team", "collaborators"\(queryable.map { ", \"\($0)\"" }.joined())]
            }
            """
        if !defaults.isEmpty { files["data_sources/postgres/default_rule.json"] = #"{ "roles": \#(defaults) }"# }
        for (name, roles) in roles {
            files[ShopApp.table(name, "schema")] = """
                {
                    "title": "\(name)", "bsonType": "object", "required": ["_id", "owner_id", "team"],
                    "properties": {
                        "_id": { "bsonType": "string" }, "owner_id": { "bsonType": "string" }, "team": { "bsonType": "string" },
                        "text": { "bsonType": "string" }, "secret": { "bsonType": "string" },
                        "collaborators": { "bsonType": "array", "items": { "bsonType": "string" } }
                    }
                }
                """
            if !roles.isEmpty {
                files[ShopApp.table(name, "rules")] = #"{ "database": "public", "collection": "\#(name)", "roles": \#(roles) }"#
            }
        }
        return files
    }

    package static func tables(_ names: some Sequence<String>) -> String {
        names.map { name in
            """
            CREATE TABLE "\(name)" (
                _id text PRIMARY KEY, owner_id text NOT NULL, team text NOT NULL, text text, secret text,
                collaborators text[] NOT NULL DEFAULT '{}');
            """
        }
        .joined()
    }

    package static func with(
        _ roles: [String: String], defaults: String = "", _ body: @escaping @Sendable (RunningGateway) async throws -> Void
    ) async throws {
        try await RunningGateway.deploy(tables(roles.keys)) { deployment in
            try await deployment.run(files(roles, defaults: defaults), body)
        }
    }

    /// A role that may do everything to what its filters let through.
    package static func role(_ name: String, when: String = "{}", read: String = "true", write: String = "true") -> String {
        """
        {
            "name": "\(name)", "apply_when": \(when), "document_filters": { "read": \(read), "write": \(write) },
            "read": true, "write": true, "insert": true, "delete": true
        }
        """
    }

    package static func change(_ type: String, _ key: String, _ values: [String: Value], _ kind: ObjectChange.Kind = .set) -> ObjectChange {
        ObjectChange(object: ObjectKey(type: type, key: .string(key)), kind: kind, values: values)
    }
}

extension RunningGateway {
    /// A session of a user that shows all that they may see of some classes.
    package func noteSession(_ account: Account, _ types: [String]) async throws -> TestSession {
        let session = try await session(token: account.token)
        try await session.hello(types)
        try await session.subscribe(1, types.map { ($0, "TRUEPREDICATE") })
        return session
    }
}

extension TestSession {
    /// Uploads one change. - Returns: whether it was refused.
    package func isRefused(_ number: UInt64, _ change: ObjectChange) async throws -> Bool {
        let before = compensations.count
        try await upload(number, [change])
        try await receive { $0.acknowledged == number }
        return compensations.count > before
    }
}
