import Hummingbird
import SluiceCore
import SluiceNet

/// Operators' route that says what would become of a user's subscription.
///
/// | route | does |
/// | --- | --- |
/// | `GET explain?user=&type=&query=` | answers as `SubscriptionExplanation.json` says; `user` is an id or an e-mail |
struct AdminExplainRoute: Sendable {
    let explainer: SubscriptionExplainer

    func add<Context: RequestContext>(to routes: some RouterMethods<Context>) {
        routes.get("explain") { request, _ in
            let asked = request.uri.queryParameters
            guard let user = asked["user"], let type = asked["type"], let query = asked["query"] else {
                throw SluiceError(.badRequest, "'user', 'type' or 'query' is missing.", fix: "Ask for explain?user=…&type=…&query=…")
            }
            return JSONResponse(try await explainer.explain(user: String(user), type: String(type), query: String(query)).json).response
        }
    }
}
