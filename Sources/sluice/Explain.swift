import ArgumentParser
import Foundation
import SluiceCore

struct Explain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tell what would become of a user's subscription: role, condition, SQL, index form, rows and cost.",
        discussion: """
            Asks a gateway's admin port. Rows are counted up to 100,000, beyond that PostgreSQL's estimate is shown. What refuses the \
            subscription is the error.
            """)

    @Option(help: "The gateway's admin address.")
    var admin = "http://127.0.0.1:8091"

    @Option(help: "The user's id or e-mail.")
    var user: String

    @Option(help: "The class.")
    var type: String

    @Argument(help: "The query.")
    var query: String

    @Flag(help: "Print everything as JSON.")
    var json = false

    func run() async throws {
        try await reporting {
            let answer = try await GatewayClient(url: admin).get("/admin/v1/explain", ["user": user, "type": type, "query": query])
            guard answer.status == 200 else { throw answer.error }
            if json { return print(answer.json.text) }
            for line in answer.json["text"]?.array ?? [] { print(line.string ?? "") }
        }
    }
}
