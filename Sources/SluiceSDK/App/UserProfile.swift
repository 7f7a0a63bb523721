import SluiceCore

/// How a provider knows a user.
public struct UserIdentity: Hashable, Sendable {
    /// As `local-userpass`, `anon-user`, `api-key`.
    public let providerType: String
    /// The user's e-mail address or id there.
    public let identifier: String

    public init(providerType: String, identifier: String) {
        self.providerType = providerType
        self.identifier = identifier
    }

    /// The server's form; nil for anything else. What is none in the list is left out.
    static func list(_ json: JSON?) -> [UserIdentity]? {
        json?.array?.compactMap { entry in
            guard let provider = entry["provider_type"]?.string, let id = entry["id"]?.string else { return nil }
            return UserIdentity(providerType: provider, identifier: id)
        }
    }

    var json: JSON { ["id": .string(identifier), "provider_type": .string(providerType)] }
}

/// What the provider of a user knows of them: the e-mail address of one who logs in with it, else mostly nothing.
public struct UserProfile: Hashable, Sendable {
    /// All of it.
    public let metadata: Document

    public var name: String? { text("name") }
    public var email: String? { text("email") }
    public var pictureURL: String? { text("picture_url") }
    public var firstName: String? { text("first_name") }
    public var lastName: String? { text("last_name") }
    public var gender: String? { text("gender") }
    public var birthday: String? { text("birthday") }
    public var minAge: String? { text("min_age") }
    public var maxAge: String? { text("max_age") }

    private func text(_ key: String) -> String? { (metadata[key] ?? nil)?.stringValue }
}

extension User {
    /// How providers know the user, as the server said when it last gave an access token: one, that they logged in with first.
    public var identities: [UserIdentity] { session.identities }

    /// What the user's provider knows of them, as the server said when it last gave an access token.
    public var profile: UserProfile { UserProfile(metadata: AnyBSON(session.profile).documentValue ?? [:]) }

    /// - Throws: always `AppError.notCallable`: a user has one identity.
    public func linkUser(credentials: Credentials) async throws -> User {
        throw AppError.notOffered(
            "Linking another identity to a user", "Log in with these credentials: that is a user of their own, with files of their own.")
    }
}
