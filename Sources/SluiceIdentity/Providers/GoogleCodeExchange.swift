import SluiceCore
package import SluicePorts
import SluiceValues

/// Exchanges the server auth codes of Google's SDKs for ID tokens (RFC 6749, section 4.1.3).
package struct GoogleCodeExchange: Sendable {
    /// The client of the app at Google.
    package struct Client: Hashable, Sendable {
        package var id: String
        package var secret: String
        /// The redirect address that the code was made for. Codes of Google's SDKs for devices have an empty one.
        package var redirectURI: String

        package init(id: String, secret: String, redirectURI: String = "") {
            self.id = id
            self.secret = secret
            self.redirectURI = redirectURI
        }
    }

    private let client: Client
    private let endpoint: ServiceEndpoint
    private let http: any OutboundHTTP

    package init(_ client: Client, at endpoint: ServiceEndpoint, http: any OutboundHTTP) {
        self.client = client
        self.endpoint = endpoint
        self.http = http
    }

    /// - Throws: `loginTokenRejected` for a code that is used, expired or of another app; `outboundFailed`, `outboundTimeout`.
    func idToken(for code: String) async throws(SluiceError) -> String {
        let form = FormText.encode([
            ("code", code), ("client_id", client.id), ("client_secret", client.secret), ("redirect_uri", client.redirectURI),
            ("grant_type", "authorization_code"),
        ])
        let answer = try await http.send(
            endpoint.request(.post, headers: [.init("Content-Type", "application/x-www-form-urlencoded")], body: Array(form.utf8)))
        let json = (try? JSON.parse(answer.body)) ?? .null
        if answer.isSuccess {
            guard let token = json["id_token"]?.string else {
                throw SignedToken.rejected("Google's answer to the code has no id_token, as the scope 'openid' was not asked for")
            }
            return token
        }
        // RFC 6749, section 5.2: 400 and 401 are about the code and the client.
        guard [400, 401].contains(answer.status) else {
            throw SluiceError(.outboundFailed, "Google answers the exchange of a code with status \(answer.status).")
        }
        throw SignedToken.rejected("Google rejects the code: \(json["error"]?.string?.prefix(64) ?? "status \(answer.status)")")
    }
}

/// The address of a service of a provider.
package struct ServiceEndpoint: Hashable, Sendable {
    package var url: String
    package var allowsPrivateAddresses: Bool

    package init(url: String, allowsPrivateAddresses: Bool = false) {
        self.url = url
        self.allowsPrivateAddresses = allowsPrivateAddresses
    }

    /// Returns a request.
    ///
    /// - Parameter path: Text after the address, such as a query string.
    func request(
        _ method: OutboundRequest.Method, _ path: String = "", headers: [OutboundRequest.Header] = [], body: [UInt8] = []
    ) -> OutboundRequest {
        OutboundRequest(
            method, url + path, headers: headers + [.init("Accept", "application/json")], body: body,
            allowsPrivateAddresses: allowsPrivateAddresses)
    }
}
