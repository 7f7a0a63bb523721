import Foundation
package import SluiceValues

/// Lists rejected asymmetric objects or sends them again, over the admin port.
package struct IngestReplayer {
    private let type: String?
    private let code: Int?
    private let ids: [Int]
    private let client: GatewayClient

    /// - Parameters:
    ///   - type: The class; nil for all classes.
    ///   - code: The error code of the rejection; nil for all codes.
    ///   - ids: The ids of the objects; empty for all objects.
    package init(type: String?, code: Int?, ids: [Int], client: GatewayClient) {
        self.type = type
        self.code = code
        self.ids = ids
        self.client = client
    }

    /// Passes the rejected objects to `show`, one page of 1,000 after the other.
    package func list(_ show: (JSON) -> Void) async throws {
        var after: Int64 = 0
        while true {
            var query = ["after": String(after), "limit": "1000"]
            if let type { query["type"] = type }
            if let code { query["code"] = String(code) }
            let answer = try await client.get("/admin/v1/ingest/rejected", query)
            guard let rows = answer.json["rows"]?.array else { throw answer.error }
            guard let last = rows.last?["id"]?.int else { return }
            for row in rows where ids.isEmpty || row["id"]?.int.map({ ids.contains(Int($0)) }) == true { show(row) }
            after = last
        }
    }

    /// Sends the objects again and reports those that cannot be sent on standard error.
    package func send() async throws -> (sent: Int64, refused: Int) {
        var (after, sent, refused) = (Int64(0), Int64(0), 0)
        var through: Int64?
        while true {
            var members = [JSON.Member("after", .int(after))]
            if let through { members.append(JSON.Member("through", .int(through))) }
            if let type { members.append(JSON.Member("type", .string(type))) }
            if let code { members.append(JSON.Member("code", .int(Int64(code)))) }
            if !ids.isEmpty { members.append(JSON.Member("ids", .array(ids.map { .int(Int64($0)) }))) }
            let answer = try await client.post(
                "/admin/v1/ingest/replay", Data(JSON.object(members).text.utf8), contentType: "application/json", token: nil, attempts: 1)
            guard let count = answer.json["sent"]?.int else { throw answer.error }
            sent += count
            for refusal in answer.json["refused"]?.array ?? [] {
                refused += 1
                StandardError.write("\(refusal["id"]?.int ?? 0): \(refusal["error"]?.string ?? "refused")\n")
            }
            guard let last = answer.json["last"]?.int else { break }
            after = last
            // The bound ends the loop: objects that are rejected again have later ids.
            through = answer.json["through"]?.int
        }
        return (sent, refused)
    }
}
