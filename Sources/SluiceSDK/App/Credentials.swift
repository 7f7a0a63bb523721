import SluiceCore
import SluiceValues

/// A user's proof of identity for `App.login(credentials:)`.
public enum Credentials: Sendable {
    /// An access token of Facebook, or the ID token of a limited login.
    case facebook(accessToken: String)
    /// A server auth code of Google. The gateway exchanges it once, so a code that was used is rejected.
    case google(serverAuthCode: String)
    /// An ID token of Google.
    case googleId(token: String)
    /// An identity token of Apple.
    case apple(idToken: String)
    case emailPassword(email: String, password: String)
    /// A token of another service that the app trusts.
    case jwt(token: String)
    /// The argument of the app's own authentication function.
    case function(payload: Document)
    case userAPIKey(String)
    case serverAPIKey(String)
    /// An account without name. A login reuses an anonymous user who is still logged in.
    case anonymous

    var provider: String {
        switch self {
        case .facebook: "oauth2-facebook"
        case .google, .googleId: "oauth2-google"
        case .apple: "oauth2-apple"
        case .emailPassword: "local-userpass"
        case .jwt: "custom-token"
        case .function: "custom-function"
        case .userAPIKey, .serverAPIKey: "api-key"
        case .anonymous: "anon-user"
        }
    }

    /// The e-mail address for the user's profile; nil for other providers.
    var email: String? { if case .emailPassword(let email, _) = self { email } else { nil } }

    var members: [JSON.Member] {
        switch self {
        case .emailPassword(let email, let password): [.init("username", .string(email)), .init("password", .string(password))]
        case .jwt(let token): [.init("token", .string(token))]
        case .function(let payload): payload.map { JSON.Member($0.key, ($0.value ?? .null).json) }
        case .userAPIKey(let key), .serverAPIKey(let key): [.init("key", .string(key))]
        case .googleId(let token), .apple(let token): [.init("id_token", .string(token))]
        case .google(let code): [.init("authCode", .string(code))]
        case .facebook(let token): [.init("accessToken", .string(token))]
        case .anonymous: []
        }
    }
}
