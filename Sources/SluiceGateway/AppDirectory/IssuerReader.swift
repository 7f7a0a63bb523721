import SluiceCore
import SluiceIdentity
import SluiceValues

/// Reads the settings of `custom-token` and of the OAuth providers: those of the export, and the additions of `sluice.json`.
struct IssuerReader {
    /// A provider of an export, with the operator's additions.
    struct Entry {
        let type: String
        let node: ConfigNode
        let members: [String: ConfigNode]
        /// The member `providers.TYPE` of `sluice.json`.
        let additions: ConfigNode?
    }

    /// The facts of a well-known issuer.
    private struct Known {
        var issuers: [String]
        var keys: String
        var service: String?
    }

    private static let known: [String: Known] = [
        "oauth2-apple": Known(issuers: ["https://appleid.apple.com"], keys: "https://appleid.apple.com/auth/keys"),
        "oauth2-google": Known(
            issuers: ["https://accounts.google.com", "accounts.google.com"], keys: "https://www.googleapis.com/oauth2/v3/certs",
            service: "https://oauth2.googleapis.com/token"),
        "oauth2-facebook": Known(
            issuers: ["https://www.facebook.com", "https://limited.facebook.com"],
            keys: "https://limited.facebook.com/.well-known/oauth/openid/jwks/", service: "https://graph.facebook.com"),
    ]

    /// The providers that this reader is for.
    static let types: Set<String> = ["custom-token", "oauth2-apple", "oauth2-google", "oauth2-facebook"]
    static let additions = [
        "issuers", "algorithms", "clock_skew_seconds", "required_claims", "user_id_claim", "jwks_url", "client_ids", "service_url",
        "redirect_uri",
        "allow_private_addresses",
    ]
    /// The number of signing keys, and the longest name of a metadata field in bytes, as in App Services.
    private static let (maximumKeys, nameBytes) = (3, 64)

    private let entry: Entry
    private let secrets: AppSecrets
    private let extra: [String: ConfigNode]
    private let config: [String: ConfigNode]

    init(_ entry: Entry, secrets: AppSecrets) {
        self.entry = entry
        self.secrets = secrets
        extra = entry.additions?.members(allowing: Self.additions) ?? [:]
        let keys =
            entry.type == "custom-token"
            ? ["audience", "requireAnyAudience", "signingAlgorithm", "useJWKURI", "jwkURI"]
            : ["clientId", "openId", "openid", "teamId", "keyId"]
        config = entry.members["config"]?.members(allowing: keys) ?? [:]
    }

    /// - Returns: nil with a note or a problem if the provider cannot work.
    func read() -> IssuerSettings? { entry.type == "custom-token" ? customToken() : oauth() }

    // MARK: custom-token

    private func customToken() -> IssuerSettings? {
        guard let keys = config["useJWKURI"]?.bool == true ? remoteKeys(extra["jwks_url"] ?? config["jwkURI"]) : signingKeys() else {
            return nil
        }
        var policy = policy(algorithms: algorithms(of: keys))
        let audience = texts(config["audience"])
        policy.audience = config["requireAnyAudience"]?.bool == true ? .any(audience) : .all(audience)
        policy.fields = fields { $0 }
        if case .remote = keys, audience.isEmpty, policy.issuers.isEmpty {
            entry.node.note(
                .missing, "custom-token checks neither audience nor issuer: tokens that its issuer made for other apps log in here.",
                fix: #"Add "audience" to the config, or "issuers" to providers.custom-token of sluice.json."#)
        }
        return IssuerSettings(keys: keys, policy: policy)
    }

    private func remoteKeys(_ node: ConfigNode?) -> IssuerSettings.Keys? {
        guard let node, let url = node.string, isAddress(node) else {
            if node == nil { entry.node.problem("'jwkURI' is missing, as useJWKURI is true.", fix: "Add it.", code: .configMissing) }
            return nil
        }
        return .remote(endpoint(url))
    }

    private func signingKeys() -> IssuerSettings.Keys? {
        let name = config["signingAlgorithm"].flatMap { $0.json.string }.flatMap { $0.isEmpty ? nil : $0 } ?? "HS256"
        guard let algorithm = TokenAlgorithm(rawValue: name) else {
            config["signingAlgorithm"]?.problem(
                "'\(name)' is not a supported signing algorithm.",
                fix: "Use one of \(TokenAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")).")
            return nil
        }
        let node = entry.members["secret_config"]?.members(allowing: ["signingKeys"])["signingKeys"]
        let names = texts(node)
        guard !names.isEmpty, names.count <= Self.maximumKeys else {
            entry.node.note(
                .missing, "custom-token has \(names.count) signing keys: it is treated as disabled.",
                fix: "Name 1 to \(Self.maximumKeys) secrets in secret_config.signingKeys, or set useJWKURI and jwkURI.")
            return nil
        }
        return requireSecrets(names) ? .secrets(names, algorithm) : nil
    }

    private func algorithms(of keys: IssuerSettings.Keys) -> Set<TokenAlgorithm> {
        if case .secrets(_, let algorithm) = keys { return [algorithm] }
        guard let node = extra["algorithms"] else { return [.rs256, .es256, .edDSA] }
        return Set(
            node.elements.compactMap { element in
                let named = element.string.flatMap(TokenAlgorithm.init)
                if let named, named != .hs256 { return named }
                element.problem(
                    "\(element.json.text) is no algorithm for the keys of an address.", fix: "Use RS256, ES256 or EdDSA.")
                return nil
            })
    }

