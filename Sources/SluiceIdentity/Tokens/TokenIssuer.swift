package import SluiceCore

/// An issuer of login tokens that the app trusts: its keys, and the conditions of its tokens.
package struct TokenIssuer: Sendable {
    /// The origin of the keys.
    package enum Keys: Sendable {
        case fixed(IssuerKeySet)
        case remote(KeySetCache)
    }

    private let keys: Keys
    private let verifier: TokenVerifier
    private let environment: any Environment

    package init(provider: String, keys: Keys, policy: TokenPolicy, environment: any Environment) {
        self.keys = keys
        verifier = TokenVerifier(provider: provider, policy: policy)
        self.environment = environment
    }

    /// Returns the identity that a token proves.
    ///
    /// - Throws: `loginTokenRejected`; the errors of `KeySetCache`.
    package func identity(of text: String, nonce: String? = nil) async throws(SluiceError) -> ProvenIdentity {
        let token = try SignedToken(text)
        let set =
            switch keys {
            case .fixed(let set): set
            case .remote(let cache): try await cache.keys(for: token)
            }
        return try verifier.verify(token, with: set, nonce: nonce, now: environment.wallMilliseconds())
    }
}
