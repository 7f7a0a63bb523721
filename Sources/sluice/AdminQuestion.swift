import ArgumentParser
import SluiceCore

/// A question about a user that a gateway's admin port answers in lines.
struct AdminQuestion: ParsableArguments {
    @OptionGroup var target: AdminTarget

    @Option(help: "The user's id or e-mail.")
    var user: String

    @Flag(help: "Print everything as JSON.")
    var json = false

    /// Asks and prints.
    /// - Parameters:
    ///   - subject: what the question is about, besides the user.
    ///   - lines: the member of the answer that has the lines.
    func ask(_ route: String, _ subject: [String: String], lines: String) async throws {
        let query = subject.merging(["user": user]) { first, _ in first }
        let answer = try await target.client().get("/admin/v1/\(route)", query)
        guard answer.status == 200 else { throw answer.error }
        if json { return print(answer.json.text) }
        for line in answer.json[lines]?.array ?? [] { print(line.string ?? "") }
    }
}
