import SluiceCore
import SluicePostgres

/// The app's own keys, which its gateways share through the database.
struct AppKeys: Sendable {
    /// The keys that sign tokens.
    let signing: SigningKeys
    let store: SigningKeyStore
    /// Seals the client view records and resume offers that clients store for the app's gateways.
    let sealer: KeySealer
    /// The salt of the server's history in Realm's protocol. It belongs to the database.
    let realmSalt: UInt64

    /// Reads the keys, and makes those that the database lacks.
    static func open(_ pool: PostgresPool, environment: any Environment) async throws -> AppKeys {
        let store = SigningKeyStore(pool: pool, sealers: try KeyEncryption.sealers())
        _ = try await store.signingKey(AccessTokens.keyName, proposed: newKey())
        let signing = try await SigningKeys(environment: environment) {
            try await store.keys(AccessTokens.keyName).map { .init(id: $0.id, bytes: $0.key) }
        }
        let sealer = KeySealer(key: try await store.signingKey("held", proposed: newKey()))
        let salt = try await store.signingKey("realm", proposed: newKey()).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        // Positive, in 63 bits.
        return AppKeys(signing: signing, store: store, sealer: sealer, realmSalt: salt >> 1 | 1)
    }

    private static func newKey() -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
}
