import HTTPTypes
import Hummingbird
import SluiceCore
import SluiceNet

/// The routes of App Services' client API that the gateway does not implement.
///
/// They answer with the error name `NotCallable` and a text. A 404 would look to an app like a wrong address.
struct NotOfferedRoutes: Sendable {
    /// A function of App Services that the gateway does not have.
    enum Function: Sendable {
        case confirmationMail, confirmationFunction, resetMail, resetFunction, collections, push
    }

    /// Throws if the path names another app.
    let check: @Sendable (any RequestContext) throws -> Void

    func add<Context: RequestContext>(to app: RouterGroup<Context>) {
        let others: [(HTTPRequest.Method, String, Function)] = [
            // A stream of the changes of a collection.
            (.get, "functions/call", .collections),
            (.put, "push/providers/:service/registration", .push), (.delete, "push/providers/:service/registration", .push),
        ]
        for (method, path, function) in others {
            app.on(RouterPath(path), method: method) { _, context -> Response in
                try check(context)
                throw Self.error(function)
            }
        }
    }

    static func error(_ function: Function) -> ErrorResponse {
        let (subject, fix) =
            switch function {
            case .confirmationMail: ("Sending a confirmation mail", "Leave it out: the app confirms users in another way.")
            case .confirmationFunction: ("Calling a confirmation function", "Leave it out: the app confirms users in another way.")
            case .resetMail: ("Sending a link to reset a password", "Ask the operator of the app for a new password.")
            case .resetFunction: ("Calling a reset function", "Request a link by mail, or ask the operator of the app for a new password.")
            case .collections: ("Reaching collections without sync", "Synchronise the objects, or call a function.")
            case .push: ("Registering for push notifications", "Send notifications from a server of your own.")
            }
        return ErrorResponse(SluiceError(.badRequest, "\(subject) is not offered by this gateway.", fix: fix), name: "NotCallable")
    }
}
