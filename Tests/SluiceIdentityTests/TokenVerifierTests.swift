import IdentityTestSupport
import SluiceCore
import SluiceIdentity
import SluiceValues
import Testing

/// Login tokens of other issuers.
@Suite struct TokenVerifierTests {
    static let now: Int64 = 1_700_000_000

    /// The claims of a token that every policy of these tests accepts.
    static let claims: JSON = [
        "sub": "user-1", "iss": "https://issuer.example", "aud": ["shop", "other"], "exp": .int(now + 3_600), "nbf": .int(now),
        "iat": .int(now),
        "email": "ada@example.com", "plan": ["name": "gold", "a.b": "dotted"], "nonce": "n-1",
    ]

    static let policy = TokenPolicy(
        algorithms: [.rs256, .es256, .edDSA], issuers: ["https://issuer.example"], audience: .any(["shop"]), clockSkew: 0)

    let issuer: TestIssuer
    let keys: IssuerKeySet

    init() async throws {
        issuer = try TestIssuer()
        keys = try await IssuerKeySet(jwks: Array(issuer.keySet().utf8))
    }

    /// Returns the reason of the rejection; nil if the token is accepted.
    private func rejection(
        _ text: String, _ policy: TokenPolicy = Self.policy, keys: IssuerKeySet? = nil, nonce: String? = nil, now: Int64 = Self.now
    ) -> String? {
        do throws(SluiceError) {
            _ = try TokenVerifier(provider: "custom-token", policy: policy)
                .verify(try SignedToken(text), with: keys ?? self.keys, nonce: nonce, now: now * 1_000)
            return nil
        } catch {
            #expect(error.code == .loginTokenRejected)
            // A client gets no reason.
            #expect(ClientError(error).message == "The login token is not accepted.")
            return error.value ?? ""
        }
    }

    private func claims(_ changes: [String: JSON?]) -> JSON {
        var members = (Self.claims.members ?? []).filter { !changes.keys.contains($0.key) }
        for (key, value) in changes.sorted(by: { $0.key < $1.key }) { if let value { members.append(.init(key, value)) } }
        return .object(members)
    }

    // MARK: Accepted tokens

    @Test(arguments: [TestIssuer.Algorithm.rs256, .es256, .edDSA])
    func `a token of a key set is accepted`(algorithm: TestIssuer.Algorithm) throws {
        let identity = try TokenVerifier(provider: "custom-token", policy: Self.policy)
            .verify(try SignedToken(try issuer.token(Self.claims, algorithm)), with: keys, now: Self.now * 1_000)
        #expect(identity == ProvenIdentity(provider: "custom-token", id: "user-1"))
    }

    @Test func `a token of a shared secret and of a public key in PEM form is accepted`() async throws {
        let secret = IssuerKeySet([try await IssuerKey(secret: issuer.secret)])
        var policy = Self.policy
        policy.algorithms = [.hs256]
        #expect(rejection(try issuer.token(Self.claims, .hs256), policy, keys: secret) == nil)
        let rsa = IssuerKeySet([try await IssuerKey(pem: issuer.rsaPEM, .rs256)])
        #expect(rejection(try issuer.token(Self.claims, .rs256), keys: rsa) == nil)
        let ec = IssuerKeySet([try await IssuerKey(pem: issuer.p256PEM, .es256)])
        #expect(rejection(try issuer.token(Self.claims, .es256), keys: ec) == nil)
    }

    @Test func `each of several secrets verifies, as during a rotation`() async throws {
        var policy = Self.policy
        policy.algorithms = [.hs256]
        let both = IssuerKeySet([
            try await IssuerKey(secret: String(repeating: "x", count: 40)), try await IssuerKey(secret: issuer.secret),
        ])
        #expect(rejection(try issuer.token(Self.claims, .hs256), policy, keys: both) == nil)
    }

    @Test func `a token without a key id is verified by each key of its algorithm`() throws {
        #expect(rejection(try issuer.token(Self.claims, .rs256, header: ["alg": "RS256"])) == nil)
    }

    // MARK: Attacks

    @Test func `a public key is no secret of HS256`() async throws {
        let rsa = IssuerKeySet([try await IssuerKey(pem: issuer.rsaPEM, .rs256)])
        var lax = Self.policy
        lax.algorithms = [.hs256, .rs256]
        for keys in [rsa, keys] {
            for header: JSON in [["alg": "HS256"], ["alg": "HS256", "kid": .string(issuer.keyID(.rs256))], ["alg": "RS256"]] {
                let forged = TestIssuer.forged(Self.claims, header: header, secret: issuer.rsaPEM)
                #expect(rejection(forged, lax, keys: keys) != nil, "\(header.text)")
            }
        }
    }

