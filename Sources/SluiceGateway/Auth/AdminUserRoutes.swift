package import Hummingbird
import HTTPTypes
import SluiceCore
import SluiceNet
import SluicePorts
import SluiceValues

/// Operators' routes for users, for the admin port only.
///
/// - `POST users` `{email, password, custom_data?}`: Creates a user and returns 201.
/// - `GET users?after=&limit=`: Returns users by id, at most `limit` (50 by default, up to 1,000), as
///   `{"users": […], "next": id or null}`.
/// - `GET users/<id>`: Returns one user.
/// - `PUT users/<id>/custom_data`: Replaces the custom data. Open sessions evaluate their rules again.
/// - `PUT users/<id>/disable`, `/enable`: Disables or enables a user. A disabled user cannot log in or refresh a token.
/// - `PUT users/<id>/logout`: Ends all logins and their sessions.
/// - `DELETE users/<id>/identities/<provider>?id=<external id>`: Removes an identity and ends all logins. The last one stays.
/// - `DELETE users/<id>`: Deletes the account, but not its objects.
package struct AdminUserRoutes: Sendable {
    private let users: UserService

    package init(users: UserService) { self.users = users }

    package func add<Context: RequestContext>(to routes: some RouterMethods<Context>) {
        routes.post("users") { request, _ in try await create(request) }
        routes.get("users") { request, _ in try await list(request) }
        routes.get("users/:id") { _, context in JSONResponse(Self.json(try await account(context))).response }
        routes.put("users/:id/custom_data") { request, context in
            try await users.setCustomData(
                try await request.json(upTo: UserService.customDataBytes * 2), of: try context.parameters.require("id"))
            return JSONResponse(Self.json(try await account(context))).response
        }
        routes.put("users/:id/disable") { _, context in try await Self.change(context) { try await users.setDisabled(true, of: $0) } }
        routes.put("users/:id/enable") { _, context in try await Self.change(context) { try await users.setDisabled(false, of: $0) } }
        routes.put("users/:id/logout") { _, context in try await Self.change(context) { try await users.logOut(user: $0) } }
        routes.delete("users/:id/identities/:provider") { request, context in
            guard let external = request.uri.queryParameters["id"] else {
                throw SluiceError(.badRequest, "The parameter 'id' is missing.", fix: "Give the user's id at the provider.")
            }
            let identity = UserIdentityKey(provider: try context.parameters.require("provider"), id: String(external))
            return try await Self.change(context) { try await users.unlink(identity, from: $0) }
        }
        routes.delete("users/:id") { _, context in try await Self.change(context) { try await users.delete($0) } }
    }

    private func create(_ request: Request) async throws -> Response {
        let body = try await request.json(upTo: UserService.customDataBytes * 2)
        guard let email = body["email"]?.string, let password = body["password"]?.string else {
            throw SluiceError(.badRequest, "'email' or 'password' is missing.", fix: "Send both as texts.")
        }
        let account = try await users.create(email: email, password: password, customData: body["custom_data"] ?? .object([]))
        return JSONResponse(Self.json(account), status: .created).response
    }

    private func list(_ request: Request) async throws -> Response {
        let page = Page(request)
        let accounts = try await users.directory.list(after: page.after, limit: page.limit)
        return page.response(accounts.map(Self.json), last: accounts.last?.id)
    }

    /// The page of a list that a request asks for.
    struct Page: Sendable {
        let limit: Int
        /// The id before the page; empty for the first one.
        let after: String

        init(_ request: Request) {
            limit = min(max(request.uri.queryParameters["limit"].flatMap { Int($0) } ?? 50, 1), 1_000)
            after = request.uri.queryParameters["after"].map { String($0) } ?? ""
        }

        /// - Parameter last: The id of the last user; nil if there is none.
        func response(_ users: [JSON], last: String?) -> Response {
            let next: JSON = users.count < limit ? .null : last.map { .string($0) } ?? .null
            return JSONResponse(["users": .array(users), "next": next]).response
        }
    }

    private func account(_ context: some RequestContext) async throws -> UserAccount {
        let id = try context.parameters.require("id")
        guard let account = try await users.directory.find(id: id) else { throw SluiceError(.userNotFound, "User \(id) does not exist.") }
        return account
    }

    /// Changes the user or the registration that the path names.
    static func change(_ context: some RequestContext, _ body: (String) async throws -> Void) async throws -> Response {
        try await body(try context.parameters.require("id"))
        return Response(status: .noContent)
    }

    /// Returns a user as JSON, without the password hash.
    static func json(_ account: UserAccount) -> JSON {
        [
            "id": .string(account.id), "email": account.email.map { .string($0) } ?? .null, "provider": .string(account.provider),
            "identities": account.identities, "data": account.data, "custom_data": account.customData,
            "disabled": .bool(account.isDisabled),
        ]
    }
}
