import SluiceCore
import SluiceGateway
import SluiceValues

/// The files that `sluice init` writes.
package struct InitFiles: Sendable {
    /// The data source: a folder of `data_sources`.
    package static let source = "postgres"
    /// The file with the role that denies everything.
    package static let role = "data_sources/\(source)/default_rule.json"

    /// The texts by path in the directory.
    package let texts: [String: String]

    package init(_ draft: AppDraft, appID: String) {
        let files = SchemaFiles(draft.record, source: Self.source)
        var texts = [
            "realm_config.json": "{ \"app_id\": \(JSON.string(appID).text), \"name\": \(JSON.string(appID).text) }\n",
            "sync/config.json": files.sync,
            "auth/providers.json": Self.providers,
            Self.role: Self.denial,
            "README.md": Self.readme(draft),
        ]
        for type in draft.record.schema.types { texts.merge(files.files(of: type.name)) { $1 } }
        self.texts = texts
    }

    private static let providers = """
        {
            "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": true },
            "local-userpass": {
                "name": "local-userpass",
                "type": "local-userpass",
                "config": { "autoConfirm": true },
                "disabled": false
            }
        }

        """

    private static let denial = rule(named: "deny-all", permits: false)

    /// The content of the role's file that permits everything to every user.
    package static let opening = rule(named: "everyone", permits: true)

    private static func rule(named name: String, permits: Bool) -> String {
        """
        {
            "roles": [
                {
                    "name": "\(name)",
                    "apply_when": {},
                    "document_filters": { "read": \(permits), "write": \(permits) },
                    "read": \(permits), "write": \(permits), "insert": \(permits), "delete": \(permits), "search": \(permits)
                }
            ]
        }

        """
    }

    // MARK: README.md

    private static func readme(_ draft: AppDraft) -> String {
        let own = ownerExample(draft)
        return """
            # App directory

            `sluice init` wrote these files from the tables of a database. They are yours to edit.

            ## Who may read and write

            Every user is denied: `\(role)` has one role, which permits nothing. To permit everything to every user, replace its content:

            ```json
            \(opening)```

            A class has roles of its own in `data_sources/\(source)/SCHEMA/TABLE/rules.json`, which come before those of the default rule.
            A role with this filter shows users the rows that have their id in a column:

            ```json
            { "document_filters": { "read": { "\(own)": "%%user.id" }, "write": { "\(own)": "%%user.id" } } }
            ```

            The fields of filters must be queryable fields of `sync/config.json`.

            ## Who may log in

            `auth/providers.json` permits anyone to register with an e-mail address and a password.

            """
    }

    /// The name of a field for the example of a role.
    private static func ownerExample(_ draft: AppDraft) -> String {
        let fields = draft.record.fields.byType.values.flatMap { $0 }
        let candidates = ["owner_id", "user_id", "customer_id", "account_id"]
        return candidates.first(where: fields.contains) ?? "owner_id"
    }
}