    @Test(arguments: ["none", "None", "NONE", "", "HS256", "HS512", "RS512", "PS256", "ES384", "rs256"])
    func `an algorithm that the policy does not list is rejected`(name: String) throws {
        let token = try issuer.token(Self.claims, .rs256, header: ["alg": .string(name), "kid": .string(issuer.keyID(.rs256))])
        #expect(rejection(token)?.contains("algorithm") == true)
    }

    @Test func `a token without a signature is rejected`() throws {
        let token = try issuer.token(Self.claims, .rs256)
        let unsigned = token.split(separator: ".").prefix(2).joined(separator: ".")
        #expect(rejection(unsigned + ".") == "it has no signature")
        #expect(rejection(unsigned) == "it has 2 parts, not 3")
        #expect(rejection(token + ".x") == "it has 4 parts, not 3")
    }

    @Test func `a token of another issuer's key is rejected, also under the id of a known key`() throws {
        let other = try TestIssuer()
        #expect(rejection(try other.token(Self.claims, .rs256)) == "its signature is not valid")
        let foreign = try TestIssuer(generation: "b")
        #expect(rejection(try foreign.token(Self.claims, .rs256))?.contains("b-RS256") == true)
    }

    @Test func `a key is not used for another algorithm than its own`() throws {
        let header: JSON = ["alg": "RS256", "kid": .string(issuer.keyID(.es256))]
        #expect(rejection(try issuer.token(Self.claims, .es256, header: header)) != nil)
    }

    @Test func `a token with a changed payload is rejected`() throws {
        var parts = try issuer.token(Self.claims, .es256).split(separator: ".").map(String.init)
        parts[1] = TestIssuer.base64URL(claims(["sub": "user-2"]).utf8)
        #expect(rejection(parts.joined(separator: ".")) == "its signature is not valid")
    }

    @Test func `critical extensions, which a reader must understand, are rejected`() throws {
        let header: JSON = ["alg": "RS256", "crit": ["b64"], "b64": false]
        #expect(rejection(try issuer.token(Self.claims, .rs256, header: header))?.contains("critical") == true)
    }

    @Test func `keys that the token brings along are not used`() throws {
        let other = try TestIssuer()
        let key = try #require(other.keySet()["keys"]?.array?.first)
        let header: JSON = ["alg": "RS256", "kid": .string(other.keyID(.rs256)), "jwk": key, "jku": "https://evil.example/keys"]
        #expect(rejection(try other.token(Self.claims, .rs256, header: header)) != nil)
    }

