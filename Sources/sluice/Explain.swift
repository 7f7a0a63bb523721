import ArgumentParser

struct Explain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explain a user's subscription: role, condition, SQL, index form, rows and cost.",
        discussion: """
            Asks a gateway's admin port. Rows are counted up to 100,000, beyond that PostgreSQL's estimate is shown. What refuses the \
            subscription is the error.
            """)

    @OptionGroup var question: AdminQuestion

    @Option(help: "The class. Not needed if only one has the properties of the query.")
    var type: String?

    @Argument(help: "The query.")
    var query: String

    func run() async throws {
        try await reporting {
            var subject = ["query": query]
            subject["type"] = type
            try await question.ask("explain", subject, lines: "text")
        }
    }
}
