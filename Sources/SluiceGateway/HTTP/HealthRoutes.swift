import HTTPTypes
import Hummingbird
package import SluiceCore
import SluiceNet
import Synchronization

/// Whether the gateway can do its work, part by part.
package final class Readiness: Sendable {
    private let problems = Mutex<[String: SluiceError]>([:])

    package init() {}

    /// Nil clears the part.
    package func set(_ part: String, _ problem: SluiceError?) { problems.withLock { $0[part] = problem } }

    package var current: [String: SluiceError] { problems.withLock { $0 } }
}

/// `GET /health` (the process answers) and `GET /ready` (it can serve clients; 503 with the parts that cannot).
struct HealthRoutes: Sendable {
    let readiness: Readiness

    func add(to router: Router<some RequestContext>) {
        router.get("/health") { _, _ in JSONResponse(["status": "ok"]).response }
        router.get("/ready") { _, _ in
            let problems = readiness.current.sorted { $0.key < $1.key }
            let parts = problems.map { part, error in
                JSON.object([
                    .init("part", .string(part)), .init("code", .int(Int64(error.code.rawValue))), .init("error", .string(error.message)),
                ])
            }
            return JSONResponse(
                ["status": .string(problems.isEmpty ? "ready" : "not ready"), "problems": .array(parts)],
                status: problems.isEmpty ? .ok : .serviceUnavailable
            ).response
        }
    }
}
