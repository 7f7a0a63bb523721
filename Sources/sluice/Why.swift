import ArgumentParser

struct Why: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explain why a user has an object on their devices, or not.",
        discussion: """
            Asks a gateway's admin port: whether the object is there, what the user's role says of it, and what the user's sessions on that \
            gateway have asked for. With several gateways ask the one that the device is connected to.
            """)

    @OptionGroup var question: AdminQuestion

    @Option(help: "The class.")
    var type: String

    @Option(help: "The object's primary key.")
    var id: String

    func run() async throws {
        try await reporting { try await question.ask("why", ["type": type, "id": id], lines: "because") }
    }
}
