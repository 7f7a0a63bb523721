import Hummingbird
import SluiceCore
import SluiceNet
import SluicePostgres

/// Operators' routes for asymmetric objects that were refused.
///
/// | route | does |
/// | --- | --- |
/// | `GET ingest/rejected?type=&code=&after=&limit=` | lists the oldest, at most `limit` (100; up to 1,000), `{"rows": […], "count": all}` |
/// | `POST ingest/replay` `{type?, code?, ids?, after?, through?, limit?}` | sends at most `limit` (1,000; up to 10,000) again, `{"sent": n, "refused": [{id, code, error}], "last": id or null, "through": id}` |
///
/// To go through more than `limit`, ask again with `after` = `last` and the `through` of the first answer until `last` is null: what is
/// refused anew has ids beyond that.
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
                .badRequest, "'ids' holds something that is no id.", fix: "Send the ids of sluice.ingest_rejected as numbers.")
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
