import FoundationEssentials
import JWTKit
import SluiceCore
import SluiceValues

/// The claims of a token. Access and refresh tokens have the same shape, as in App Services.
struct Claims: JWTPayload {
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

    /// Accepts every time. `AccessTokens` checks the times by the gateway's clock.
    func verify(using algorithm: some JWTAlgorithm) throws {}
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

    init(from decoder: any Decoder) throws { try self.init(ClaimValue(from: decoder).json) }

    func encode(to encoder: any Encoder) throws { try ClaimValue(json).encode(to: encoder) }

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

/// Decodes claims without `Codable`, which costs more than the rest of the verification.
struct ClaimsDecoder: JWTJSONDecoder {
    func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T {
        if type == Claims.self, let claims = try Claims(JSON.parse(Array(data))) as? T { return claims }
        return try JSONDecoder().decode(type, from: data)
    }
}

/// Encodes claims and headers without `Codable`, which costs more than the rest of the signature.
struct ClaimsEncoder: JWTJSONEncoder {
    func encode<T: Encodable>(_ value: T) throws -> Data {
        if let claims = value as? Claims { return Data(claims.json.utf8) }
        if let header = value as? JWTHeader, let json = Self.json(header) { return Data(json.utf8) }
        return try JSONEncoder().encode(value)
    }

    /// - Returns: nil if a field is no text.
    private static func json(_ header: JWTHeader) -> JSON? {
        var members: [JSON.Member] = []
        for (name, value) in header.fields.sorted(by: { $0.key < $1.key }) {
            guard case .string(let text) = value else { return nil }
            members.append(.init(name, .string(text)))
        }
        return .object(members)
    }
}

/// Any JSON value in a token.
struct ClaimValue: Codable, Sendable {
    var json: JSON

    init(_ json: JSON) { self.json = json }

    init(from decoder: any Decoder) throws {
        if let object = try? decoder.container(keyedBy: Key.self) {
            let keys = object.allKeys.sorted { $0.stringValue < $1.stringValue }
            json = .object(try keys.map { JSON.Member($0.stringValue, try object.decode(ClaimValue.self, forKey: $0).json) })
            return
        }
        if var array = try? decoder.unkeyedContainer() {
            var elements: [JSON] = []
            while !array.isAtEnd { elements.append(try array.decode(ClaimValue.self).json) }
            json = .array(elements)
            return
        }
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            json = .null
        } else if let bool = try? value.decode(Bool.self) {
            json = .bool(bool)
        } else if let int = try? value.decode(Int64.self) {
            json = .int(int)
        } else if let double = try? value.decode(Double.self) {
            json = .double(double)
        } else {
            json = .string(try value.decode(String.self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        switch json {
        case .object(let members):
            var object = encoder.container(keyedBy: Key.self)
            for member in members { try object.encode(ClaimValue(member.value), forKey: Key(stringValue: member.key)) }
        case .array(let elements):
            var array = encoder.unkeyedContainer()
            for element in elements { try array.encode(ClaimValue(element)) }
        case .null, .bool, .int, .double, .string: try encodeScalar(to: encoder)
        }
    }

    private func encodeScalar(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        switch json {
        case .bool(let v): try value.encode(v)
        case .int(let v): try value.encode(v)
        case .double(let v): try value.encode(v)
        case .string(let v): try value.encode(v)
        default: try value.encodeNil()
        }
    }

    private struct Key: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
