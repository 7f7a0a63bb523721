import ArgumentParser
import SluiceTools

struct Errors: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the table of error codes with meanings and fixes, as Markdown.")

    func run() { print(ErrorPage.markdown, terminator: "") }
}
