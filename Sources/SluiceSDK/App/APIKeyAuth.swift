import SluiceCore
import SluiceValues

/// A user's API key. A program of the user logs in with it, through `Credentials.userAPIKey`.
public final class UserAPIKey: Sendable {
    public let objectId: ObjectId
    public let name: String
    /// The secret for `Credentials.userAPIKey`. Present only in the result of `createAPIKey`; nil afterwards.
    public let key: String?
    public let disabled: Bool

    fileprivate init(_ json: JSON) throws {
        guard let id = json["_id"]?.string.flatMap({ try? ObjectId(string: $0) }), let name = json["name"]?.string else {
            throw AppError(.httpRequestFailed, "The server's answer is no API key.")
        }
        objectId = id
        self.name = name
        key = json["key"]?.string
        disabled = json["disabled"] == .bool(true)
    }
}

/// The API keys of a user, at most 20. Each call sends one request.
/// - Throws: `AppError` if the server rejects the request or cannot be reached, or if the user is logged out.
public struct APIKeyAuth: Sendable {
    private static let path = "/api/client/v2.0/auth/api_keys"
    let user: User

    /// Creates a key.
    /// - Parameter name: 1 to 64 letters, digits, `-` and `_`, unique among the user's keys.
    public func createAPIKey(named name: String) async throws -> UserAPIKey {
        try UserAPIKey(await send(.post, "", .object([.init("name", .string(name))])))
    }

    public func fetchAPIKey(_ id: ObjectId) async throws -> UserAPIKey { try UserAPIKey(await send(.get, "/\(id.stringValue)")) }

    public func fetchAPIKeys() async throws -> [UserAPIKey] {
        guard case .array(let keys) = try await send(.get, "") else {
            throw AppError(.httpRequestFailed, "The server's answer is no list of API keys.")
        }
        return try keys.map { try UserAPIKey($0) }
    }

    public func deleteAPIKey(_ id: ObjectId) async throws { _ = try await send(.delete, "/\(id.stringValue)") }

    /// Allows logins with a disabled key again.
    public func enableAPIKey(_ id: ObjectId) async throws { _ = try await send(.put, "/\(id.stringValue)/enable") }

    /// Rejects further logins with a key. Sessions that logged in with it stay logged in.
    public func disableAPIKey(_ id: ObjectId) async throws { _ = try await send(.put, "/\(id.stringValue)/disable") }

    private func send(_ method: NetworkRequest.Method, _ path: String, _ body: JSON? = nil) async throws -> JSON {
        guard let token = user.refreshToken else { throw AppError(.invalidSession, "The user \(user.id) is logged out.") }
        return try await user.app.http.send(method, APIKeyAuth.path + path, token: token, body: body)
    }
}

/// The same calls with completion handlers. A handler runs on no particular thread.
extension APIKeyAuth {
    public func createAPIKey(named name: String, completion: @Sendable @escaping (UserAPIKey?, (any Error)?) -> Void) {
        run({ try await createAPIKey(named: name) }, completion)
    }

    public func fetchAPIKey(_ id: ObjectId, _ completion: @Sendable @escaping (UserAPIKey?, (any Error)?) -> Void) {
        run({ try await fetchAPIKey(id) }, completion)
    }

    public func fetchAPIKeys(_ completion: @Sendable @escaping ([UserAPIKey]?, (any Error)?) -> Void) {
        run({ try await fetchAPIKeys() }, completion)
    }

    public func deleteAPIKey(_ id: ObjectId, completion: @Sendable @escaping ((any Error)?) -> Void) {
        run({ try await deleteAPIKey(id) }) { _, error in completion(error) }
    }

    public func enableAPIKey(_ id: ObjectId, completion: @Sendable @escaping ((any Error)?) -> Void) {
        run({ try await enableAPIKey(id) }) { _, error in completion(error) }
    }

    public func disableAPIKey(_ id: ObjectId, completion: @Sendable @escaping ((any Error)?) -> Void) {
        run({ try await disableAPIKey(id) }) { _, error in completion(error) }
    }

    private func run<R: Sendable>(
        _ work: @Sendable @escaping () async throws -> R, _ completion: @Sendable @escaping (R?, (any Error)?) -> Void
    ) {
        _Concurrency.Task {  // Unstructured because: the caller has no task; the request's deadline ends it.
            do {
                completion(try await work(), nil)
            } catch {
                completion(nil, error)
            }
        }
    }
}

extension User {
    /// The user's API keys. The server needs the provider `api-key`.
    public var apiKeysAuth: APIKeyAuth { APIKeyAuth(user: self) }
}
