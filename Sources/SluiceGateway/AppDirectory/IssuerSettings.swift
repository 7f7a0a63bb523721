package import SluiceIdentity

/// The settings of a provider whose users bring a token of another issuer.
package struct IssuerSettings: Hashable, Sendable {
    /// The origin of the keys.
    package enum Keys: Hashable, Sendable {
        /// Secrets by name: shared ones for HS256, public keys in PEM form for the other algorithms.
        case secrets([String], TokenAlgorithm)
        case remote(ServiceEndpoint)
    }

    package var keys: Keys
    package var policy: TokenPolicy
    /// The id of the app at the provider, and the name of its secret; nil if the provider has none or the secret has no place.
    package var client: Client?
    /// The address of Google's token service, or of Facebook's Graph API.
    package var service: ServiceEndpoint?

    package struct Client: Hashable, Sendable {
        package var id: String
        package var secret: String
        package var redirectURI: String
    }

    /// The names of the secrets that the provider needs at the start.
    package var secretNames: [String] {
        var names = client.map { [$0.secret] } ?? []
        if case .secrets(let keys, _) = keys { names += keys }
        return names
    }
}
