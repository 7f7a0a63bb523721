package import Hummingbird
import HTTPTypes
import SluiceCore
import SluiceNet
import SluicePorts
import SluiceValues

/// Operators' routes for passwords, and for users whose e-mail addresses are not confirmed. They are for the admin port only.
///
/// - `PUT users/<id>/password` `{password}`: Sets the password and ends all logins.
/// - `GET pending_users?after=&limit=`: Returns pending users by id, at most `limit` (50 by default, up to 1,000), as
///   `{"users": [{"id", "email", "registered", "expires"}], "next": id or null}`. Both times are in seconds since 1970.
/// - `PUT pending_users/<id>/confirm`: Makes the account.
/// - `PUT pending_users/<id>/send`: Sends the mail again, or calls the confirmation function again.
/// - `DELETE pending_users/<id>`: Deletes the registration.
package struct AdminAccountRoutes: Sendable {
    private let accounts: EmailAccounts

    package init(accounts: EmailAccounts) { self.accounts = accounts }

    package func add<Context: RequestContext>(to routes: some RouterMethods<Context>) {
        let (registrations, resets) = (accounts.registrations, accounts.resets)
        routes.put("users/:id/password") { request, context in
            let password = try await request.json(upTo: AuthRoutes.bodyBytes).text("password")
            return try await AdminUserRoutes.change(context) { try await resets.setPassword(password, of: $0) }
        }
        routes.get("pending_users") { request, _ in
            let page = AdminUserRoutes.Page(request)
            let users = try await registrations.list(after: page.after, limit: page.limit)
            return page.response(users.map(Self.json), last: users.last?.id)
        }
        routes.put("pending_users/:id/confirm") { _, context in
            try await AdminUserRoutes.change(context) { try await registrations.confirm(id: $0) }
        }
        routes.put("pending_users/:id/send") { _, context in
            try await AdminUserRoutes.change(context) { try await registrations.resend(id: $0) }
        }
        routes.delete("pending_users/:id") { _, context in
            try await AdminUserRoutes.change(context) { try await registrations.delete(id: $0) }
        }
    }

    private static func json(_ user: PendingUser) -> JSON {
        [
            "id": .string(user.id), "email": .string(user.email), "registered": .int(user.registered / 1_000),
            "expires": .int(user.expires / 1_000),
        ]
    }
}