    @Test(arguments: ["", ".", "..", "a.b.c", "e30.e30.AA", "bm8.e30.AA", "e30=.e30.AA", "eyJhbGciOiJSUzI1NiJ9.W10.AA"])
    func `a text that is no token is rejected`(text: String) { #expect(rejection(text) != nil) }

    @Test func `a token over the limit is rejected before it is decoded`() {
        #expect(rejection(String(repeating: "a", count: SignedToken.maximumBytes + 1))?.contains("over the limit") == true)
    }

    // MARK: Conditions

    @Test func `times count, with the tolerance of the policy`() throws {
        let expired = try issuer.token(claims(["exp": .int(Self.now - 10)]), .es256)
        let early = try issuer.token(claims(["nbf": .int(Self.now + 10)]), .es256)
        let ahead = try issuer.token(claims(["iat": .int(Self.now + 10)]), .es256)
        var tolerant = Self.policy
        tolerant.clockSkew = 11
        for token in [expired, early, ahead] {
            #expect(rejection(token) != nil)
            #expect(rejection(token, tolerant) == nil)
        }
        #expect(rejection(expired) == "it expired 10 seconds ago")
        // The second of expiry is past.
        #expect(rejection(try issuer.token(claims(["exp": .int(Self.now)]), .es256)) != nil)
        #expect(rejection(try issuer.token(claims(["exp": .double(Double(Self.now) + 1.5)]), .es256)) == nil)
    }

    @Test(arguments: [nil, "soon", .int(-1), .double(1e300), .double(.infinity), .int(.max)] as [JSON?])
    func `a time of expiry that is none is rejected`(value: JSON?) throws {
        #expect(rejection(try issuer.token(claims(["exp": value]), .es256)) != nil)
    }

    @Test func `issuer and audience count`() throws {
        #expect(rejection(try issuer.token(claims(["iss": "https://evil.example"]), .es256))?.contains("evil") == true)
        #expect(rejection(try issuer.token(claims(["iss": nil]), .es256)) != nil)
        func accepts(_ audience: JSON?, _ condition: TokenPolicy.Audience) throws -> Bool {
            var policy = Self.policy
            policy.audience = condition
            return rejection(try issuer.token(claims(["aud": audience]), .es256), policy) == nil
        }
        #expect(try accepts("shop", .any(["shop"])))
        #expect(try accepts(["b", "shop"], .any(["shop", "x"])))
        #expect(try !accepts(["b"], .any(["shop", "x"])))
        #expect(try !accepts(["shop"], .all(["shop", "x"])))
        #expect(try accepts(["x", "shop", "y"], .all(["shop", "x"])))
        #expect(try !accepts(nil, .all(["shop"])))
        #expect(try !accepts(["Shop"], .any(["shop"])))
        #expect(try !accepts(.int(1), .any(["shop"])))
        #expect(try accepts(nil, .any([])))
    }

    @Test func `required claims have their values`() throws {
        var policy = Self.policy
        policy.required = [.init("plan.name", "gold")]
        #expect(rejection(try issuer.token(Self.claims, .es256), policy) == nil)
        policy.required = [.init("plan.name", "gold"), .init("email_verified", true)]
        #expect(rejection(try issuer.token(Self.claims, .es256), policy)?.contains("email_verified") == true)
        #expect(rejection(try issuer.token(claims(["email_verified": "true"]), .es256), policy) != nil)
        #expect(rejection(try issuer.token(claims(["email_verified": true]), .es256), policy) == nil)
    }

    @Test func `a nonce of the client is in the token, or its digest`() throws {
        let token = try issuer.token(Self.claims, .es256)
        #expect(rejection(token, nonce: "n-1") == nil)
        #expect(rejection(token, nonce: "n-2") == "its nonce is another")
        #expect(rejection(try issuer.token(claims(["nonce": .string(TestIssuer.digest("n-1"))]), .es256), nonce: "n-1") == nil)
        #expect(rejection(try issuer.token(claims(["nonce": nil]), .es256), nonce: "n-1") != nil)
    }

    // MARK: Data

    @Test func `claims become the user's data by their paths`() throws {
        var policy = Self.policy
        policy.fields = [
            .init(claim: "email", name: "email", isRequired: true), .init(claim: "plan.name", name: "plan"),
            .init(claim: #"plan.a\.b"#, name: "dotted"), .init(claim: "absent.deep", name: "absent"), .init(claim: "plan", name: "whole"),
        ]
        let identity = try TokenVerifier(provider: "custom-token", policy: policy)
            .verify(try SignedToken(try issuer.token(Self.claims, .es256)), with: keys, now: Self.now * 1_000)
        #expect(
            identity.data
                == ["email": "ada@example.com", "plan": "gold", "dotted": "dotted", "whole": ["name": "gold", "a.b": "dotted"]])
    }

    @Test func `a missing required claim and a value over the limit are rejected`() throws {
        var policy = Self.policy
        policy.fields = [.init(claim: "phone", name: "phone", isRequired: true)]
        #expect(rejection(try issuer.token(Self.claims, .es256), policy)?.contains("phone") == true)
        policy.fields = [.init(claim: "email", name: "email")]
        let long = try issuer.token(claims(["email": .string(String(repeating: "a", count: 5_000))]), .es256)
        #expect(rejection(long, policy)?.contains("over 4096 bytes") == true)
    }

    @Test(arguments: [nil, "", .bool(true), .string(String(repeating: "a", count: 256)), "a\u{0}b"] as [JSON?])
    func `an external id that is none is rejected`(value: JSON?) throws {
        #expect(rejection(try issuer.token(claims(["sub": value]), .es256))?.contains("'sub'") == true)
    }

    @Test func `the external id may be a number and another claim`() throws {
        var policy = Self.policy
        policy.subject = "uid"
        let token = try issuer.token(claims(["uid": .int(42)]), .es256)
        let identity = try TokenVerifier(provider: "custom-token", policy: policy)
            .verify(try SignedToken(token), with: keys, now: Self.now * 1_000)
        #expect(identity.id == "42")
    }
}
