import Crypto
package import SluiceCore
package import SluiceValues

/// The identity that a provider has proven.
package struct ProvenIdentity: Hashable, Sendable {
    /// The type of the provider, such as `custom-token`.
    package var provider: String
    /// The user's id at the provider.
    package var id: String
    /// The user's data from the provider.
    package var data: JSON

    package init(provider: String, id: String, data: JSON = .object([])) {
        self.provider = provider
        self.id = id
        self.data = data
    }
}

/// Verifies login tokens of other issuers (RFC 7519, section 7.2, and the advice of RFC 8725).
package struct TokenVerifier: Sendable {
    private let provider: String
    private let policy: TokenPolicy

    package init(provider: String, policy: TokenPolicy) {
        self.provider = provider
        self.policy = policy
    }

    /// Verifies a token.
    ///
    /// - Parameters:
    ///   - nonce: The value that the client gave to the issuer, if it sends one. The token has it, or its SHA-256 in hexadecimal digits.
    ///   - now: The current time, in milliseconds since 1970.
    /// - Throws: `loginTokenRejected`. Its value has the reason, for operators.
    package func verify(
        _ token: SignedToken, with keys: IssuerKeySet, nonce: String? = nil, now: Int64
    ) throws(SluiceError) -> ProvenIdentity {
        guard let algorithm = TokenAlgorithm(rawValue: token.algorithm), policy.algorithms.contains(algorithm) else {
            throw SignedToken.rejected("its algorithm '\(token.algorithm.prefix(16))' is not allowed")
        }
        let candidates = keys.candidates(for: token)
        guard !candidates.isEmpty else { throw SignedToken.rejected("no key of the issuer has the id '\(token.keyID?.prefix(64) ?? "")'") }
        guard candidates.contains(where: { $0.verifies(token) }) else { throw SignedToken.rejected("its signature is not valid") }
        try checkTimes(token.claims, now)
        try checkSender(token.claims)
        try checkDomain(token.claims)
        try checkNonce(token.claims, nonce)
        for claim in policy.required where claim.claim.value(in: token.claims) != claim.value {
            throw SignedToken.rejected("its claim '\(claim.claim)' is not \(claim.value.text)")
        }
        return ProvenIdentity(provider: provider, id: try subject(of: token.claims), data: try Self.data(of: token.claims, policy.fields))
    }

    private func checkTimes(_ claims: JSON, _ now: Int64) throws(SluiceError) {
        let now = now / 1_000
        guard let expiry = try time("exp", claims) else { throw SignedToken.rejected("it has no time of expiry") }
        guard now < expiry + policy.clockSkew else { throw SignedToken.rejected("it expired \(now - expiry) seconds ago") }
        for name in ["nbf", "iat"] {
            guard let start = try time(name, claims) else { continue }
            guard start <= now + policy.clockSkew else { throw SignedToken.rejected("its '\(name)' is \(start - now) seconds ahead") }
        }
    }

    /// Returns a time in seconds since 1970, between the years 1970 and 10000. RFC 7519 permits fractions.
    private func time(_ name: String, _ claims: JSON) throws(SluiceError) -> Int64? {
        let value: Double
        switch claims[name] {
        case nil: return nil
        case .int(let number): value = Double(number)
        case .double(let number): value = number
        default: throw SignedToken.rejected("its '\(name)' is no number")
        }
        guard (0...253_402_300_800).contains(value) else { throw SignedToken.rejected("its '\(name)' is out of range") }
        return Int64(value)
    }

    private func checkSender(_ claims: JSON) throws(SluiceError) {
        if !policy.issuers.isEmpty {
            guard let issuer = claims["iss"]?.string, policy.issuers.contains(issuer) else {
                throw SignedToken.rejected("its issuer '\(claims["iss"]?.string?.prefix(128) ?? "")' is another")
            }
        }
        let audience = Set(claims["aud"]?.array?.compactMap(\.string) ?? claims["aud"]?.string.map { [$0] } ?? [])
        let isMeant =
            switch policy.audience {
            case .any(let wanted): wanted.isEmpty || wanted.contains(where: audience.contains)
            case .all(let wanted): wanted.allSatisfy(audience.contains)
            }
        guard isMeant else {
            throw SignedToken.rejected("its audience is \(String(audience.sorted().joined(separator: ", ").prefix(128)))")
        }
    }

    private func checkDomain(_ claims: JSON) throws(SluiceError) {
        guard !policy.domains.isEmpty else { return }
        // `hd` is the domain of an account that an organisation manages. An address that is not verified proves nothing.
        let isVerified = claims["email_verified"]?.bool ?? (claims["email_verified"]?.string == "true")
        let address = isVerified ? claims["email"]?.string?.split(separator: "@").last.map(String.init) : nil
        guard [claims["hd"]?.string, address].contains(where: { $0.map { policy.domains.contains($0.lowercased()) } == true }) else {
            throw SignedToken.rejected("its user has no address of an allowed domain")
        }
    }

    private func checkNonce(_ claims: JSON, _ nonce: String?) throws(SluiceError) {
        guard let nonce else { return }
        let digest = Hex.encode(SHA256.hash(data: Array(nonce.utf8)))
        guard let found = claims["nonce"]?.string, found == nonce || found.lowercased() == digest else {
            throw SignedToken.rejected("its nonce is another")
        }
    }

    private func subject(of claims: JSON) throws(SluiceError) -> String {
        // Some issuers have numbers as ids.
        let value = policy.subject.value(in: claims)
        guard let id = value?.string ?? value?.int.map(String.init), (1...TokenPolicy.subjectBytes).contains(id.utf8.count),
            !id.utf8.contains(0)
        else { throw SignedToken.rejected("its claim '\(policy.subject)' is no id of 1 to \(TokenPolicy.subjectBytes) bytes") }
        return id
    }

    /// Returns the user's data from claims.
    ///
    /// - Throws: `loginTokenRejected` without a required one, or for one that is too large.
    static func data(of claims: JSON, _ fields: [TokenPolicy.Field]) throws(SluiceError) -> JSON {
        var members: [JSON.Member] = []
        for field in fields {
            guard let value = field.claim.value(in: claims) else {
                if field.isRequired { throw SignedToken.rejected("it has no claim '\(field.claim)', which is required") }
                continue
            }
            guard value.text.utf8.count <= TokenPolicy.fieldBytes else {
                throw SignedToken.rejected("its claim '\(field.claim)' is over \(TokenPolicy.fieldBytes) bytes")
            }
            members.append(.init(field.name, value))
        }
        return .object(members)
    }
}
