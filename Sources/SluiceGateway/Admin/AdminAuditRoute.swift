import Hummingbird
import SluiceCore
import SluiceNet
import SluicePostgres
import SluiceValues

/// Operators' route of the audit log.
///
/// `GET audit?before=&limit=` returns the newest entries as `{"entries": […], "next": id or null}`. `limit` is 100 by default, up to
/// 1,000.
struct AdminAuditRoute: Sendable {
    let audit: AuditLog

    func add<Context: RequestContext>(to routes: some RouterMethods<Context>) {
        routes.get("audit") { request, _ in
            let query = request.uri.queryParameters
            let limit = min(max(query["limit"].flatMap { Int($0) } ?? 100, 1), 1_000)
            let entries = try await audit.list(before: query["before"].flatMap { Int64($0) } ?? .max, limit: limit)
            let next: JSON = entries.count < limit ? .null : entries.last.map { .int($0.id) } ?? .null
            return JSONResponse(["entries": .array(entries.map(\.json)), "next": next]).response
        }
    }
}

extension AuditEntry {
    fileprivate var json: JSON {
        [
            "id": .int(id), "at": .string(at), "actor": .string(author.actor), "address": .string(author.address),
            "action": .string(author.action), "subject": .string(subject), "before": before, "after": after,
        ]
    }
}
