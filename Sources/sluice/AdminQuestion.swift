import ArgumentParser
import SluiceCore
import SluiceTools
import SluiceValues

/// The options of a command that sends a question about a user to the admin port.
struct AdminQuestion: ParsableArguments {
    @OptionGroup var target: AdminTarget

    @Option(help: "The user's id or e-mail.")
    var user: String

    @Flag(help: "Print everything as JSON.")
    var json = false

    /// Sends the question and prints the answer, as lines or as JSON.
    /// - Parameters:
    ///   - subject: Query parameters of the question besides the user.
    ///   - lines: The member of the answer that holds the lines.
    /// - Throws: The gateway's error if the status is not 200.
    func ask(_ route: String, _ subject: [String: String], lines: String) async throws {
        let query = subject.merging(["user": user]) { first, _ in first }
        let answer = try await target.client().get("/admin/v1/\(route)", query)
        guard answer.status == 200 else { throw answer.error }
        if json { return print(answer.json.text) }
        // The lines have queries and names that clients chose.
        for line in answer.json[lines]?.array ?? [] { print(TerminalText.shown(line.string ?? "")) }
    }
}
