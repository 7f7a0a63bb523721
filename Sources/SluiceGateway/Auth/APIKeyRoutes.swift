package import Hummingbird
import HTTPTypes
import SluiceCore
import SluiceNet
import SluicePorts
import SluiceValues

/// The routes for API keys: a user's own under `/api/client/v2.0/auth/api_keys`, as in App Services, and operators' on the admin port.
///
/// - `POST api_keys` `{name}`: Creates a key and returns 201. Only this answer contains `key`.
/// - `GET api_keys`, `GET api_keys/<id>`: Returns all keys or one.
/// - `PUT api_keys/<id>/enable`, `/disable`: Returns 204.
/// - `DELETE api_keys/<id>`: Returns 204.
///
/// Operators have the same routes below `users/<id>/` for a user's keys, and at the top for server keys. Creating a server key accepts
/// `custom_data` too.
package struct APIKeyRoutes: Sendable {
    private let keys: APIKeys
    private let users: UserService

    package init(keys: APIKeys, users: UserService) {
        self.keys = keys
        self.users = users
    }

    /// Adds the routes for a user's own keys. They accept the refresh token, as in App Services, or the access token.
    package func add<Context: RequestContext>(to router: Router<Context>) {
        add(to: router.group("/api/client/v2.0/auth/api_keys")) { request, _ in try await owner(request) }
    }

    package func addAdmin<Context: RequestContext>(to routes: RouterGroup<Context>) {
        add(to: routes.group("users/:id/api_keys")) { _, context in
            let id = try context.parameters.require("id")
            guard try await users.directory.find(id: id) != nil else { throw SluiceError(.userNotFound, "User \(id) does not exist.") }
            return id
        }
        add(to: routes.group("api_keys")) { _, _ in nil }
    }

    /// - Parameter user: Returns the user of the request; nil for server keys.
    private func add<Context: RequestContext>(
        to routes: RouterGroup<Context>, _ user: @escaping @Sendable (Request, Context) async throws -> String?
    ) {
        routes.post("") { request, context in try await create(request, for: try await user(request, context)) }
        routes.get("") { request, context in
            let list = try await keys.list(of: try await user(request, context))
            return JSONResponse(.array(list.map { Self.json($0) })).response
        }
        routes.get(":key") { request, context in
            let key = try await keys.find(try context.parameters.require("key"), of: try await user(request, context))
            return JSONResponse(Self.json(key)).response
        }
        routes.delete(":key") { request, context in
            try await keys.delete(try context.parameters.require("key"), of: try await user(request, context))
            return Response(status: .noContent)
        }
        for (word, isDisabled) in [("enable", false), ("disable", true)] {
            routes.put(":key/\(word)") { request, context in
                try await keys.setDisabled(isDisabled, try context.parameters.require("key"), of: try await user(request, context))
                return Response(status: .noContent)
            }
        }
    }

    private func create(_ request: Request, for user: String?) async throws -> Response {
        let body = try await request.json(upTo: AuthRoutes.bodyBytes)
        guard let name = body["name"]?.string else { throw SluiceError(.badRequest, "'name' is missing or not a string.") }
        do {
            let (key, secret) =
                if let user {
                    try await keys.create(name: name, for: user)
                } else {
                    try await keys.createServerKey(name: name, customData: body["custom_data"] ?? .object([]))
                }
            return JSONResponse(Self.json(key, secret: secret), status: .created).response
        } catch let error as SluiceError where error.code == .nameInUse {
            throw ErrorResponse(error, name: "APIKeyAlreadyExists")
        }
    }

    /// - Throws: `invalidSession` if the token is neither kind or no longer valid; `tokenExpired` for an access token.
    private func owner(_ request: Request) async throws -> String {
        let token = try AuthRoutes.bearer(request)
        do {
            return try await users.account(refreshToken: token).id
        } catch let invalid as SluiceError where invalid.code == .invalidSession {
            do {
                return try await users.account(accessToken: token).id
            } catch let error as SluiceError where error.code == .badAuthentication {
                // SDKs send the refresh token, so the error is that of a session.
                throw invalid
            }
        }
    }

    private static func json(_ key: APIKey, secret: String? = nil) -> JSON {
        var members: [JSON.Member] = [
            .init("_id", .string(key.id)), .init("name", .string(key.name)), .init("disabled", .bool(key.isDisabled)),
        ]
        if let secret { members.append(.init("key", .string(secret))) }
        if key.isServer { members.append(.init("user_id", .string(key.user))) }
        return .object(members)
    }
}
