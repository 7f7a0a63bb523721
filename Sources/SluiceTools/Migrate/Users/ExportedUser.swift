import SluiceCore
import SluicePorts
import SluiceValues

/// A user as the Admin API of App Services lists it, with the account that it becomes.
struct ExportedUser: Sendable {
    enum Reading: Sendable {
        case user(ExportedUser)
        /// A registration whose e-mail address was never confirmed. Its password is not in the export.
        case pending(id: String, email: String)
        /// A user without an account here.
        case unfit(id: String, reason: String)
    }

    /// The account, without custom data.
    var account: UserAccount
    /// The time of creation, in seconds since 1970.
    var created: Int64?
    /// The custom data; nil if there are none.
    var customData: JSON?
    /// The API keys that log the user in. Their secrets are not in the export.
    var keys: [APIKey]
    /// The types of the providers, in order.
    var providers: [String]

    /// Reads an element of `GET /groups/…/apps/…/users`, or of its list of pending users.
    static func read(_ json: JSON) -> Reading {
        let id = text(json["_id"]) ?? ""
        guard ObjectIdentifierBytes(hex: id) != nil else { return .unfit(id: id, reason: "the _id is not 24 hexadecimal digits") }
        if let logins = json["login_ids"] { return pending(id, logins) }
        let identities = (json["identities"]?.array ?? []).filter { $0["provider_type"]?.string != nil }
        let providers = identities.compactMap { $0["provider_type"]?.string }
        guard let first = providers.first(where: { $0 != "api-key" }) ?? providers.first else {
            return .unfit(id: id, reason: "the user has no identity")
        }
        let isServer = json["type"]?.string == "server"
        var account = UserAccount(id: id, provider: isServer ? "api-key" : first)
        // A user with this identity would be a server.
        account.identities = .array(identities.filter { isServer || $0["provider_type"]?.string != "api-key" }.map(identity))
        account.data = json["data"]?.members == nil ? .object([]) : json["data"] ?? .object([])
        account.isDisabled = json["disabled"]?.bool ?? false
        if providers.contains("local-userpass") {
            guard let email = email(of: json, identities) else {
                return .unfit(id: id, reason: "the e-mail address is missing or malformed")
            }
            account.email = email
            account.data = .object((account.data.members ?? []).filter { $0.key != "email" } + [.init("email", .string(email))])
        }
        let custom = json["custom_data"].flatMap { $0.members?.isEmpty == false ? $0 : nil }
        return .user(
            ExportedUser(
                account: account, created: json["creation_date"].flatMap(seconds).flatMap { times.contains($0) ? $0 : nil },
                customData: custom,
                keys: keys(of: id, isServer: isServer, json, identities), providers: providers))
    }

    private static func pending(_ id: String, _ logins: JSON) -> Reading {
        let named = logins.array?.first { $0["id_type"]?.string == "email" }?["id"]?.string
        guard let named, named.contains("@"), let email = try? EmailAddress(named).text else {
            return .unfit(id: id, reason: "the e-mail address of the pending user is missing or malformed")
        }
        return .pending(id: id, email: email)
    }

    /// The times that PostgreSQL can hold, in seconds since 1970: from 4714-11-24 BC to the end of the year 294276.
    private static let times = Int64(-210_866_803_200)..<9_224_318_016_000

    private static func text(_ json: JSON?) -> String? { json?.string ?? json?["$oid"]?.string }

    /// Returns an identity with its known members. Its id and provider find the user at a login.
    private static func identity(_ json: JSON) -> JSON {
        var members = [JSON.Member("id", .string(text(json["id"]) ?? "")), JSON.Member("provider_type", json["provider_type"] ?? .null)]
        if let id = text(json["provider_id"]) { members.append(.init("provider_id", .string(id))) }
        if let data = json["provider_data"], data.members?.isEmpty == false { members.append(.init("provider_data", data)) }
        return .object(members)
    }

    /// Returns the address in its normal form.
    private static func email(of json: JSON, _ identities: [JSON]) -> String? {
        let identity = identities.first { $0["provider_type"]?.string == "local-userpass" }
        let named = identity?["provider_data"]?["email"]?.string ?? json["data"]?["email"]?.string ?? text(identity?["id"])
        guard let named, named.contains("@") else { return nil }
        return try? EmailAddress(named).text
    }

    private static func keys(of user: String, isServer: Bool, _ json: JSON, _ identities: [JSON]) -> [APIKey] {
        identities.filter { $0["provider_type"]?.string == "api-key" }.compactMap { identity in
            guard let id = text(identity["id"]), ObjectIdentifierBytes(hex: id) != nil else { return nil }
            // The name of a user of another type is that of a person.
            let name = isServer ? json["data"]?["name"]?.string : nil
            return APIKey(id: id, user: user, name: keyName(name, id), isDisabled: false, isServer: isServer)
        }
    }

    /// Returns the name in the letters that names of keys have here.
    private static func keyName(_ name: String?, _ id: String) -> String {
        guard let name, !name.isEmpty else { return "key-\(id)" }
        return String(
            name.unicodeScalars.prefix(64).map {
                $0.isASCII && ($0.properties.isAlphabetic || $0.properties.numericType != nil || $0 == "_") ? Character($0) : "-"
            })
    }

    /// Returns seconds since 1970 from a number of seconds or milliseconds, or a date of Extended JSON.
    private static func seconds(_ json: JSON) -> Int64? {
        switch ExtendedForm(json) {
        case .timestamp(let time): return time.seconds
        case .int(let number): return seconds(number)
        default: return json.int.map(seconds) ?? json.string.flatMap { Timestamp(iso8601: $0)?.seconds }
        }
    }

    /// A number of seconds has eleven digits until the year 5138.
    private static func seconds(_ number: Int64) -> Int64 { number.magnitude > 99_999_999_999 ? number / 1_000 : number }
}
