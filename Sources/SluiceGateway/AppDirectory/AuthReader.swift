import SluiceCore
import SluiceIdentity
import SluiceValues

/// Reads the files under `auth/`.
struct AuthReader {
    let list: ProblemList
    let secrets: AppSecrets
    /// The functions of the app, which providers name.
    let functions: [AppFunction]

    private static let supported = [
        "anon-user", "local-userpass", "api-key", "custom-token", FunctionLogin.provider, "oauth2-google", "oauth2-facebook",
        "oauth2-apple",
    ]

    /// - Parameter additions: The section `providers` of `sluice.json`.
    func providers(_ node: ConfigNode, additions: ConfigNode?) -> [AppConfiguration.AuthProvider] {
        var providers: [AppConfiguration.AuthProvider] = []
        let additions = additions?.members(allowing: Self.supported) ?? [:]
        for (name, provider) in node.members {
            let members = provider.members(allowing: [
                "id", "name", "type", "disabled", "config", "secret_config", "metadata_fields", "redirect_uris", "domain_restrictions",
            ])
            let type = members["type"]?.string ?? name
            guard Self.supported.contains(type) else {
                if let near = Suggestion.nearest(to: type, in: Self.supported) {
                    provider.problem("'\(type)' is not a login provider.", fix: "Did you mean '\(near)'?", code: .configUnknownKey)
                } else {
                    provider.note(.unused, "'\(type)' is not a login provider: it is treated as disabled.")
                }
                continue
            }
            let isEnabled = !(members["disabled"]?.bool ?? false)
            var read = AppConfiguration.AuthProvider(type: type, isEnabled: isEnabled, config: members["config"]?.json ?? .object([]))
            if isEnabled, IssuerReader.types.contains(type) {
                let entry = IssuerReader.Entry(type: type, node: provider, members: members, additions: additions[type])
                read.issuer = IssuerReader(entry, secrets: secrets).read()
                read.isEnabled = read.issuer != nil
            }
            if isEnabled, type == FunctionLogin.provider {
                read.function = loginFunction(provider)
                read.isEnabled = read.function != nil
            }
            providers.append(read)
        }
        if !providers.contains(where: \.isEnabled) {
            node.note(
                .missing, "No provider is enabled: logins are disabled.",
                fix: #"Add "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false }, or another one."#)
        }
        return providers
    }

    /// Returns the function that is called with each new user; nil for none.
    func creationFunction(_ node: ConfigNode) -> String? {
        guard node.child("enabled")?.json.bool ?? true, let key = node.child("on_user_creation_function_name"), let name = key.json.string,
            !name.isEmpty
        else { return nil }
        return served(name, key, "users are created without it")
    }

    /// Returns the function of `custom-function`; nil with a note if no service runs it.
    private func loginFunction(_ provider: ConfigNode) -> String? {
        guard let key = provider.child("config")?.child("authFunctionName"), let name = key.json.string, !name.isEmpty else {
            provider.note(
                .missing, "'config.authFunctionName' is missing: the provider is treated as disabled.", fix: "Name a function of the app.")
            return nil
        }
        return served(name, key, "the provider is treated as disabled")
    }

    /// Returns the name of a function if a service runs it; nil with a note about the effect otherwise.
    private func served(_ name: String, _ node: ConfigNode, _ effect: String) -> String? {
        if functions.first(where: { $0.name == name })?.target != nil { return name }
        node.note(
            .missing, "No service runs '\(name)': \(effect).",
            fix: #"Add to sluice.json: {"functions": {"\#(name)": {"url": "https://…", "secret": "NAME of a secret"}}}."#)
        return nil
    }

    func customUserData(_ node: ConfigNode) -> AppConfiguration.CustomUserData? {
        let members = node.members(allowing: [
            "enabled", "mongo_service_name", "database_name", "collection_name", "user_id_field", "on_user_creation_function_name",
        ])
        guard members["enabled"]?.bool ?? true, !members.isEmpty else { return nil }
        for key in ["database_name", "collection_name", "user_id_field"] where (members[key]?.json.string ?? "").isEmpty {
            node.note(
                .missing, "'\(key)' is missing: custom user data come from the admin API.",
                fix: "If roles use %%user.custom_data, add \"\(key)\".")
            return nil
        }
        guard let database = members["database_name"]?.string, let collection = members["collection_name"]?.string,
            let field = members["user_id_field"]?.string
        else { return nil }
        return .init(table: .init(schema: database, name: collection), userIDField: field)
    }
}
