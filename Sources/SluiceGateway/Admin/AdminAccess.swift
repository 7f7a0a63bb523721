import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import SluiceCore
import SluiceNet
import SluicePostgres

/// The rules of access to the admin port.
struct AdminAccess: Sendable {
    /// The listener that received a request.
    enum Door: Sendable { case port, socket }

    let tokens: AdminTokens
    let sessions: ConsoleSessions
    let metrics: Metrics

    /// `true` if requests on the port need a token.
    var needsToken: Bool { !tokens.all.isEmpty }

    /// Returns the sender of a request without the console's cookie; nil if it has no valid proof.
    func identity(_ request: Request, by door: Door) -> AdminIdentity? {
        if door == .socket { return AdminIdentity(name: "unix socket", role: .change) }
        guard needsToken else { return AdminIdentity(name: "loopback", role: .change) }
        guard let text = try? AuthRoutes.bearer(request) else { return nil }
        return tokens.token(of: text).map(Self.identity)
    }

    static func identity(_ token: AdminToken) -> AdminIdentity { AdminIdentity(name: "token \(token.name)", role: token.role) }

    /// Requires a role and counts rejections.
    ///
    /// - Throws: `adminUnauthorized`, `adminForbidden`.
    func require(_ role: AdminRole, of identity: AdminIdentity?) throws(SluiceError) {
        guard let identity else {
            metrics.number(.adminRefused, label: ErrorCode.adminUnauthorized.name).add()
            throw SluiceError(.adminUnauthorized, "The request to the admin port has no valid admin token.")
        }
        guard identity.role >= role else {
            metrics.number(.adminRefused, label: ErrorCode.adminForbidden.name).add()
            throw SluiceError(.adminForbidden, "\(identity.name) has the role \(identity.role.rawValue), which permits no changes.")
        }
    }
}

/// Identifies the sender of a request. Rejects nothing.
struct AdminAuthentication: RouterMiddleware {
    typealias Context = AdminContext
    let access: AdminAccess
    let door: AdminAccess.Door

    func handle(
        _ request: Request, context: AdminContext, next: @concurrent (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        context.identity = access.identity(request, by: door)
        return try await next(request, context)
    }
}

/// Requires the role `read` for GET and HEAD, and `change` for every other method.
struct AdminAuthorization: RouterMiddleware {
    typealias Context = AdminContext
    let access: AdminAccess

    func handle(
        _ request: Request, context: AdminContext, next: @concurrent (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        let isRead = request.method == .get || request.method == .head
        try access.require(isRead ? .read : .change, of: context.identity)
        return try await next(request, context)
    }
}

/// Sets the author of each change for the audit log, and logs the change.
struct AdminAuditing: RouterMiddleware {
    typealias Context = AdminContext
    let logger: Logger

    func handle(
        _ request: Request, context: AdminContext, next: @concurrent (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        guard request.method != .get, request.method != .head, let identity = context.identity else {
            return try await next(request, context)
        }
        let author = AuditAuthor(
            actor: identity.name, address: context.remoteAddress?.ipAddress ?? "", action: "\(request.method.rawValue) \(request.uri.path)")
        do {
            let response = try await AuditAuthor.$current.withValue(author) { try await next(request, context) }
            note(author, "\(response.status.code)")
            return response
        } catch {
            note(author, SluiceError(of: error)?.code.name ?? "failed")
            throw error
        }
    }

    private func note(_ author: AuditAuthor, _ result: String) {
        logger.notice(
            "An operator requested a change.",
            metadata: [
                "actor": "\(author.actor)", "address": "\(author.address)", "action": "\(author.action)", "result": "\(result)",
            ])
    }
}

/// The sender of a request to the admin port.
package struct AdminIdentity: Hashable, Sendable {
    /// The name in the audit log: `token NAME`, `unix socket` or `loopback`.
    package var name: String
    package var role: AdminRole

    package init(name: String, role: AdminRole) {
        self.name = name
        self.role = role
    }
}

/// The context of a request to the admin port, with its sender once authenticated.
struct AdminContext: RequestContext, RemoteAddressRequestContext {
    var coreContext: CoreRequestContextStorage
    let remoteAddress: SocketAddress?
    var identity: AdminIdentity?

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        remoteAddress = source.channel.remoteAddress
    }
}
