import SluiceCore
import SluiceValues

/// The claims of a token. Access and refresh tokens have the same shape, as in App Services.
struct Claims: Hashable, Sendable {
    enum Kind: String, Sendable { case access, refresh }

    /// The user's id.
    var sub: String
    var app: String
    var typ: Kind
    /// The time of issue, in seconds since 1970. `exp` is the time of expiry.
    var iat: Int64
    var exp: Int64
    /// A random value that makes every token unique.
    var jti: String
    /// The id of the login, as OpenID Connect calls a session. Tokens of releases before schema 2 have none.
    var sid: String?
    /// The number of rotations before a refresh token.
    var generation: Int64?
    /// The user's custom data. This claim and the following are in access tokens only.
    var userData: JSON?
    /// The metadata of the login provider.
    var data: JSON?
    var identities: JSON?

    /// The time of expiry, in milliseconds since 1970, clamped. The owner of the key may have signed any number.
    var expires: Int64 { Timestamp(seconds: exp).milliseconds }
}

extension Claims {
    /// - Throws: `badAuthentication` if a claim is missing or has the wrong type.
    init(_ json: JSON) throws(SluiceError) {
        func required<T>(_ name: String, _ read: (JSON) -> T?) throws(SluiceError) -> T {
            guard let value = json[name].flatMap(read) else {
                throw SluiceError(.badAuthentication, "The token has no valid “\(name)”.")
            }
            return value
        }
        func value(_ name: String) -> JSON? { json[name].flatMap { $0 == .null ? nil : Self.sorted($0) } }
        sub = try required("sub", \.string)
        app = try required("app", \.string)
        typ = try required("typ") { $0.string.flatMap(Kind.init) }
        iat = try required("iat", \.int)
        exp = try required("exp", \.int)
        jti = try required("jti", \.string)
        sid = json["sid"]?.string
        generation = json["generation"]?.int
        userData = value("user_data")
        data = value("data")
        identities = value("identities")
    }

    /// The claims as a token has them.
    var json: JSON {
        var members: [JSON.Member] = [
            .init("sub", .string(sub)), .init("app", .string(app)), .init("typ", .string(typ.rawValue)), .init("iat", .int(iat)),
            .init("exp", .int(exp)), .init("jti", .string(jti)),
        ]
        if let sid { members.append(.init("sid", .string(sid))) }
        if let generation { members.append(.init("generation", .int(generation))) }
        if let userData { members.append(.init("user_data", userData)) }
        if let data { members.append(.init("data", data)) }
        if let identities { members.append(.init("identities", identities)) }
        return .object(members)
    }

    /// Members of custom data may come in any order. Sorted ones can be compared.
    private static func sorted(_ json: JSON) -> JSON {
        switch json {
        case .object(let members):
            .object(members.map { JSON.Member($0.key, sorted($0.value)) }.sorted { $0.key < $1.key })
        case .array(let elements): .array(elements.map(sorted))
        case .null, .bool, .int, .double, .string: json
        }
    }
}
