package import SluiceValues

/// The conditions under which a login token of another issuer is accepted.
package struct TokenPolicy: Hashable, Sendable {
    /// The condition on `aud`. An empty list accepts every audience.
    package enum Audience: Hashable, Sendable {
        case any([String])
        case all([String])
    }

    /// A claim that becomes a member of the user's data.
    package struct Field: Hashable, Sendable {
        package var claim: ClaimPath
        package var name: String
        /// `true` to reject a token without the claim.
        package var isRequired: Bool

        package init(claim: ClaimPath, name: String, isRequired: Bool = false) {
            self.claim = claim
            self.name = name
            self.isRequired = isRequired
        }
    }

    /// A claim that must have a value.
    package struct RequiredClaim: Hashable, Sendable {
        package var claim: ClaimPath
        package var value: JSON

        package init(_ claim: ClaimPath, _ value: JSON) {
            self.claim = claim
            self.value = value
        }
    }

    /// The algorithms. Those of a key set cannot include HS256.
    package var algorithms: Set<TokenAlgorithm>
    /// The values of `iss`. An empty list accepts every issuer.
    package var issuers: [String]
    package var audience: Audience
    /// The tolerance of `exp`, `nbf` and `iat`, in seconds.
    package var clockSkew: Int64
    package var required: [RequiredClaim]
    /// The claim with the user's external id.
    package var subject: ClaimPath
    package var fields: [Field]
    /// The domains of e-mail addresses, in lower case. An empty set accepts every domain.
    package var domains: Set<String> = []

    /// The default tolerance and the range of settings, in seconds.
    package static let defaultClockSkew: Int64 = 60
    package static let clockSkews: ClosedRange<Int64> = 0...300
    /// The longest value of a text field, in bytes.
    package static let fieldBytes = 4_096
    /// The longest external id, in bytes.
    package static let subjectBytes = 255

    package init(
        algorithms: Set<TokenAlgorithm>, issuers: [String] = [], audience: Audience = .any([]),
        clockSkew: Int64 = Self.defaultClockSkew, required: [RequiredClaim] = [], subject: ClaimPath = "sub", fields: [Field] = []
    ) {
        self.algorithms = algorithms
        self.issuers = issuers
        self.audience = audience
        self.clockSkew = clockSkew
        self.required = required
        self.subject = subject
        self.fields = fields
    }
}

/// The place of a claim: the keys from the top of the payload, joined with dots. `\.` is a dot within a key.
package struct ClaimPath: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    package let description: String
    private let keys: [String]

    package init(_ text: String) {
        description = text
        var keys = [""]
        var isEscaped = false
        for character in text {
            switch character {
            case "\\" where !isEscaped: isEscaped = true
            case "." where !isEscaped: keys.append("")
            default:
                // A backslash before any other character is itself.
                if isEscaped, character != ".", character != "\\" { keys[keys.count - 1].append("\\") }
                keys[keys.count - 1].append(character)
                isEscaped = false
            }
        }
        if isEscaped { keys[keys.count - 1].append("\\") }
        self.keys = keys
    }

    package init(stringLiteral text: String) { self.init(text) }

    /// Returns the value of the claim; nil if there is none or it is null.
    package func value(in claims: JSON) -> JSON? {
        var value = claims
        for key in keys {
            guard let next = value[key], next != .null else { return nil }
            value = next
        }
        return value
    }
}
