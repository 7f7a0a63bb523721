import HTTPTypes
import Hummingbird
package import SluiceCore
import SluiceNet
import SluiceValues
import Synchronization

/// The readiness of the gateway, by part.
package final class Readiness: Sendable {
    private let problems = Mutex<[String: SluiceError]>([:])

    package init() {}

    /// Sets the problem of a part; nil clears it.
    package func set(_ part: String, _ problem: SluiceError?) { problems.withLock { $0[part] = problem } }

    private let warnings = Mutex<[String: String]>([:])

    /// Sets a warning about a lowered bound, which does not affect readiness; nil clears it.
    func warn(_ part: String, _ text: String?) { warnings.withLock { $0[part] = text } }

    /// The warnings by part, for operators only.
    var notes: [String: String] { warnings.withLock(\.self) }

    package var current: [String: SluiceError] { problems.withLock(\.self) }
}

/// The routes `GET /health`, which shows that the process runs and which app it serves, and `GET /ready`. The latter returns 503 with the
/// parts that are not ready.
struct HealthRoutes: Sendable {
    /// The app id, which every client of the app sends in the clear.
    let app: String
    let readiness: Readiness
    /// Returns `true` if the response is for an operator. Other responses have fixed texts without causes.
    let givesCauses: @Sendable (any RequestContext) -> Bool

    func add(to router: Router<some RequestContext>) {
        router.get("/health") { _, _ in JSONResponse(["status": "ok", "app": .string(app)]).response }
        router.get("/ready") { _, context in
            let isOperator = givesCauses(context)
            let problems = readiness.current.sorted { $0.key < $1.key }
            let parts = problems.map { part, error in
                JSON.object(
                    [
                        .init("part", .string(part)), .init("code", .int(Int64(error.code.rawValue))),
                        .init("error", .string(isOperator ? error.messageWithValue : ClientError(error).message)),
                    ] + (isOperator ? error.cause.map { [.init("cause", .string("\($0)"))] } ?? [] : []))
            }
            var members: [JSON.Member] = [
                .init("status", .string(problems.isEmpty ? "ready" : "not ready")), .init("problems", .array(parts)),
            ]
            let notes = isOperator ? readiness.notes.sorted { $0.key < $1.key } : []
            if !notes.isEmpty {
                let warnings = notes.map { JSON.object([.init("part", .string($0)), .init("warning", .string($1))]) }
                members.append(.init("warnings", .array(warnings)))
            }
            return JSONResponse(
                .object(members),
                status: problems.isEmpty ? .ok : .serviceUnavailable
            ).response
        }
    }
}
