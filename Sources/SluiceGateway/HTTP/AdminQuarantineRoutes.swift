import HTTPTypes
import Hummingbird
import SluiceCore
import SluiceNet
import SluicePostgres
import SluiceValues

/// Operators' routes for rows in quarantine, which do not fit their class.
///
/// - `GET quarantine?type=&limit=`: Returns the newest rows as `{"rows": […], "count": all}`. `limit` is 100 by default, up to 1,000.
/// - `POST quarantine/release`: Checks up to 10,000 rows now and releases those that fit. Returns `{"released": n, "left": m}`.
struct AdminQuarantineRoutes: Sendable {
    let quarantine: QuarantineKeeper
    let audit: AuditLog

    func add<Context: RequestContext>(to routes: some RouterMethods<Context>) {
        routes.get("quarantine") { request, _ in
            let limit = min(max(request.uri.queryParameters["limit"].flatMap { Int($0) } ?? 100, 1), 1_000)
            let type = request.uri.queryParameters["type"].map { String($0) }
            let (rows, count) = try await quarantine.list(type: type, limit: limit)
            return JSONResponse(["rows": .array(rows.map(Self.json)), "count": .int(Int64(count))]).response
        }
        routes.post("quarantine/release") { _, _ in
            let outcome = try await audit.noting("quarantine", outcome: { $0 }) {
                let (released, left) = try await quarantine.look()
                return ["released": .int(Int64(released)), "left": .int(Int64(left))] as JSON
            }
            return JSONResponse(outcome).response
        }
    }

    private static func json(_ row: QuarantinedRow) -> JSON {
        [
            "type": .string(row.type), "key": .string(row.key), "reason": .string(row.reason), "lsn": .string(row.lsn),
            "at": .string(row.at),
        ]
    }
}
