import Hummingbird
import SluiceCore
import SluiceIdentity
import SluiceNet
import SluicePorts
import SluiceValues

/// The route of App Services' client API that calls functions of the app.
struct FunctionRoutes: Sendable {
    /// The largest call, in bytes.
    static let bodyBytes = 1 << 20

    let users: UserService
    let functions: any AppFunctions
    /// Throws if the path names another app.
    let check: @Sendable (any RequestContext) throws -> Void

    func add<Context: RequestContext>(to app: RouterGroup<Context>) {
        app.post("functions/call") { request, context in
            try check(context)
            // The token first: an unknown client costs no work.
            let account = try await users.account(accessToken: try AuthRoutes.bearer(request))
            return JSONResponse(try await call(try await request.json(upTo: Self.bodyBytes), by: account.context))
        }
    }

    private func call(_ body: JSON, by user: UserContext) async throws -> JSON {
        guard let name = body["name"]?.string, !name.isEmpty else {
            throw SluiceError(.badRequest, "'name' is missing or not a string.", fix: "Send it in the JSON body.")
        }
        // A service is a database there, and its functions are those of collections.
        if body["service"]?.string?.isEmpty == false { throw NotOfferedRoutes.error(.collections) }
        let arguments = body["arguments"] ?? .array([])
        guard let list = arguments.array else {
            throw SluiceError(.badRequest, "'arguments' is not an array.", fix: "Send an array, which may be empty.")
        }
        do throws(SluiceError) {
            return try await functions.call(FunctionCall(name, arguments: list, caller: .user(user)))
        } catch {
            throw error.code == .tooManyRequests ? ErrorResponse(error, retryAfter: 1) : ErrorResponse(error)
        }
    }
}
