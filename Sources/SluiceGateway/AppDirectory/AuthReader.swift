import SluiceCore
import SluiceValues

/// Reads the files under `auth/`.
struct AuthReader {
    let list: ProblemList

    private static let supported = ["anon-user", "local-userpass", "api-key"]
    private static let known =
        supported + ["custom-token", "custom-function", "oauth2-google", "oauth2-facebook", "oauth2-apple"]

    func providers(_ node: ConfigNode) -> [AppConfiguration.AuthProvider] {
        var providers: [AppConfiguration.AuthProvider] = []
        for (name, provider) in node.members {
            let members = provider.members(allowing: [
                "id", "name", "type", "disabled", "config", "secret_config", "metadata_fields", "redirect_uris", "domain_restrictions",
            ])
            let type = members["type"]?.string ?? name
            guard Self.known.contains(type) else {
                provider.problem(
                    "'\(type)' is not a login provider.",
                    fix: Suggestion.nearest(to: type, in: Self.known).map { "Did you mean '\($0)'?" } ?? "Remove it.",
                    code: .configUnknownKey)
                continue
            }
            let isEnabled = !(members["disabled"]?.bool ?? false)
            if type == "local-userpass" { members["config"].map { checkPassword($0, isEnabled: isEnabled) } }
            if isEnabled, !Self.supported.contains(type) {
                list.notes.append("The provider \(type) is not supported: it is treated as disabled.")
            }
            providers.append(
                .init(type: type, isEnabled: isEnabled && Self.supported.contains(type), config: members["config"]?.json ?? .object([])))
        }
        if !providers.contains(where: \.isEnabled) { list.notes.append("No provider is enabled: logins are disabled.") }
        return providers
    }

    private func checkPassword(_ config: ConfigNode, isEnabled: Bool) {
        let members = config.members(allowing: [
            "autoConfirm", "confirmEmailSubject", "confirmationFunctionName", "emailConfirmationUrl", "resetFunctionName",
            "resetPasswordSubject", "resetPasswordUrl", "runConfirmationFunction", "runResetFunction",
        ])
        if isEnabled, members["autoConfirm"]?.bool != true {
            list.notes.append("No confirmation mails are sent: users of local-userpass are confirmed when they register.")
        }
    }

    func customUserData(_ node: ConfigNode) -> AppConfiguration.CustomUserData? {
        let members = node.members(allowing: [
            "enabled", "mongo_service_name", "database_name", "collection_name", "user_id_field", "on_user_creation_function_name",
        ])
        guard members["enabled"]?.bool ?? true, !members.isEmpty else { return nil }
        guard let database = members.required("database_name", of: node)?.string,
            let collection = members.required("collection_name", of: node)?.string,
            let field = members.required("user_id_field", of: node)?.string
        else { return nil }
        if members["on_user_creation_function_name"]?.string?.isEmpty == false {
            list.notes.append("Functions have no effect here: a new user's custom data are what the collection has.")
        }
        return .init(table: .init(schema: database, name: collection), userIDField: field)
    }
}
