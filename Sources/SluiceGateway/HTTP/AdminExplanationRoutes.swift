import Hummingbird
import SluiceCore
import SluiceNet

/// Operators' route that explains a user's subscription.
///
/// `GET explain?user=&type=&query=` returns `SubscriptionExplanation.json`. `user` is an id or an e-mail. If only one class fits the
/// query, `type` is optional.
struct AdminExplainRoute: Sendable {
    let explainer: SubscriptionExplainer

    func add<Context: RequestContext>(to routes: some RouterMethods<Context>) {
        routes.get("explain") { request, _ in
            let asked = request.uri.queryParameters
            guard let user = asked["user"], let query = asked["query"] else {
                throw SluiceError(.badRequest, "'user' or 'query' is missing.", fix: "Request explain?user=…&type=…&query=…")
            }
            let type = try asked["type"].map { String($0) } ?? explainer.onlyType(for: String(query))
            return JSONResponse(try await explainer.explain(user: String(user), type: type, query: String(query)).json).response
        }
    }
}

/// Operators' route that explains why a client replica has an object or lacks it.
///
/// `GET why?user=&type=&id=` returns `ObjectExplanation.json`. `user` is an id or an e-mail.
struct AdminWhyRoute: Sendable {
    let explainer: ObjectExplainer

    func add<Context: RequestContext>(to routes: some RouterMethods<Context>) {
        routes.get("why") { request, _ in
            let query = request.uri.queryParameters
            guard let user = query["user"], let type = query["type"], let id = query["id"] else {
                throw SluiceError(.badRequest, "'user', 'type' or 'id' is missing.", fix: "Request why?user=…&type=…&id=…")
            }
            return JSONResponse(try await explainer.explain(user: String(user), type: String(type), id: String(id)).json).response
        }
    }
}
