import SluiceCore
package import SluicePorts
import SluiceValues

/// Checks access tokens of Facebook with its Graph API: `debug_token` for the app and the user, then the user's fields.
package struct FacebookTokenCheck: Sendable {
    /// The app at Facebook.
    package struct Client: Hashable, Sendable {
        package var id: String
        package var secret: String

        package init(id: String, secret: String) {
            self.id = id
            self.secret = secret
        }
    }

    private let client: Client
    /// The address of the Graph API, without a slash at its end.
    private let endpoint: ServiceEndpoint
    private let fields: [TokenPolicy.Field]
    private let http: any OutboundHTTP

    package init(_ client: Client, at endpoint: ServiceEndpoint, fields: [TokenPolicy.Field], http: any OutboundHTTP) {
        self.client = client
        self.endpoint = endpoint
        self.fields = fields
        self.http = http
    }

    func identity(of token: String) async throws(SluiceError) -> ProvenIdentity {
        let facts = try await read("/debug_token", [("input_token", token), ("access_token", "\(client.id)|\(client.secret)")])["data"]
        guard facts?["is_valid"]?.bool == true else { throw SignedToken.rejected("Facebook says that the access token is not valid") }
        // A token of another app would let that app log in as its users.
        guard facts?["app_id"]?.string == client.id else {
            throw SignedToken.rejected("the access token belongs to another app of Facebook")
        }
        guard let id = facts?["user_id"]?.string, (1...TokenPolicy.subjectBytes).contains(id.utf8.count) else {
            throw SignedToken.rejected("Facebook names no user for the access token")
        }
        return ProvenIdentity(provider: "oauth2-facebook", id: id, data: try await data(of: id, token))
    }

    private func data(of user: String, _ token: String) async throws(SluiceError) -> JSON {
        guard !fields.isEmpty else { return .object([]) }
        let names = fields.map(\.claim.description).joined(separator: ",")
        let profile = try await read("/me", [("fields", names), ("access_token", token)])
        guard profile["id"]?.string == nil || profile["id"]?.string == user else {
            throw SignedToken.rejected("Facebook returns the fields of another user")
        }
        return try TokenVerifier.data(of: profile, fields)
    }

    private func read(_ path: String, _ query: [(name: String, value: String)]) async throws(SluiceError) -> JSON {
        let answer = try await http.send(endpoint.request(.get, "\(path)?\(FormText.encode(query))"))
        guard let json = try? JSON.parse(answer.body) else {
            throw SluiceError(.outboundFailed, "Facebook answers \(path) with status \(answer.status) and no JSON.")
        }
        if answer.isSuccess { return json }
        guard answer.status < 500 else { throw SluiceError(.outboundFailed, "Facebook answers \(path) with status \(answer.status).") }
        throw SignedToken.rejected("Facebook rejects the access token with status \(answer.status)")
    }
}
