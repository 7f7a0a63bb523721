import Logging
import SluiceCore
import SluiceIdentity
import SluicePorts

/// Makes the providers whose users bring a token of another issuer, from the settings of the app and its secrets.
struct TokenLoginBuilder {
    let secrets: AppSecrets
    /// The variables that secrets are read from.
    let variables: ProcessEnvironment
    let http: any OutboundHTTP
    /// The functions of the app; none for a look at the providers.
    var functions: any AppFunctions = NoFunctions()
    let environment: any Environment
    let logger: Logger

    /// - Throws: `configMissing` or `configInvalid` for a secret without a text, and for a key that is none.
    func build(_ providers: [AppConfiguration.AuthProvider]) async throws(SluiceError) -> TokenLogins {
        var enabled: [String: TokenLogins.Provider] = [:]
        for provider in providers where provider.isEnabled {
            if let function = provider.function { enabled[provider.type] = .function(FunctionLogin(function, of: functions)) }
            guard let settings = provider.issuer else { continue }
            do throws(SluiceError) {
                enabled[provider.type] = try await make(provider.type, settings)
            } catch {
                throw SluiceError(
                    error.code, "The login provider \(provider.type) cannot start: \(error.message)", fix: error.fix, cause: error.cause)
            }
        }
        return TokenLogins(enabled)
    }

    private func make(_ type: String, _ settings: IssuerSettings) async throws(SluiceError) -> TokenLogins.Provider {
        let issuer = TokenIssuer(provider: type, keys: try await keys(settings), policy: settings.policy, environment: environment)
        switch type {
        case "oauth2-apple": return .apple(issuer)
        case "oauth2-google":
            guard let client = settings.client, let service = settings.service else { return .google(issuer, nil) }
            let own = GoogleCodeExchange.Client(id: client.id, secret: try secret(client.secret), redirectURI: client.redirectURI)
            return .google(issuer, GoogleCodeExchange(own, at: service, http: http))
        case "oauth2-facebook":
            guard let client = settings.client, let service = settings.service else { return .facebook(issuer, nil) }
            let own = FacebookTokenCheck.Client(id: client.id, secret: try secret(client.secret))
            return .facebook(issuer, FacebookTokenCheck(own, at: service, fields: settings.policy.fields, http: http))
        default: return .customToken(issuer)
        }
    }

    private func keys(_ settings: IssuerSettings) async throws(SluiceError) -> TokenIssuer.Keys {
        switch settings.keys {
        case .remote(let endpoint):
            let source = KeySetCache.Source(url: endpoint.url, allowsPrivateAddresses: endpoint.allowsPrivateAddresses)
            return .remote(KeySetCache(source, http: http, environment: environment, logger: logger))
        case .secrets(let names, let algorithm):
            var keys: [IssuerKey] = []
            for name in names {
                let text = try secret(name)
                keys.append(algorithm == .hs256 ? try await IssuerKey(secret: text) : try await IssuerKey(pem: text, algorithm))
            }
            return .fixed(IssuerKeySet(keys))
        }
    }

    private func secret(_ name: String) throws(SluiceError) -> String { try secrets.text(of: name, in: variables) }
}
