import SluiceCore
import SluiceValues

/// A user's identity at a provider.
public struct UserIdentity: Hashable, Sendable {
    /// The provider's type, such as `local-userpass`, `anon-user` or `api-key`.
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

/// The provider's data about a user: the address of a user who logs in by e-mail, otherwise mostly empty.
public struct UserProfile: Hashable, Sendable {
    /// All members of the profile.
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
    /// The user's identities as of the latest access token: the one of the first login.
    public var identities: [UserIdentity] { session.identities }

    /// The provider's data about the user as of the latest access token.
    public var profile: UserProfile { UserProfile(metadata: AnyBSON(session.profile).documentValue ?? [:]) }

    /// - Throws: `AppError.notCallable`, always: a user has one identity.
    public func linkUser(credentials: Credentials) async throws -> User {
        throw AppError.notOffered(
            "Linking another identity to a user", "Log in with these credentials: that is a user of their own, with files of their own.")
    }
}
