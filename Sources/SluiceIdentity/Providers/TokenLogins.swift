package import SluiceCore
package import SluiceValues

/// The providers whose users bring a token of another issuer: `custom-token`, Apple, Google and Facebook.
package struct TokenLogins: Sendable {
    /// The way from a login's body to an identity.
    package enum Provider: Sendable {
        /// A token in the member `token`.
        case customToken(TokenIssuer)
        /// An ID token in the member `id_token`.
        case apple(TokenIssuer)
        /// An ID token in the member `id_token`, or a server auth code in `authCode`.
        case google(TokenIssuer, GoogleCodeExchange?)
        /// An access token, or an ID token of a limited login, in the member `accessToken`.
        case facebook(TokenIssuer, FacebookTokenCheck?)
        /// A payload of the app's own, which a function of the app checks.
        case function(FunctionLogin)
    }

    private let providers: [String: Provider]

    /// - Parameter providers: The enabled providers by type.
    package init(_ providers: [String: Provider] = [:]) { self.providers = providers }

    package func has(_ provider: String) -> Bool { providers[provider] != nil }

    /// Returns the identity that a login proves.
    ///
    /// - Parameter body: The body of the login. Its member `nonce`, if any, is the one that the client gave to the issuer.
    /// - Throws: `providerDisabled`; `badRequest` for a body without the token; `loginTokenRejected`; `outboundFailed` and its kin if the
    ///   issuer does not answer.
    package func identity(by provider: String, _ body: JSON) async throws(SluiceError) -> ProvenIdentity {
        let nonce = body["nonce"]?.string
        switch providers[provider] {
        case .function(let login): return try await login.identity(of: body)
        case .customToken(let issuer): return try await issuer.identity(of: try Self.text("token", in: body), nonce: nonce)
        case .apple(let issuer): return try await issuer.identity(of: try Self.text("id_token", in: body), nonce: nonce)
        case .google(let issuer, let exchange):
            guard body["id_token"] == nil, let code = body["authCode"]?.string else {
                return try await issuer.identity(of: try Self.text("id_token", in: body), nonce: nonce)
            }
            guard let exchange else { throw Self.notConfigured("Server auth codes of Google", "clientSecret") }
            return try await issuer.identity(of: try await exchange.idToken(for: code), nonce: nonce)
        case .facebook(let issuer, let check):
            let token = try Self.text("accessToken", in: body)
            // An ID token has three parts. An access token has none of the dots.
            if token.utf8.contains(UInt8(ascii: ".")) { return try await issuer.identity(of: token, nonce: nonce) }
            guard let check else { throw Self.notConfigured("Access tokens of Facebook", "clientSecret") }
            return try await check.identity(of: token)
        case nil: throw SluiceError(.providerDisabled, "Logging in by '\(provider)' is not enabled for this app.")
        }
    }

    private static func text(_ key: String, in body: JSON) throws(SluiceError) -> String {
        guard let text = body[key]?.string, !text.isEmpty else {
            throw SluiceError(.badRequest, "'\(key)' is missing or not a string.", fix: "Send it in the JSON body.")
        }
        return text
    }

    private static func notConfigured(_ subject: String, _ secret: String) -> SluiceError {
        SluiceError(.providerDisabled, "\(subject) are not accepted: the app has no \(secret).", fix: "Log in with an ID token.")
    }
}
