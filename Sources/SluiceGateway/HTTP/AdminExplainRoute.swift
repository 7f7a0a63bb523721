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
