import ArgumentParser
import Foundation
import SluiceCore
import SluiceGateway

struct IngestReplay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay", abstract: "Send refused asymmetric objects again, or list them.",
        discussion: """
            Asks a gateway's admin port. An object that is taken leaves sluice.ingest_rejected; one that is refused by the rules again comes \
            back there with a new id. Those that cannot be sent are printed on standard error with their ids; the exit code is then 3.
            """)

    @OptionGroup var target: AdminTarget

    @Option(help: "Objects of this class only.")
    var type: String?

    @Option(help: "Objects refused with this code only.")
    var code: Int?

    @Option(help: "The object of this id only; may be given several times.")
    var id: [Int] = []

    @Flag(help: "Print the objects as NDJSON and send nothing.")
    var list = false

    func run() async throws {
        try await reporting {
            let client = try target.client()
            if list { try await show(client) } else { try await send(client) }
        }
    }

    private func show(_ client: GatewayClient) async throws {
        var after: Int64 = 0
        while true {
            var query = ["after": String(after), "limit": "1000"]
            if let type { query["type"] = type }
            if let code { query["code"] = String(code) }
            let answer = try await client.get("/admin/v1/ingest/rejected", query)
            guard let rows = answer.json["rows"]?.array else { throw answer.error }
            guard let last = rows.last?["id"]?.int else { return }
            for row in rows where id.isEmpty || row["id"]?.int.map({ id.contains(Int($0)) }) == true { print(row.text) }
            after = last
        }
    }

    private func send(_ client: GatewayClient) async throws {
        var (after, sent, refused) = (Int64(0), Int64(0), 0)
        var through: Int64?
        while true {
            var members = [JSON.Member("after", .int(after))]
            if let through { members.append(JSON.Member("through", .int(through))) }
            if let type { members.append(JSON.Member("type", .string(type))) }
            if let code { members.append(JSON.Member("code", .int(Int64(code)))) }
            if !id.isEmpty { members.append(JSON.Member("ids", .array(id.map { .int(Int64($0)) }))) }
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
        StandardError.write("\(sent) sent again, \(refused) refused\n")
        if refused > 0 { throw ExitCode(3) }
    }
}
