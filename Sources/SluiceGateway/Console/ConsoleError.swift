import Hummingbird
import SluiceCore

/// The form of errors in the console.
enum ConsoleError {
    /// Returns the error to show; nil for a cancellation.
    static func shown(_ error: any Error) -> SluiceError? {
        switch error {
        case let error as HTTPError: SluiceError(.badRequest, error.body ?? "The request is not well formed.")
        case is CancellationError: nil
        default: SluiceError(error, otherwise: .internalError, "The page could not be built.")
        }
    }

    static func paragraph(_ error: SluiceError) -> HTML {
        """
        <p class="bad"><strong>\(error.operatorText)</strong> <code>\(error.code.name)</code> (\(error.code.rawValue)). \
        What to do: \(error.fix ?? error.code.fix)</p>

        """
    }
}

/// The errors sent to clients, by code.
struct ConsoleErrorCounts: Sendable {
    /// The counts by the name of the code.
    let counted: [(label: String, value: Double)]

    var html: HTML {
        let some = counted.filter { $0.value > 0 }.sorted { ($1.value, $0.label) < ($0.value, $1.label) }
        guard !some.isEmpty else {
            return ConsolePage.section("errors", "Errors sent to clients", "<p>None since the gateway started.</p>\n")
        }
        var table = ConsoleTable("Since the gateway started, most first", ["Error", "Times", "Meaning", "What to do"])
        for (name, times) in some {
            let code = ErrorCode.allCases.first { $0.name == name }
            table.add(
                "<code>\(name)</code>\(code.map { " (\($0.rawValue))" } ?? "")",
                [
                    ConsoleNumber.count(times), "<span class=\"long\">\(code?.meaning ?? "")</span>",
                    "<span class=\"long\">\(code?.fix ?? "")</span>",
                ])
        }
        return ConsolePage.section("errors", "Errors sent to clients", table.html)
    }
}
