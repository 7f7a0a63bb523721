import Foundation
import JWTKit

/// The airport's own identity provider: it knows its agents and signs tokens for them. The gateway shares its key.
struct IdentityProvider {
    let key: String

    /// The provider in the app directory, as App Services exported it.
    static var settings: [String: Any] {
        [
            "custom-token": [
                "name": "custom-token", "type": "custom-token", "disabled": false,
                "config": ["audience": "airport-ops", "signingAlgorithm": "HS256", "useJWKURI": false] as [String: Any],
                "secret_config": ["signingKeys": ["identity-provider"]],
            ] as [String: Any]
        ]
    }

    private struct Claims: JWTPayload {
        var sub: SubjectClaim
        var aud: AudienceClaim
        var exp: ExpirationClaim

        func verify(using algorithm: some JWTAlgorithm) throws {}
    }

    /// Returns a token for an agent, valid for five minutes.
    func token(for agent: String) async throws -> String {
        let keys = await JWTKeyCollection().add(hmac: HMACKey(from: key), digestAlgorithm: .sha256)
        return try await keys.sign(
            Claims(sub: SubjectClaim(value: agent), aud: AudienceClaim(value: "airport-ops"), exp: ExpirationClaim(value: .now + 300)))
    }
}
