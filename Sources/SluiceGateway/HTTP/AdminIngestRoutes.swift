import Hummingbird
import SluiceCore
import SluiceNet
import SluicePostgres
import SluiceValues

/// Operators' routes for rejected asymmetric objects.
///
/// - `GET ingest/rejected?type=&code=&after=&limit=`: Returns the oldest ones as `{"rows": […], "count": all}`. `limit` is 100 by
///   default, up to 1,000.
/// - `POST ingest/replay` `{type?, code?, ids?, after?, through?, limit?}`: Sends objects again. Returns
///   `{"sent": n, "refused": [{id, code, error}], "last": id or null, "through": id}`. `limit` is 1,000 by default, up to 10,000.
///
/// For more than `limit`, repeat with `after` set to `last` and with the `through` of the first answer, until `last` is null. Objects
/// that are rejected again have ids above `through`.
struct AdminIngestRoutes: Sendable {
    let letters: DeadLetterReplay
    let audit: AuditLog

    func add<Context: RequestContext>(to routes: some RouterMethods<Context>) {
        routes.get("ingest/rejected") { request, _ in
            let query = request.uri.queryParameters
            let filter = DeadLetterStore.Filter(
                type: query["type"].map { String($0) }, code: query["code"].flatMap { Int($0) },
                after: query["after"].flatMap { Int64($0) } ?? 0)
            let limit = min(max(query["limit"].flatMap { Int($0) } ?? 100, 1), 1_000)
            let rows = try await letters.letters.list(filter, limit: limit)
            let count = try await letters.letters.count(filter)
            return JSONResponse(["rows": .array(rows.map(\.json)), "count": .int(Int64(count))]).response
        }
        routes.post("ingest/replay") { request, _ in try await again(request) }
    }

    private func again(_ request: Request) async throws -> Response {
        let body = try await request.json(upTo: 1 << 20)
        let ids = body["ids"]?.array?.compactMap(\.int)
        guard ids?.count == body["ids"]?.array?.count else {
            throw SluiceError(
                .badRequest, "'ids' contains an element that is not an id.", fix: "Send the ids of sluice.ingest_rejected as numbers.")
        }
        let newest = try await letters.letters.newest()
        let filter = DeadLetterStore.Filter(
            type: body["type"]?.string, code: body["code"]?.int.map { Int($0) }, ids: ids, after: body["after"]?.int ?? 0,
            through: body["through"]?.int ?? newest)
        let limit = min(max(body["limit"]?.int.map { Int($0) } ?? 1_000, 1), 10_000)
        let outcome = try await audit.noting(
            "refused objects",
            outcome: { ["asked": body, "sent": .int(Int64($0.sent)), "refused": .int(Int64($0.refused.count))] }
        ) { try await letters.replay(filter, limit: limit) }
        let refused = outcome.refused.sorted { $0.letter.id < $1.letter.id }.map { letter, error -> JSON in
            ["id": .int(letter.id), "code": .int(Int64(error.code.rawValue)), "error": .string(error.operatorText)]
        }
        return JSONResponse([
            "sent": .int(Int64(outcome.sent)), "refused": .array(refused), "last": outcome.last.map { .int($0) } ?? .null,
            "through": .int(filter.through),
        ]).response
    }
}
