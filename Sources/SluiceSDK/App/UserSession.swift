import Foundation
import SluiceCore
import SluiceSync
import SluiceValues

/// A user's record on this device.
struct UserSession: Hashable, Sendable {
    var id: String
    var provider: String
    var identities: [UserIdentity]
    /// The provider's data about the user, an object.
    var profile: JSON
    var accessToken: String?
    var refreshToken: String?
    var deviceId: String?
    /// `true` after `remove()`, in this process only: removed users are not stored.
    var isRemoved = false

    /// Creates the record from the server's answer to a login; nil if the answer lacks a token or the user's id.
    init?(_ answer: JSON, _ credentials: Credentials) {
        guard let id = answer["user_id"]?.string, let access = answer["access_token"]?.string,
            let refresh = answer["refresh_token"]?.string
        else { return nil }
        self.id = id
        provider = credentials.provider
        identities = [UserIdentity(providerType: provider, identifier: credentials.email ?? id)]
        profile = credentials.email.map { ["email": .string($0)] as JSON } ?? .object([])
        refreshToken = refresh
        deviceId = answer["device_id"]?.string
        take(accessToken: access)
    }

    init?(stored json: JSON) {
        guard let id = json["id"]?.string, let provider = json["provider"]?.string else { return nil }
        self.id = id
        self.provider = provider
        identities = UserIdentity.list(json["identities"]) ?? [UserIdentity(providerType: provider, identifier: id)]
        profile = json["profile"] ?? .object([])
        accessToken = json["access_token"]?.string
        refreshToken = json["refresh_token"]?.string
        deviceId = json["device_id"]?.string
    }

    var json: JSON {
        func text(_ value: String?) -> JSON { value.map { .string($0) } ?? .null }
        return [
            "id": .string(id), "provider": .string(provider), "identities": .array(identities.map(\.json)), "profile": profile,
            "access_token": text(accessToken), "refresh_token": text(refreshToken), "device_id": text(deviceId),
        ]
    }

    /// Stores an access token, and the identities and profile from its claims if it has any.
    mutating func take(accessToken token: String) {
        accessToken = token
        guard let claims = AccessTokenClaims.read(token) else { return }
        if let given = UserIdentity.list(claims["identities"]), !given.isEmpty { identities = given }
        if let given = claims["data"], given.members?.isEmpty == false { profile = given }
    }

    /// Takes the tokens of a session that another process has stored, if its refresh token is a newer one of the same login.
    mutating func takeTokens(of other: UserSession) {
        guard other.id == id, let mine = refreshToken.flatMap(RefreshPlace.init),
            let theirs = other.refreshToken.flatMap(RefreshPlace.init),
            mine.login == theirs.login, mine.generation < theirs.generation
        else { return }
        refreshToken = other.refreshToken
        if let token = other.accessToken { take(accessToken: token) }
    }

    /// The login and the place of a refresh token in its row, as the token's claims have them.
    private struct RefreshPlace {
        var login: String
        var generation: Int64

        init?(_ token: String) {
            guard let claims = AccessTokenClaims.read(token), let login = claims["sid"]?.string else { return nil }
            self.login = login
            generation = claims["generation"]?.int ?? 0
        }
    }
}

/// The users of an app on this device, as `CredentialStorage` has them.
struct StoredUsers {
    var users: [UserSession] = []
    var current: String?
    /// The reason why the users were not read, or not completely; nil if they were, or if there are none.
    var problem: String?

    /// Reads the stored users. Of an unreadable list, the users that can be read are returned.
    static func read(_ storage: any CredentialStorage, _ appId: String) -> StoredUsers {
        do {
            guard let data = try storage.content(ofApp: appId) else { return StoredUsers() }
            let json = try JSON.parse(Array(data))
            let records = json["users"]?.array
            let users = (records ?? []).compactMap { UserSession(stored: $0) }
            let stored = StoredUsers(users: users, current: json["current"]?.string)
            if records?.count == users.count { return stored }
            return stored.unreadable(storage, records == nil ? "there is no list of users" : "users in it have no id or provider")
        } catch {
            return StoredUsers().unreadable(storage, "\(error)")
        }
    }

    private func unreadable(_ storage: any CredentialStorage, _ reason: String) -> StoredUsers {
        var stored = self
        let file = storage as? CredentialFile
        let place = file.map { " in \($0.path)" } ?? ""
        let fix = file.map {
            " When the app next stores its users, the file is moved to \($0.asidePath). To keep the logins, repair the file and restart the app."
        }
        stored.problem = "Users stored\(place) cannot be read (\(reason)) and must log in again.\(fix ?? "")"
        return stored
    }

    /// Stores the users.
    /// - Parameter isUnreadable: `true` moves the present content aside first, because a later run may be able to read it.
    /// - Returns: the error if they could not be stored.
    func write(_ storage: any CredentialStorage, _ appId: String, replacingUnreadable isUnreadable: Bool = false) -> Realm.Error? {
        let json: JSON = ["users": .array(users.map(\.json)), "current": current.map { .string($0) } ?? .null]
        do {
            if isUnreadable { try storage.setAside(contentOfApp: appId) }
            try storage.store(Data(json.utf8), ofApp: appId)
            return nil
        } catch {
            return Realm.Error(.fileAccess, "The users of the app cannot be stored: \(error.localizedDescription)")
        }
    }
}
