import ArgumentParser
import Foundation
import SluiceCore

struct Why: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tell why a user has an object on their devices, or not.",
        discussion: """
            Asks a gateway's admin port: whether the object is there, what the user's role says of it, and what the user's sessions on that \
            gateway have asked for. With several gateways ask the one that the device is connected to.
            """)

    @Option(help: "The gateway's admin address.")
    var admin = "http://127.0.0.1:8091"

    @Option(help: "The user's id or e-mail.")
    var user: String

    @Option(help: "The class.")
    var type: String

    @Option(help: "The object's primary key.")
    var id: String

    @Flag(help: "Print everything as JSON.")
    var json = false

    func run() async throws {
        try await reporting {
            let answer = try await GatewayClient(url: admin).get("/admin/v1/why", ["user": user, "type": type, "id": id])
            guard answer.status == 200 else { throw answer.error }
            if json { return print(answer.json.text) }
            for reason in answer.json["because"]?.array ?? [] { print(reason.string ?? "") }
        }
    }
}
