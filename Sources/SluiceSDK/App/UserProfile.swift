import SluiceCore
import SluiceValues

/// A user's identity at a provider.
public struct UserIdentity: Hashable, Sendable {
    /// The provider's type, such as `local-userpass`, `anon-user` or `custom-token`.
    public let providerType: String
    /// The user's e-mail address or id at the provider.
    public let identifier: String

    public init(providerType: String, identifier: String) {
        self.providerType = providerType
        self.identifier = identifier
    }

    /// Converts the server's list; nil if it is not one. Malformed entries are skipped.
    static func list(_ json: JSON?) -> [UserIdentity]? {
        json?.array?.compactMap { entry in
            guard let provider = entry["provider_type"]?.string, let id = entry["id"]?.string else { return nil }
            return UserIdentity(providerType: provider, identifier: id)
        }
    }

    var json: JSON { ["id": .string(identifier), "provider_type": .string(providerType)] }
}

/// The data of the providers about a user: the address of a user who logs in by e-mail, and the fields that the app takes from tokens.
public struct UserProfile: Hashable, Sendable {
    /// All members of the profile.
    public let metadata: Document

    public var name: String? { text("name") }
    public var email: String? { text("email") }
    public var pictureURL: String? { text("picture_url") ?? text("picture") }
    public var firstName: String? { text("first_name") }
    public var lastName: String? { text("last_name") }
    public var gender: String? { text("gender") }
    public var birthday: String? { text("birthday") }
    public var minAge: String? { text("min_age") }
    public var maxAge: String? { text("max_age") }

    private func text(_ key: String) -> String? { (metadata[key] ?? nil)?.stringValue }
}

extension User {
    /// The user's identities as of the latest access token, in the order in which they were added.
    public var identities: [UserIdentity] { session.identities }

    /// The data of the user's providers as of the latest access token.
    public var profile: UserProfile { UserProfile(metadata: AnyBSON(session.profile).documentValue ?? [:]) }

    /// Adds an identity to this user, who can log in with either afterwards. The user keeps the id, the local files, and the changes in
    /// them that are not uploaded yet.
    ///
    /// An anonymous user thus becomes a permanent one. For an e-mail, register it first, and do not log in with it.
    /// - Throws: `AppError`; `accountNameInUse` if another user has the identity, `invalidSession` if this one is logged out.
    @discardableResult
    public func linkUser(credentials: Credentials) async throws -> User {
        let token = try await refreshAccessToken()
        let path = "\(app.path)/auth/providers/\(credentials.provider)/login?link=true"
        let answer = try await app.http.send(.post, path, token: token, body: app.loginBody(credentials))
        guard let linked = answer["access_token"]?.string else {
            throw AppError(.httpRequestFailed, "The server's answer to the link has no access_token.")
        }
        take(accessToken: linked, linkedBy: credentials.provider)
        return self
    }
}
