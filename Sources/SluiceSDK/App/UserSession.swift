import Foundation
import SluiceCore

/// What the device keeps of a user.
struct UserSession: Hashable, Sendable {
    var id: String
    var provider: String
    var identities: [UserIdentity]
    /// What the provider knows of the user.
    var profile: JSON
    var accessToken: String?
    var refreshToken: String?
    var deviceId: String?
    /// In this process only: who is removed is not stored.
    var isRemoved = false

    /// From the server's answer to a login.
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

    /// Takes an access token, and what it says of the user.
    mutating func take(accessToken token: String) {
        accessToken = token
        guard let claims = UserSession.claims(of: token) else { return }
        if let told = UserIdentity.list(claims["identities"]), !told.isEmpty { identities = told }
        if let told = claims["data"], told.members?.isEmpty == false { profile = told }
    }

    /// The claims of a token, without checking its signature: that is the server's business.
    static func claims(of token: String) -> JSON? {
        let parts = token.split(separator: ".")
        guard parts.count == 3 else { return nil }
        var text = parts[1].replacing("-", with: "+").replacing("_", with: "/")
        while !text.count.isMultiple(of: 4) { text += "=" }
        return Base64.decode(text).flatMap { try? JSON.parse($0) }
    }
}

/// The users of an app on this device, in a file that only its owner may read.
struct StoredUsers {
    var users: [UserSession] = []
    var current: String?

    private static func file(_ folder: URL) -> URL { folder.appendingPathComponent("users.json") }

    /// Users that cannot be read are as good as logged out.
    static func read(_ folder: URL) -> StoredUsers {
        guard let data = try? Data(contentsOf: file(folder)), let json = try? JSON.parse(Array(data)) else { return StoredUsers() }
        return StoredUsers(
            users: (json["users"]?.array ?? []).compactMap { UserSession(stored: $0) }, current: json["current"]?.string)
    }

    /// - Returns: why it could not be written.
    func write(_ folder: URL) -> Realm.Error? {
        let json: JSON = ["users": .array(users.map(\.json)), "current": current.map { .string($0) } ?? .null]
        do {
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let path = StoredUsers.file(folder).path
            let fresh = "\(path).new"
            guard
                FileManager.default.createFile(
                    atPath: fresh, contents: Data(json.utf8), attributes: [.posixPermissions: 0o600])
            else { return Realm.Error(.fileAccess, "The users of the app cannot be stored in \(path).") }
            // rename replaces the old file in one step.
            guard rename(fresh, path) == 0 else {
                return Realm.Error(.fileAccess, "The users of the app cannot be stored in \(path).")
            }
            return nil
        } catch {
            return Realm.Error(.fileAccess, "The users of the app cannot be stored: \(error.localizedDescription)")
        }
    }
}