    // MARK: OAuth

    private func oauth() -> IssuerSettings? {
        guard let known = Self.known[entry.type] else { return nil }
        let ids = texts(config["clientId"]) + texts(extra["client_ids"])
        guard let id = ids.first else {
            entry.node.note(
                .missing, "\(entry.type) has no clientId: it is treated as disabled.",
                fix: #"Add "config": {"clientId": "…"}, the id of the app at the provider."#)
            return nil
        }
        if let node = extra["jwks_url"], !isAddress(node) { return nil }
        if let node = extra["service_url"], !isAddress(node) { return nil }
        var policy = policy(algorithms: [.rs256, .es256])
        if policy.issuers.isEmpty { policy.issuers = known.issuers }
        policy.audience = .any(ids)
        policy.domains = Set(texts(entry.members["domain_restrictions"]).map { $0.lowercased() })
        policy.fields = fields { Self.claims[$0] ?? $0 }
        var settings = IssuerSettings(keys: .remote(endpoint(extra["jwks_url"]?.json.string ?? known.keys)), policy: policy)
        settings.service = (extra["service_url"]?.json.string ?? known.service).map(endpoint)
        settings.client = client(id, needed: known.service != nil)
        return settings
    }

    /// The claims of OpenID Connect by the names of App Services' fields.
    private static let claims = ["first_name": "given_name", "last_name": "family_name", "picture_url": "picture", "birthday": "birthdate"]

    private func client(_ id: String, needed: Bool) -> IssuerSettings.Client? {
        guard needed, let node = entry.members["secret_config"]?.members(allowing: ["clientSecret"])["clientSecret"],
            let name = node.string, !name.isEmpty
        else { return nil }
        guard secrets.has(name) else {
            let subject = entry.type == "oauth2-google" ? "server auth codes" : "access tokens"
            node.note(
                .missing, "There is no secret '\(name)': \(entry.type) accepts ID tokens, and no \(subject).", fix: Self.place(of: name))
            return nil
        }
        return IssuerSettings.Client(id: id, secret: name, redirectURI: extra["redirect_uri"]?.string ?? "")
    }

    // MARK: Parts

    private func policy(algorithms: Set<TokenAlgorithm>) -> TokenPolicy {
        var policy = TokenPolicy(algorithms: algorithms, issuers: texts(extra["issuers"]))
        if let node = extra["clock_skew_seconds"], let seconds = node.int {
            if TokenPolicy.clockSkews.contains(seconds) {
                policy.clockSkew = seconds
            } else {
                node.problem("\(seconds) is out of range.", fix: "Give 0 to \(TokenPolicy.clockSkews.upperBound) seconds.")
            }
        }
        for (name, value) in extra["required_claims"]?.members ?? [] { policy.required.append(.init(ClaimPath(name), value.json)) }
        if let claim = extra["user_id_claim"]?.string { policy.subject = ClaimPath(claim) }
        return policy
    }

    /// Returns the metadata fields.
    ///
    /// - Parameter claim: Returns the claim of a field's name.
    private func fields(claim: (String) -> String) -> [TokenPolicy.Field] {
        (entry.members["metadata_fields"]?.elements ?? []).compactMap { node in
            let members = node.members(allowing: ["name", "field_name", "required"])
            guard let name = members.required("name", of: node)?.string else { return nil }
            let target = members["field_name"]?.json.string.flatMap { $0.isEmpty ? nil : $0 } ?? name
            guard (1...Self.nameBytes).contains(target.utf8.count) else {
                node.problem("The field name has \(target.utf8.count) bytes.", fix: "Use 1 to \(Self.nameBytes).")
                return nil
            }
            return .init(claim: ClaimPath(claim(name)), name: target, isRequired: members["required"]?.bool ?? false)
        }
    }

    private func requireSecrets(_ names: [String]) -> Bool {
        let missing = names.filter { !secrets.has($0) }
        for name in missing {
            entry.node.note(
                .missing, "There is no secret '\(name)': \(entry.type) is treated as disabled.", fix: Self.place(of: name))
        }
        return missing.isEmpty
    }

    private static func place(of name: String) -> String {
        #"Add {"secrets": {"\#(name)": {"environment": "VARIABLE"}}} to sluice.json, or {"\#(name)": "…"} to secrets.json."#
    }

    private func endpoint(_ url: String) -> ServiceEndpoint {
        ServiceEndpoint(url: url, allowsPrivateAddresses: extra["allow_private_addresses"]?.bool ?? false)
    }

    /// Returns `true` for an address that a request can be sent to. Any other is a problem.
    private func isAddress(_ node: ConfigNode) -> Bool {
        guard let text = node.string else { return false }
        let isPlain = text.hasPrefix("http://")
        guard text.hasPrefix("https://") || isPlain, !text.contains(where: \.isWhitespace) else {
            node.problem("'\(text)' is not an address.", fix: "Give one that begins with https://.")
            return false
        }
        guard !isPlain || extra["allow_private_addresses"]?.json.bool == true else {
            node.problem(
                "'\(text)' has no TLS: anybody on the way could replace the keys.",
                fix: #"Use https://. For a service of the same machine or network, set "allow_private_addresses" to true in sluice.json."#)
            return false
        }
        return true
    }

    /// Returns the texts of a list, or a single text. Empty ones do not count.
    private func texts(_ node: ConfigNode?) -> [String] {
        guard let node, node.json != .null else { return [] }
        return (node.json.string.map { [$0] } ?? node.strings).filter { !$0.isEmpty }
    }
}
