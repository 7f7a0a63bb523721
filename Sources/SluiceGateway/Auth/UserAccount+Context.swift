import SluiceCore
package import SluicePorts
import SluiceValues

extension UserAccount {
    /// The user's data for rules.
    package var context: UserContext {
        UserContext(id: id, type: Self.type(identities), data: data, customData: customData, identities: identities)
    }

    /// Returns the type for `%%user.type`: `server` for the account of a server key, `normal` otherwise. A user who logs in with a key
    /// keeps the identities of the account.
    static func type(_ identities: JSON) -> String {
        identities.array?.contains { $0["provider_type"]?.string == APIKeys.provider } == true ? "server" : "normal"
    }
}
