import Crypto
package import Hummingbird
import HTTPTypes
import SluiceCore
import SluiceNet
package import SluicePostgres
import SluiceValues

/// Operators' routes for the keys that sign tokens, for the admin port only.
///
/// - `GET keys`: Returns `[{"id", "created", "signs"}]`, the oldest first. `created` is in milliseconds since 1970.
/// - `POST keys`: Adds a key, which signs all tokens from then on. Tokens of the other keys stay valid. Returns 201.
/// - `DELETE keys/<id>`: Removes an older key. Its tokens are not valid any more, on all gateways within half a minute. The first key is
///   `first`.
package struct SigningKeyRoutes: Sendable {
    /// The name of the first key, whose id is empty.
    private static let first = "first"

    private let store: SigningKeyStore
    private let keys: SigningKeys

    package init(store: SigningKeyStore, keys: SigningKeys) {
        self.store = store
        self.keys = keys
    }

    package func add<Context: RequestContext>(to routes: some RouterMethods<Context>) {
        routes.get("keys") { _, _ in JSONResponse(Self.json(try await store.keys(AccessTokens.keyName))).response }
        routes.post("keys") { _, _ in
            let id = SymmetricKey(size: .bits128).withUnsafeBytes { Hex.encode($0.prefix(8)) }
            try await store.add(AccessTokens.keyName, id: id, key: SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) })
            try await keys.reload()
            return JSONResponse(Self.json(try await store.keys(AccessTokens.keyName)), status: .created).response
        }
        routes.delete("keys/:id") { _, context in
            let id = try context.parameters.require("id")
            guard try await store.remove(AccessTokens.keyName, id: id == Self.first ? "" : id) else {
                throw SluiceError(
                    .badRequest, "There is no older key '\(id.prefix(64))'.",
                    fix: "Give the id of a key that does not sign; GET keys lists them.")
            }
            try await keys.reload()
            return Response(status: .noContent)
        }
    }

    private static func json(_ keys: [StoredSigningKey]) -> JSON {
        .array(
            keys.map { key in
                [
                    "id": .string(key.id.isEmpty ? first : key.id), "created": .int(key.created), "signs": .bool(key.id == keys.last?.id),
                ]
            })
    }
}
